//! Bytes of an object on their way from the thread that asks the store to whoever asked: a few pieces at a time, so that a slow reader
//! holds up its store and not the memory.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use event::object::Pieces;
use event::read::ReadError;
use tokio::sync::mpsc;

use super::Shared;

/// Pieces that are ready before somebody takes them.
const AHEAD: usize = 4;
/// Bytes of a piece at most.
pub const PIECE_BYTES: usize = 64 * 1024;

/// What goes through: that the store has begun, and then its bytes.
type Piece = Result<Bytes, ReadError>;

/// Where a store puts them.
#[derive(Clone)]
pub struct PieceSender(mpsc::Sender<Piece>);

/// Nobody waits for the bytes any more.
pub struct Gone;

/// A stream of pieces.
pub(super) struct Stream {
    pieces: mpsc::Receiver<Piece>,
    shared: Arc<Shared>,
}

pub(super) fn channel(shared: Arc<Shared>) -> (PieceSender, Stream) {
    let (sender, pieces) = mpsc::channel(AHEAD);
    (PieceSender(sender), Stream { pieces, shared })
}

impl PieceSender {
    /// The store has begun to give the bytes.
    ///
    /// # Errors
    /// [`Gone`]
    pub async fn begin(&self) -> Result<(), Gone> {
        self.send(Ok(Bytes::new())).await
    }

    /// More of them.
    ///
    /// # Errors
    /// [`Gone`]
    pub async fn give(&self, mut bytes: Bytes) -> Result<(), Gone> {
        while !bytes.is_empty() {
            self.send(Ok(bytes.split_to(PIECE_BYTES.min(bytes.len())))).await?;
        }
        Ok(())
    }

    /// Who has begun to take it learns that it isn't whole.
    pub(super) async fn fail(&self, error: ReadError) {
        // Where nobody waits nobody is told.
        drop(self.send(Err(error)).await);
    }

    async fn send(&self, piece: Piece) -> Result<(), Gone> {
        self.0.send(piece).await.map_err(|_| Gone)
    }
}

impl Stream {
    /// Waits until the store has begun.
    pub(super) async fn begun(mut self) -> Result<Self, ReadError> {
        match self.pieces.recv().await {
            Some(first) => first.map(|_| self),
            None => Err(super::unavailable("the store's answer ended before it began")),
        }
    }
}

impl Pieces for Stream {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Piece>> {
        let polled = self.pieces.poll_recv(context);
        if let Poll::Ready(Some(Ok(piece))) = &polled {
            self.shared.counters.fetched_bytes.add(piece.len() as u64);
        }
        polled
    }
}
