//! An object's bytes on their way to a store that must know their length and digests before the first of them.
//!
//! They are made once for that, as soon as there is room, and kept until the store has them. Those of an object that is larger than its room
//! are made again while they are sent, and the store compares them with the digest. So memory has a bound whatever an object's size, and
//! no disk is needed.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use http::HeaderValue;
use md5::{Digest, Md5};
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::{self, Sender};

use super::attachments::Attachments;
use super::body::UploadBody;
use super::digests::Digests;
use super::error::ObjectStoreError;
use super::upload::Upload;
use crate::encoder::{self, Unmade};
use crate::memory_budget::MemoryBudget;
use crate::sealed::{BUFFER_BYTES, Sealed};
use crate::{Manifest, Parts};
use sink::{Reason, Record};

/// Pieces of 64 KiB that are ready before the network takes them.
const PIECES_AHEAD: usize = 4;

/// An object whose bytes were made once.
pub(super) struct EncodedObject {
    manifest: Manifest,
    parts: Mutex<Box<dyn Parts>>,
    /// `None` if they are too many: then they are made again.
    kept: Option<Kept>,
    pub(super) sealed: Sealed,
    pub(super) digests: Digests,
    /// Why its bytes couldn't be made again.
    trouble: Arc<OnceLock<Reason>>,
    /// Whoever waits for it: with this goes the wish for it.
    caller: Caller,
}

impl EncodedObject {
    /// Makes the bytes when there is room for an object of at most `line_bytes` before they are encoded.
    pub(super) async fn make(
        manifest: &Manifest,
        mut parts: Box<dyn Parts>,
        budget: &MemoryBudget,
        line_bytes: u64,
    ) -> Result<Self, ObjectStoreError> {
        let room = budget.take(line_bytes).await.map_err(|_| ObjectStoreError::Unanswered)?;
        let caller = Caller(Arc::default());
        let (manifest, abandoned) = (manifest.clone(), caller.0.clone());
        let made = tokio::task::spawn_blocking(move || {
            let mut first = FirstPass::new(room);
            let attachments = Attachments::of(manifest.apart.as_ref());
            let replacing = |record: &Record<'_>| attachments.as_ref()?.replaced(&manifest, record);
            let sealed = encoder::write(&manifest, &mut *parts, &mut first, &abandoned, &replacing).map_err(failed)?;
            Ok((manifest, parts, sealed, first))
        });
        let (manifest, parts, sealed, first) = made.await.unwrap_or(Err(ObjectStoreError::Unanswered))?;
        let digests = Digests { bytes: sealed.bytes, md5: first.md5.finalize().into(), sha256: sealed.sha256 };
        let (parts, kept) = (Mutex::new(parts), first.kept.map(Kept::shrunk));
        Ok(Self { manifest, parts, kept, sealed, digests, trouble: Arc::default(), caller })
    }

    /// The bytes from the first on.
    fn body(&self) -> UploadBody {
        if let Some(kept) = &self.kept {
            return UploadBody::Kept { pieces: kept.pieces.clone().into_iter(), left: self.digests.bytes };
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
        UploadBody::Made { pieces, left: self.digests.bytes }
    }

    /// Why a body of this object ended early, if it did so by itself.
    pub(super) fn trouble(&self) -> Option<ObjectStoreError> {
        self.trouble.get().map(|reason| ObjectStoreError::Parts(reason.clone()))
    }

    /// The bytes by which the store knows it, and what they are.
    pub(super) fn upload<'a>(
        &'a self,
        name: &'a str,
        content_type: HeaderValue,
    ) -> Upload<'a, impl Fn() -> UploadBody + Send + Sync> {
        Upload { name, digests: self.digests, content_type, is_once: false, body: || self.body() }
    }

    /// What it came to, and the parts, all of which were read.
    pub(super) fn into_stored(self) -> (Sealed, Box<dyn Parts>) {
        (self.sealed, self.parts.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}

fn failed(unmade: Unmade) -> ObjectStoreError {
    match unmade {
        Unmade::Parts(error) => ObjectStoreError::Parts(error.0),
        // Memory takes everything.
        Unmade::Output(_) | Unmade::Abandoned => ObjectStoreError::Unanswered,
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
    pieces: Vec<Bytes>,
    bytes: usize,
    room: OwnedSemaphorePermit,
}

impl Kept {
    /// Keeps these bytes behind the others; `None` where there is no room.
    fn with(mut self, bytes: &[u8]) -> Option<Self> {
        self.bytes += bytes.len();
        if self.bytes > self.room.num_permits() {
            return None;
        }
        self.pieces.push(Bytes::copy_from_slice(bytes));
        Some(self)
    }

    /// Gives back the room that wasn't needed.
    fn shrunk(mut self) -> Self {
        drop(self.room.split(self.room.num_permits() - self.bytes));
        self
    }
}

/// Takes the bytes when they are made first.
struct FirstPass {
    md5: Md5,
    /// `None` when they are too many.
    kept: Option<Kept>,
}

impl FirstPass {
    fn new(room: OwnedSemaphorePermit) -> Self {
        Self { md5: Md5::new(), kept: Some(Kept { pieces: Vec::new(), bytes: 0, room }) }
    }
}

impl Write for FirstPass {
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
    use futures_util::FutureExt;
    use limits::{OBJECT_KEPT_BYTES_MAX, OBJECTS_KEPT_BYTES_MAX};

    use super::*;

    const OBJECT: u64 = OBJECT_KEPT_BYTES_MAX as u64;

    /// Makes an object of so many eighths of what one may keep, if there is room now.
    fn made(room: &MemoryBudget, line_bytes: u64, eighths: usize) -> Option<FirstPass> {
        let mut first = FirstPass::new(room.take(line_bytes).now_or_never()?.unwrap());
        let piece = vec![7; OBJECT_KEPT_BYTES_MAX as usize / 8];
        (0..eighths).for_each(|_| first.write_all(&piece).unwrap());
        Some(first)
    }

    #[test]
    fn what_is_kept_is_bounded_for_each_object_and_for_all() {
        let room = MemoryBudget::new();
        let kept = |first: FirstPass| first.kept.map(|kept| kept.bytes as u64);
        assert_eq!(made(&room, 9 * OBJECT, 9).map(kept), Some(None), "it is too large");
        assert_eq!(made(&room, OBJECT / 8, 2).map(kept), Some(None), "it is larger than was said");
        let all = OBJECTS_KEPT_BYTES_MAX / OBJECT_KEPT_BYTES_MAX as usize;
        let mut whole: Vec<FirstPass> = (0..all).map_while(|_| made(&room, OBJECT, 8)).collect();
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
