//! The bytes of an object between the thread that reads the store and the caller: a few pieces at a time. So a slow
//! reader delays its store, and doesn't fill the memory.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use event::object::Pieces;
use event::read::ReadError;
use tokio::sync::mpsc;

use super::Shared;

/// Pieces that are ready before the reader takes them.
const AHEAD: usize = 4;
/// Bytes of a piece at most.
pub const PIECE_BYTES: usize = 64 * 1024;

/// The items of the stream: an empty one when the store has begun, and then its bytes.
type Piece = Result<Bytes, ReadError>;

/// The end of the stream for a store.
#[derive(Clone)]
pub struct PieceSender(mpsc::Sender<Piece>);

/// The reader no longer waits for the bytes.
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
    /// The store has begun to return the bytes.
    ///
    /// # Errors
    /// [`Gone`]
    pub async fn begin(&self) -> Result<(), Gone> {
        self.send(Ok(Bytes::new())).await
    }

    /// Adds bytes.
    ///
    /// # Errors
    /// [`Gone`]
    pub async fn give(&self, mut bytes: Bytes) -> Result<(), Gone> {
        while !bytes.is_empty() {
            self.send(Ok(bytes.split_to(PIECE_BYTES.min(bytes.len())))).await?;
        }
        Ok(())
    }

    /// Reports to a reader that has begun that the object is incomplete.
    pub(super) async fn fail(&self, error: ReadError) {
        // Without a reader there is no one to notify.
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
            None => {
                Err(super::unavailable("the store closed the connection before the first byte of its response: retry"))
            }
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
