//! Objects of gateways: their bytes are streamed from the network to files, and back.

use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use futures_util::future::join;
use futures_util::stream;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use sha2::{Digest, Sha256};
use tokio::sync::mpsc::{self, Receiver, Sender};

use super::directory::Directory;
use super::put::{Comparison, Named};
use super::{error, read};
use net::http_client::{BodyError, RequestBody};
use objects::read::PIECE_BYTES;
use objects::{ObjectDownload, ObjectQuery, ObjectUpload};
use sink::SinkError;

/// Received pieces that wait for the disk.
const PIECES_AHEAD: usize = 4;

impl Directory {
    /// Stores an object that a gateway sends.
    pub(super) async fn write_upload(&self, upload: ObjectUpload) -> Result<(), SinkError> {
        let ObjectUpload { name, bytes, sha256, replaces, body, .. } = upload;
        let (sender, pieces) = mpsc::channel(PIECES_AHEAD);
        // The gateway chooses the name of its description: at worst, an object wrongly counts as having none.
        let description = self.rules().manifests.manifest_of(&name);
        let writing = self.work_on_thread(move |files, folder, abandoned| {
            let named = Named { files, folder, name: &name, description: &description };
            Accepting { named, bytes, sha256, pieces, abandoned }.run(replaces)
        });
        join(pass(body, sender), writing).await.1
    }

    /// Returns an object to a gateway.
    pub(super) async fn download(&self, name: &str, query: &ObjectQuery) -> Result<ObjectDownload, SinkError> {
        let sought = name.to_owned();
        let opened = self.reading(move |folder| read::find(folder, &sought)).await?;
        let Some((file, found)) = opened else { return Ok(ObjectDownload::Missing) };
        let range = match query {
            ObjectQuery::Unless(Some(tag)) if **tag == *found.etag => return Ok(ObjectDownload::Same),
            ObjectQuery::Unless(_) => 0..found.bytes,
            ObjectQuery::Part(tag, range) if **tag == *found.etag && range.end <= found.bytes => range.clone(),
            ObjectQuery::Part(..) => return Err(read::changed(name)),
        };
        Ok(ObjectDownload::Found(found, self.body(file, range)))
    }

    fn body(&self, file: File, range: Range<u64>) -> RequestBody {
        let (directory, file) = (self.clone(), Arc::new(file));
        let pieces = stream::unfold(range.start, move |at| {
            let (directory, file, end) = (directory.clone(), file.clone(), range.end.min(at + PIECE_BYTES as u64));
            async move {
                if at >= end {
                    return None;
                }
                let piece = directory.reading(move |folder| read::piece(folder, &file, at..end)).await;
                Some((piece.map(|piece| Frame::data(Bytes::from(piece))).map_err(BodyError::from), end))
            }
        });
        BodyExt::boxed_unsync(StreamBody::new(pieces))
    }
}

/// Forwards received bytes, as fast as the disk accepts them.
async fn pass(mut body: RequestBody, sender: Sender<Bytes>) {
    while let Some(Ok(frame)) = body.frame().await {
        let Ok(piece) = frame.into_data() else { continue };
        if sender.send(piece).await.is_err() {
            return;
        }
    }
}

/// Why an object wasn't written.
enum Unwritten {
    Output(io::Error),
    Damaged,
    Abandoned,
}

impl From<io::Error> for Unwritten {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// An object that is being written to its directory.
struct Accepting<'a> {
    named: Named<'a>,
    bytes: u64,
    sha256: [u8; 32],
    pieces: Receiver<Bytes>,
    abandoned: &'a AtomicBool,
}

impl Accepting<'_> {
    fn run(mut self, replaces: bool) -> Result<(), SinkError> {
        let object = self.named.object();
        // A process that reads this directory's configuration may also write to it.
        let _lock = self.named.files.lock(self.named.folder).map_err(|error| self.named.failed(&error))?;
        if !replaces {
            match self.named.files.open(&object) {
                Ok(there) => return self.compare(Comparison::new(there), &object),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(self.named.failed(&error)),
            }
        }
        let Self { named, bytes, sha256, pieces, abandoned } = &mut self;
        let expected = (*bytes, *sha256);
        let written = named.write_file(&object, |mut file| write_pieces(pieces, expected, abandoned, &mut file));
        written.map_err(|unwritten| self.failed(unwritten))
    }

    /// The object exists: it must equal the upload.
    fn compare(&mut self, mut comparison: Comparison, object: &Path) -> Result<(), SinkError> {
        let expected = (self.bytes, self.sha256);
        let poured = write_pieces(&mut self.pieces, expected, self.abandoned, &mut comparison);
        poured.map_err(|unwritten| self.failed(unwritten))?;
        if !comparison.ends_here().map_err(|error| self.named.failed(&error))? {
            return Err(error::upload_conflict(object));
        }
        self.named.sync_name().map_err(|error| self.named.failed(&error))
    }

    fn failed(&self, unwritten: Unwritten) -> SinkError {
        match unwritten {
            Unwritten::Output(error) => self.named.failed(&error),
            Unwritten::Damaged => error::damaged(&self.named.object()),
            Unwritten::Abandoned => error::abandoned(&self.named.object()),
        }
    }
}

/// Writes all pieces, which must have this many bytes in total, with this digest.
fn write_pieces(
    pieces: &mut Receiver<Bytes>,
    expected: (u64, [u8; 32]),
    abandoned: &AtomicBool,
    output: &mut dyn Write,
) -> Result<(), Unwritten> {
    let (mut bytes, mut sha256) = (0, Sha256::new());
    while let Some(piece) = pieces.blocking_recv() {
        bytes += piece.len() as u64;
        if bytes > expected.0 {
            return Err(Unwritten::Damaged);
        }
        sha256.update(&piece);
        output.write_all(&piece)?;
    }
    if abandoned.load(Ordering::Relaxed) {
        return Err(Unwritten::Abandoned);
    }
    let is_whole = (bytes, <[u8; 32]>::from(sha256.finalize())) == expected;
    if is_whole { Ok(()) } else { Err(Unwritten::Damaged) }
}
