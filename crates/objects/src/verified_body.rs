//! An upload's body that fails unless its bytes have the announced length and both digests. Its end fails before the store has the last
//! bytes, so each object that a store completes is the gateway's.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use md5::Md5;
use net::http_client::{BodyError, RequestBody};
use sha2::{Digest, Sha256};

/// The error of the body.
const DIFFERS: &str = "the object's bytes differ from the digests that the gateway sent with it";

/// The body of an upload while it is checked.
pub(crate) struct VerifiedBody {
    from: RequestBody,
    left: u64,
    md5: Md5,
    sha256: Sha256,
    expected: ([u8; 16], [u8; 32]),
    is_checked: bool,
}

impl VerifiedBody {
    /// A body that must have this many bytes, with this MD5 and this SHA-256.
    pub(crate) fn new(from: RequestBody, bytes: u64, expected: ([u8; 16], [u8; 32])) -> Self {
        Self { from, left: bytes, md5: Md5::new(), sha256: Sha256::new(), expected, is_checked: false }
    }

    /// Adds the next bytes, and checks them once they are complete.
    fn take(&mut self, bytes: &[u8]) -> Result<(), BodyError> {
        self.left = self.left.checked_sub(bytes.len() as u64).ok_or(DIFFERS)?;
        self.md5.update(bytes);
        self.sha256.update(bytes);
        if self.left > 0 || self.is_checked {
            return Ok(());
        }
        self.is_checked = true;
        let found = (self.md5.finalize_reset().into(), self.sha256.finalize_reset().into());
        if found == self.expected { Ok(()) } else { Err(DIFFERS.into()) }
    }

    fn end(&mut self) -> Result<(), BodyError> {
        if self.left > 0 { Err(DIFFERS.into()) } else { self.take(&[]) }
    }
}

impl Body for VerifiedBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        Poll::Ready(match ready!(Pin::new(&mut self.from).poll_frame(cx)) {
            None => self.end().err().map(Err),
            Some(Ok(frame)) => {
                let checked = frame.data_ref().map_or(Ok(()), |bytes| self.take(bytes));
                Some(checked.map(|()| frame))
            }
            Some(Err(error)) => Some(Err(error)),
        })
    }

    fn size_hint(&self) -> SizeHint {
        self.from.size_hint()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails loudly")]
mod tests {
    use futures_util::stream;
    use http_body_util::{BodyExt, StreamBody};

    use super::*;

    /// The bytes that a store gets from a body of these pieces, and whether the body succeeds.
    async fn received(pieces: &[&'static [u8]], bytes: u64, expected: ([u8; 16], [u8; 32])) -> (Vec<u8>, bool) {
        let frames: Vec<Result<_, BodyError>> =
            pieces.iter().map(|piece| Ok(Frame::data(Bytes::from_static(piece)))).collect();
        let from = BodyExt::boxed_unsync(StreamBody::new(stream::iter(frames)));
        let (mut body, mut got) = (VerifiedBody::new(from, bytes, expected), Vec::new());
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else { return (got, false) };
            got.extend_from_slice(&frame.into_data().unwrap());
        }
        (got, true)
    }

    #[tokio::test]
    async fn body_fails_unless_both_digests_match() {
        let digests: ([u8; 16], [u8; 32]) = (Md5::digest(b"abcdef").into(), Sha256::digest(b"abcdef").into());
        let pieces: &[&[u8]] = &[b"abc", b"def"];
        assert_eq!(received(pieces, 6, digests).await, (b"abcdef".to_vec(), true));
        for (bytes, expected) in [(6, ([0; 16], digests.1)), (6, (digests.0, [0; 32]))] {
            assert_eq!(
                received(pieces, bytes, expected).await,
                (b"abc".to_vec(), false),
                "the last piece is held back"
            );
        }
        assert_eq!(received(pieces, 5, digests).await, (b"abc".to_vec(), false), "too many bytes");
        assert_eq!(received(pieces, 7, digests).await, (b"abcdef".to_vec(), false), "too few bytes");
        let nothing = (Md5::digest(b"").into(), Sha256::digest(b"").into());
        assert_eq!(received(&[], 0, nothing).await, (Vec::new(), true));
        assert_eq!(received(&[], 0, digests).await, (Vec::new(), false));
    }
}
