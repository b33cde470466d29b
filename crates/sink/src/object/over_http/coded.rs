//! An object's bytes on their way to a store that must know their length and digests before the first of them.
//!
//! They are made once for that. A small object's are kept meanwhile; a large one's are made again while they are sent, and the store
//! holds them against the digest. So memory has a bound whatever an object's size, and no disk is needed.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use event::limits::{OBJECT_KEPT_BYTES_MAX, OBJECTS_KEPT_BYTES_MAX};
use http::HeaderValue;
use md5::Md5;
use sha2::{Digest, Sha256};
use tokio::sync::mpsc::{self, Sender};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::apart::Parting;
use super::body::Body;
use super::failure::Failure;
use super::put::Upload;
use crate::object::content::{self, Sealed, Unmade};
use crate::object::{Manifest, Parts};
use crate::{Reason, Record};

/// Pieces of 64 KiB that are ready before the network takes them.
const PIECES_AHEAD: usize = 4;

/// The digests by which stores know bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Digests {
    pub(super) bytes: u64,
    pub(super) md5: [u8; 16],
    pub(super) sha256: [u8; 32],
}

impl Digests {
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self { bytes: bytes.len() as u64, md5: Md5::digest(bytes).into(), sha256: Sha256::digest(bytes).into() }
    }
}

/// Room for the bytes that a store keeps, of all its objects. Cheap to clone: the clones share it.
#[derive(Clone)]
pub(super) struct Room(Arc<Semaphore>);

impl Room {
    pub(super) fn new() -> Self {
        Self(Arc::new(Semaphore::new(OBJECTS_KEPT_BYTES_MAX)))
    }

    /// Room for so many bytes, until it is dropped, if there is as much now.
    fn take(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        self.0.clone().try_acquire_many_owned(u32::try_from(bytes).ok()?).ok()
    }
}

/// An object whose bytes were made once.
pub(super) struct Coded<P> {
    manifest: Manifest,
    parts: Mutex<P>,
    kept: Option<(Bytes, OwnedSemaphorePermit)>,
    pub(super) sealed: Sealed,
    pub(super) digests: Digests,
    /// Why its bytes couldn't be made again.
    trouble: Arc<OnceLock<Reason>>,
    /// Whoever waits for it: with this goes the wish for it.
    caller: Caller,
}

impl<P: Parts> Coded<P> {
    /// Makes the bytes, on a thread that may block.
    pub(super) async fn make(manifest: &Manifest, parts: P, room: Room) -> Result<Self, Failure> {
        let caller = Caller(Arc::default());
        let (manifest, abandoned) = (manifest.clone(), caller.0.clone());
        let made = tokio::task::spawn_blocking(move || {
            let mut parts = parts;
            let mut first = First::new(room);
            let parting = Parting::of(manifest.apart.as_ref());
            let replacing = |record: &Record<'_>| parting.as_ref()?.replaced(&manifest, record);
            let sealed = content::write(&manifest, &mut parts, &mut first, &abandoned, &replacing).map_err(failed)?;
            let digests = Digests { bytes: sealed.bytes, md5: first.md5.finalize().into(), sha256: sealed.sha256 };
            let kept = first.kept.map(|(bytes, room)| (Bytes::from(bytes), room));
            Ok((manifest, Mutex::new(parts), kept, sealed, digests))
        });
        let (manifest, parts, kept, sealed, digests) = made.await.unwrap_or(Err(Failure::Unanswered))?;
        Ok(Self { manifest, parts, kept, sealed, digests, trouble: Arc::default(), caller })
    }

    /// The bytes from the first on.
    fn body(&self) -> Body {
        if let Some((kept, _)) = &self.kept {
            return Body::Whole(kept.clone());
        }
        let (sender, pieces) = mpsc::channel(PIECES_AHEAD);
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner).again();
        let (manifest, abandoned, trouble) = (self.manifest.clone(), self.caller.0.clone(), self.trouble.clone());
        tokio::task::spawn_blocking(move || {
            let mut again = Again(sender);
            let parting = Parting::of(manifest.apart.as_ref());
            let replacing = |record: &Record<'_>| parting.as_ref()?.replaced(&manifest, record);
            let made = content::write_again(&manifest, &mut parts, &mut again, &abandoned, &replacing);
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
        let is_made_again = self.kept.is_none();
        Upload { name, digests: self.digests, content_type, body: || self.body(), is_made_again }
    }

    /// The parts, all of which were read.
    pub(super) fn into_parts(self) -> P {
        self.parts.into_inner().unwrap_or_else(PoisonError::into_inner)
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

/// Takes the bytes when they are made first.
struct First {
    md5: Md5,
    room: Room,
    /// `None` when they are too many.
    kept: Option<(Vec<u8>, OwnedSemaphorePermit)>,
}

impl First {
    fn new(room: Room) -> Self {
        let kept = room.take(0).map(|none| (Vec::new(), none));
        Self { md5: Md5::new(), room, kept }
    }

    /// Keeps these bytes behind the others, if there is room.
    fn keep(&mut self, bytes: &[u8]) -> Option<()> {
        let (kept, room) = self.kept.as_mut()?;
        if kept.len() + bytes.len() > OBJECT_KEPT_BYTES_MAX {
            return None;
        }
        room.merge(self.room.take(bytes.len())?);
        kept.extend_from_slice(bytes);
        Some(())
    }
}

impl Write for First {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.md5.update(bytes);
        if self.keep(bytes).is_none() {
            self.kept = None;
        }
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
        let sent = self.0.blocking_send(Ok(Bytes::copy_from_slice(bytes)));
        sent.map(|()| bytes.len()).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_bounded_for_each_object_and_for_all() {
        let (room, piece) = (Room::new(), vec![7; OBJECT_KEPT_BYTES_MAX / 8]);
        let made = |pieces: usize| {
            let mut first = First::new(room.clone());
            (0..pieces).for_each(|_| first.write_all(&piece).unwrap());
            first
        };
        let kept = |first: &First| first.kept.as_ref().map(|(bytes, _)| bytes.len());
        assert_eq!(kept(&made(9)), None, "it is too large");
        let mut whole: Vec<First> = (0..OBJECTS_KEPT_BYTES_MAX / OBJECT_KEPT_BYTES_MAX).map(|_| made(8)).collect();
        assert!(whole.iter().all(|first| kept(first) == Some(OBJECT_KEPT_BYTES_MAX)));
        assert_eq!(kept(&made(1)), None, "there is no room");
        whole.pop();
        assert_eq!(kept(&made(8)), Some(OBJECT_KEPT_BYTES_MAX), "one has given its room back");
    }
}
