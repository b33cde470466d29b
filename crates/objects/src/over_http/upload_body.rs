//! The bytes of an object for a store that must know their length and digests before the first byte.
//!
//! They are encoded once to compute these, as soon as there is room, and kept until the store has them. An object that
//! is larger than its room is encoded again while it is sent, and the store compares the digest. So memory is bounded
//! regardless of an object's size, and no disk is needed.

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
use crate::encoder::{self, EncodeError};
use crate::memory_budget::MemoryBudget;
use crate::sealed::{BUFFER_BYTES, Sealed};
use crate::{Manifest, Parts};
use sink::{Reason, Record};

/// Pieces of 64 KiB that are ready before the network accepts them.
const PIECES_AHEAD: usize = 4;

/// An object whose bytes were encoded once.
pub(super) struct EncodedObject {
    manifest: Manifest,
    parts: Mutex<Box<dyn Parts>>,
    /// `None` if they are too many: then they are encoded again.
    kept: Option<Kept>,
    pub(super) sealed: Sealed,
    pub(super) digests: Digests,
    /// Why its bytes couldn't be encoded again.
    read_error: Arc<OnceLock<Reason>>,
    /// The waiting caller: dropping this cancels the encoding.
    caller: Caller,
}

impl EncodedObject {
    /// Encodes the bytes when there is room for an object of at most `line_bytes` before they are encoded.
    pub(super) async fn make(
        manifest: &Manifest,
        mut parts: Box<dyn Parts>,
        budget: &MemoryBudget,
        line_bytes: u64,
    ) -> Result<Self, ObjectStoreError> {
        let room = budget.take(line_bytes).await.map_err(|_| ObjectStoreError::Unanswered)?;
        let caller = Caller(Arc::default());
        let (manifest, abandoned) = (manifest.clone(), caller.0.clone());
        let encoded = tokio::task::spawn_blocking(move || {
            let mut first = FirstPass::new(room);
            let attachments = Attachments::of(manifest.apart.as_ref());
            let replacing = |record: &Record<'_>| attachments.as_ref()?.replaced(&manifest, record);
            let sealed = encoder::write(&manifest, &mut *parts, &mut first, &abandoned, &replacing).map_err(failed)?;
            Ok((manifest, parts, sealed, first))
        });
        let (manifest, parts, sealed, first) = encoded.await.unwrap_or(Err(ObjectStoreError::Unanswered))?;
        let digests = Digests { bytes: sealed.bytes, md5: first.md5.finalize().into(), sha256: sealed.sha256 };
        let (parts, kept) = (Mutex::new(parts), first.kept.map(Kept::shrunk));
        Ok(Self { manifest, parts, kept, sealed, digests, read_error: Arc::default(), caller })
    }

    /// The bytes from the first on.
    fn body(&self) -> UploadBody {
        if let Some(kept) = &self.kept {
            return UploadBody::Kept { pieces: kept.pieces.clone().into_iter(), left: self.digests.bytes };
        }
        let (sender, pieces) = mpsc::channel(PIECES_AHEAD);
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner).again();
        let (manifest, abandoned, read_error) = (self.manifest.clone(), self.caller.0.clone(), self.read_error.clone());
        tokio::task::spawn_blocking(move || {
            let mut again = Again(sender);
            let attachments = Attachments::of(manifest.apart.as_ref());
            let replacing = |record: &Record<'_>| attachments.as_ref()?.replaced(&manifest, record);
            let encoded = encoder::write_again(&manifest, &mut *parts, &mut again, &abandoned, &replacing);
            if let Err(EncodeError::Parts(error)) = encoded {
                // Set before the body fails, because the sender then reads it.
                let _ = read_error.set(error.0);
                let _ = again.0.blocking_send(Err(io::ErrorKind::UnexpectedEof.into()));
            }
        });
        UploadBody::Made { pieces, left: self.digests.bytes }
    }

    /// Why a body of this object ended early, unless the network caused it.
    pub(super) fn read_error(&self) -> Option<ObjectStoreError> {
        self.read_error.get().map(|reason| ObjectStoreError::Parts(reason.clone()))
    }

    /// The upload of its bytes.
    pub(super) fn upload<'a>(
        &'a self,
        name: &'a str,
        content_type: HeaderValue,
    ) -> Upload<'a, impl Fn() -> UploadBody + Send + Sync> {
        Upload { name, digests: self.digests, content_type, is_once: false, body: || self.body() }
    }

    /// Its statistics, and the parts, all of which were read.
    pub(super) fn into_stored(self) -> (Sealed, Box<dyn Parts>) {
        (self.sealed, self.parts.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}

fn failed(unmade: EncodeError) -> ObjectStoreError {
    match unmade {
        EncodeError::Parts(error) => ObjectStoreError::Parts(error.0),
        // Writes to memory don't fail.
        EncodeError::Output(_) | EncodeError::Abandoned => ObjectStoreError::Unanswered,
    }
}

struct Caller(Arc<AtomicBool>);

impl Drop for Caller {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Bytes in memory, in the pieces in which they were encoded.
struct Kept {
    pieces: Vec<Bytes>,
    bytes: usize,
    room: OwnedSemaphorePermit,
}

impl Kept {
    /// Appends these bytes; `None` if there is no room.
    fn with(mut self, bytes: &[u8]) -> Option<Self> {
        self.bytes += bytes.len();
        if self.bytes > self.room.num_permits() {
            return None;
        }
        self.pieces.push(Bytes::copy_from_slice(bytes));
        Some(self)
    }

    /// Releases the room that wasn't needed.
    fn shrunk(mut self) -> Self {
        drop(self.room.split(self.room.num_permits() - self.bytes));
        self
    }
}

/// Receives the bytes of the first encoding.
struct FirstPass {
    md5: Md5,
    /// `None` if they are too many.
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

/// Receives the bytes of a repeated encoding.
struct Again(Sender<io::Result<Bytes>>);

impl Write for Again {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A page of a table is written as a whole.
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

    /// Encodes an object of this many eighths of the maximum, if there is room now.
    fn encoded(room: &MemoryBudget, line_bytes: u64, eighths: usize) -> Option<FirstPass> {
        let mut first = FirstPass::new(room.take(line_bytes).now_or_never()?.unwrap());
        let piece = vec![7; OBJECT_KEPT_BYTES_MAX as usize / 8];
        (0..eighths).for_each(|_| first.write_all(&piece).unwrap());
        Some(first)
    }

    #[test]
    fn memory_is_bounded_for_each_object_and_together() {
        let room = MemoryBudget::new();
        let kept = |first: FirstPass| first.kept.map(|kept| kept.bytes as u64);
        assert_eq!(encoded(&room, 9 * OBJECT, 9).map(kept), Some(None), "it is too large");
        assert_eq!(encoded(&room, OBJECT / 8, 2).map(kept), Some(None), "it is larger than announced");
        let all = OBJECTS_KEPT_BYTES_MAX / OBJECT_KEPT_BYTES_MAX as usize;
        let mut whole: Vec<FirstPass> = (0..all).map_while(|_| encoded(&room, OBJECT, 8)).collect();
        assert_eq!(whole.len(), all);
        assert!(encoded(&room, 1, 1).is_none(), "there is no room");
        whole.pop();
        assert_eq!(encoded(&room, OBJECT, 8).map(kept), Some(Some(OBJECT)), "one has released its room");
    }

    /// Memory holds the pieces that the network doesn't accept yet.
    #[test]
    fn repeated_encoding_is_sent_in_small_pieces() {
        let (sender, mut pieces) = mpsc::channel(20);
        Again(sender).write_all(&vec![7; 9 * BUFFER_BYTES + 1]).unwrap();
        let lengths: Vec<usize> =
            std::iter::from_fn(|| pieces.try_recv().ok()).map(|piece| piece.unwrap().len()).collect();
        assert_eq!(lengths, [vec![BUFFER_BYTES; 9], vec![1]].concat());
    }

    #[test]
    fn unused_room_is_released_after_compression() {
        let room = MemoryBudget::new();
        let small = |_| encoded(&room, OBJECT, 1).map(|first| first.kept.map(Kept::shrunk));
        let all = 8 * (OBJECTS_KEPT_BYTES_MAX / OBJECT_KEPT_BYTES_MAX as usize) - 7;
        let kept: Vec<Option<Kept>> = (0..all).map_while(small).collect();
        assert_eq!(kept.len(), all);
        assert!(encoded(&room, OBJECT, 1).is_none(), "there is no longer room for a whole one");
    }
}
