//! An object's bytes on their way to a store that must know their length and digests before the first of them.
//!
//! They are made once for that, and kept meanwhile, as soon as there is room. Those of an object that is larger than that room are made
//! again while they are sent, and the store holds them against the digest. So memory has a bound whatever an object's size, and no
//! disk is needed.
//!
//! What is kept is let go as it is sent: the next object is made in its room meanwhile. Otherwise all objects that have room would be sent
//! at once, side by side, and the store would have nothing to do while the next as many are made. Should the same bytes be sent again, because a
//! token has ended or the container was away, they are made again.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use http::HeaderValue;
use md5::Md5;
use sha2::Digest;
use tokio::sync::mpsc::{self, Sender};

use super::attachments::Attachments;
use super::body::Body;
use super::digest_pool::DigestPool;
use super::digests::Digests;
use super::error::Failure;
use super::upload::Upload;
use crate::codec::LineCodec;
use crate::encoder::{self, Unmade};
use crate::memory_budget::{MemoryBudget, MemoryPermit};
use crate::prefetched_lines::Lines;
use crate::sealed::{BUFFER_BYTES, Sealed};
use crate::{Manifest, Parts};
use sink::{Reason, Record};

/// Pieces of 64 KiB that are ready before the network takes them.
const PIECES_AHEAD: usize = 4;

/// An object whose bytes were made once.
pub(super) struct EncodedObject {
    manifest: Manifest,
    parts: Mutex<Box<dyn Parts>>,
    /// Until they are sent.
    kept: Mutex<Option<Kept>>,
    pub(super) sealed: Sealed,
    pub(super) digests: Digests,
    /// Why its bytes couldn't be made again.
    trouble: Arc<OnceLock<Reason>>,
    /// Its lines were made ahead: nothing was sent under its name.
    is_new: bool,
    /// Whoever waits for it: with this goes the wish for it.
    caller: Caller,
}

impl EncodedObject {
    /// Makes the bytes: out of lines that were made ahead, or else of events, when there is room for about so many bytes of lines.
    pub(super) async fn make(
        manifest: &Manifest,
        mut parts: Box<dyn Parts>,
        (budget, pool): (&MemoryBudget, &DigestPool),
        line_bytes: u64,
    ) -> Result<Self, Failure> {
        let source = match (manifest.codec.of_lines(), parts.take_lines()) {
            (Some(LineCodec::None), Some(lines)) => {
                return Self::of_plain(manifest, parts, lines, pool).await;
            }
            (Some(codec), Some(lines)) => Source::Lines(codec, Box::new(lines)),
            _ => Source::Events(budget.take(line_bytes).await.map_err(|_| Failure::Unanswered)?),
        };
        let is_new = matches!(source, Source::Lines(..));
        let caller = Caller(Arc::default());
        let (manifest, abandoned) = (manifest.clone(), caller.0.clone());
        let made = tokio::task::spawn_blocking(move || {
            let (first, sealed) = source.make(&manifest, &mut *parts, &abandoned)?;
            let digests = Digests { bytes: sealed.bytes, md5: first.md5.finalize().into(), sha256: sealed.sha256 };
            let kept = first.kept.map(Kept::shrunk);
            Ok((manifest, Mutex::new(parts), Mutex::new(kept), sealed, digests))
        });
        let (manifest, parts, kept, sealed, digests) = made.await.unwrap_or(Err(Failure::Unanswered))?;
        Ok(Self { manifest, parts, kept, sealed, digests, trouble: Arc::default(), is_new, caller })
    }

    /// Plain lines are the bytes themselves, and kept as they are.
    async fn of_plain(
        manifest: &Manifest,
        parts: Box<dyn Parts>,
        lines: Lines,
        pool: &DigestPool,
    ) -> Result<Self, Failure> {
        let (pieces, sealed, room) = lines.into_whole();
        let pieces = Arc::new(pieces);
        let digests = pool.of(pieces.clone()).await.ok_or(Failure::Unanswered)?;
        let bytes = pieces.iter().map(Bytes::len).sum();
        Ok(Self {
            manifest: manifest.clone(),
            parts: Mutex::new(parts),
            kept: Mutex::new(Some(Kept { pieces, bytes, room })),
            sealed: Sealed { bytes: digests.bytes, sha256: digests.sha256, ..sealed },
            digests,
            trouble: Arc::default(),
            is_new: true,
            caller: Caller(Arc::default()),
        })
    }

    /// The bytes from the first on.
    fn body(&self) -> Body {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Kept { pieces, room, .. }) = kept {
            let pieces = Arc::unwrap_or_clone(pieces).into_iter();
            return Body::Kept { pieces, left: self.digests.bytes, room };
        }
        let (sender, pieces) = mpsc::channel(PIECES_AHEAD);
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner).again();
        let (manifest, abandoned, trouble) = (self.manifest.clone(), self.caller.0.clone(), self.trouble.clone());
        tokio::task::spawn_blocking(move || {
            let mut again = Again(sender);
            let attachments = Attachments::of(manifest.apart.as_ref());
            let replacing = |record: &Record<'_>| attachments.as_ref()?.replaced(&manifest, record);
            let made = encoder::write_again(&manifest, &mut *parts, &mut again, &abandoned, &replacing);
            if let Err(Unmade::Parts(error)) = made {
                // Before the body ends by it: whoever sends it then looks here.
                let _ = trouble.set(error.0);
                let _ = again.0.blocking_send(Err(io::ErrorKind::UnexpectedEof.into()));
            }
        });
        Body::Made { pieces, left: self.digests.bytes }
    }

    /// Why a body of this object ended early, if it did so by itself.
    pub(super) fn trouble(&self) -> Option<Failure> {
        self.trouble.get().map(|reason| Failure::Parts(reason.clone()))
    }

    /// The bytes by which the store knows it, and what they are.
    pub(super) fn upload<'a>(
        &'a self,
        name: &'a str,
        content_type: HeaderValue,
    ) -> Upload<'a, impl Fn() -> Body + Send + Sync> {
        Upload { name, digests: self.digests, content_type, is_new: self.is_new, is_once: false, body: || self.body() }
    }

    /// What it came to, and the parts, all of which were read.
    pub(super) fn into_stored(self) -> (Sealed, Box<dyn Parts>) {
        (self.sealed, self.parts.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What an object's bytes are made of.
enum Source {
    /// Lines that are to be coded.
    Lines(LineCodec, Box<Lines>),
    /// The events of its parts; there is room for what they come to.
    Events(MemoryPermit),
}

impl Source {
    fn make(
        self,
        manifest: &Manifest,
        parts: &mut dyn Parts,
        abandoned: &AtomicBool,
    ) -> Result<(First, Sealed), Failure> {
        let made = match self {
            Self::Lines(codec, lines) => {
                let (pieces, sealed, held) = lines.into_whole();
                let mut first = First::new(held);
                encoder::write_lines(codec, pieces, sealed, &mut first, abandoned).map(|sealed| (first, sealed))
            }
            Self::Events(held) => {
                let mut first = First::new(held);
                let attachments = Attachments::of(manifest.apart.as_ref());
                let replacing = |record: &Record<'_>| attachments.as_ref()?.replaced(manifest, record);
                encoder::write(manifest, parts, &mut first, abandoned, &replacing).map(|sealed| (first, sealed))
            }
        };
        made.map_err(failed)
    }
}

fn failed(unmade: Unmade) -> Failure {
    match unmade {
        Unmade::Parts(error) => Failure::Parts(error.0),
        // Memory takes everything.
        Unmade::Output(_) | Unmade::Abandoned => Failure::Unanswered,
    }
}

struct Caller(Arc<AtomicBool>);

impl Drop for Caller {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Bytes that are kept, in the pieces in which they came.
struct Kept {
    pieces: Arc<Vec<Bytes>>,
    bytes: usize,
    room: MemoryPermit,
}

impl Kept {
    const fn new(room: MemoryPermit, pieces: Arc<Vec<Bytes>>) -> Self {
        Self { pieces, bytes: 0, room }
    }

    /// Keeps these bytes behind the others; `None` where there is no room.
    fn with(mut self, bytes: &[u8]) -> Option<Self> {
        self.bytes += bytes.len();
        if self.bytes > self.room.bytes() {
            return None;
        }
        Arc::make_mut(&mut self.pieces).push(Bytes::copy_from_slice(bytes));
        Some(self)
    }

    /// Gives back the room that wasn't needed.
    fn shrunk(mut self) -> Self {
        self.room.shrink_to(self.bytes);
        self
    }
}

/// Takes the bytes when they are made first.
struct First {
    md5: Md5,
    /// `None` when they are too many.
    kept: Option<Kept>,
}

impl First {
    fn new(room: MemoryPermit) -> Self {
        Self { md5: Md5::new(), kept: Some(Kept::new(room, Arc::default())) }
    }
}

impl Write for First {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.md5.update(bytes);
        self.kept = self.kept.take().and_then(|kept| kept.with(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Takes them when they are made again.
struct Again(Sender<io::Result<Bytes>>);

impl Write for Again {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A page of a table comes as a whole.
        let bytes = &bytes[..bytes.len().min(BUFFER_BYTES)];
        let sent = self.0.blocking_send(Ok(Bytes::copy_from_slice(bytes)));
        sent.map(|()| bytes.len()).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use event::limits::{OBJECT_KEPT_BYTES_MAX, OBJECTS_KEPT_BYTES_MAX};
    use futures_util::FutureExt;

    use super::*;

    const OBJECT: u64 = OBJECT_KEPT_BYTES_MAX as u64;

    /// Makes an object of so many eighths of what one may keep, if there is room now.
    fn made(room: &MemoryBudget, line_bytes: u64, eighths: usize) -> Option<First> {
        let mut first = First::new(room.take(line_bytes).now_or_never()?.unwrap());
        let piece = vec![7; OBJECT_KEPT_BYTES_MAX as usize / 8];
        (0..eighths).for_each(|_| first.write_all(&piece).unwrap());
        Some(first)
    }

    #[test]
    fn what_is_kept_is_bounded_for_each_object_and_for_all() {
        let room = MemoryBudget::new();
        let kept = |first: First| first.kept.map(|kept| kept.bytes as u64);
        assert_eq!(made(&room, 9 * OBJECT, 9).map(kept), Some(None), "it is too large");
        assert_eq!(made(&room, OBJECT / 8, 2).map(kept), Some(None), "it is larger than was said");
        let all = OBJECTS_KEPT_BYTES_MAX / OBJECT_KEPT_BYTES_MAX as usize;
        let mut whole: Vec<First> = (0..all).map_while(|_| made(&room, OBJECT, 8)).collect();
        assert_eq!(whole.len(), all);
        assert!(made(&room, 1, 1).is_none(), "there is no room");
        whole.pop();
        assert_eq!(made(&room, OBJECT, 8).map(kept), Some(Some(OBJECT)), "one has given its room back");
    }

    /// Memory has as many of them as the network doesn't take yet.
    #[test]
    fn what_is_made_again_goes_in_small_pieces() {
        let (sender, mut pieces) = mpsc::channel(20);
        Again(sender).write_all(&vec![7; 9 * BUFFER_BYTES + 1]).unwrap();
        let lengths: Vec<usize> =
            std::iter::from_fn(|| pieces.try_recv().ok()).map(|piece| piece.unwrap().len()).collect();
        assert_eq!(lengths, [vec![BUFFER_BYTES; 9], vec![1]].concat());
    }

    #[test]
    fn what_a_coding_has_saved_is_room_for_others() {
        let room = MemoryBudget::new();
        let small = |_| made(&room, OBJECT, 1).map(|first| first.kept.map(Kept::shrunk));
        let all = 8 * (OBJECTS_KEPT_BYTES_MAX / OBJECT_KEPT_BYTES_MAX as usize) - 7;
        let kept: Vec<Option<Kept>> = (0..all).map_while(small).collect();
        assert_eq!(kept.len(), all);
        assert!(made(&room, OBJECT, 1).is_none(), "there is no room for a whole one any more");
    }
}
