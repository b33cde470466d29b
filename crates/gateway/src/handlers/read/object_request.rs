//! `GET /objects/{sink}/{name}`: an object that a sink has stored, whole or a part of it.

use std::ops::Range;
use std::sync::Arc;
use std::task::{Context, Poll};

use event::Position;
use event::object::{Bytes, FoundObject, ObjectReader, Pieces};
use event::read::ReadError;
use http::StatusCode;

use super::conditions::{Conditions, Wanted};
use super::content_type::shown;
use super::lookup::of_store;
use super::response;
use crate::admission::ClientBucket;
use crate::error_code::ErrorCode;
use crate::handlers::rejection::{Origin, reject};
use crate::object_readers::ObjectReaders;
use crate::problem::{Problem, Refused};
use crate::route::RouteName;
use crate::shard::ShardContext;
use http1::{Fields, Method, Response, StreamedBody};

/// Bytes that a stream of pieces may have in memory.
const STREAM_ROOM: usize = 1024 * 1024;
/// Bytes of a piece of an object that is in memory: what is copied for a slow client. There may be a thousand at the same time.
const PIECE_BYTES: usize = 16 * 1024;
/// Clients choose the bytes and their type: these headers make browsers trust the type and run none of the bytes.
const LINES: &str = "accept-ranges: bytes\r\nx-content-type-options: nosniff\r\n\
                     content-security-policy: default-src 'none'; sandbox\r\n";

/// A request for an object.
pub(crate) struct ObjectRequest {
    reader: Arc<dyn ObjectReader>,
    name: Box<str>,
    is_head: bool,
    conditions: Conditions,
}

impl ObjectRequest {
    /// # Errors
    /// The path names no sink that serves objects.
    pub(crate) fn of(
        readers: &ObjectReaders,
        named: Option<&str>,
        fields: &Fields<'_>,
        method: Method,
    ) -> Result<Self, Refused> {
        let (sink, name) = named.and_then(|named| named.split_once('/')).ok_or_else(unknown)?;
        let reader = readers.get(sink).ok_or_else(unknown)?.clone();
        let conditions = Conditions::of(fields, method);
        Ok(Self { reader, name: name.into(), is_head: method == Method::Head, conditions })
    }

    pub(super) async fn respond(&self, shard: &ShardContext, client: ClientBucket) -> Result<Response, Refused> {
        // Checked before the store is read: an object that is processed by now is found there, or nowhere.
        let awaited = self.awaited(shard);
        let looked = self.reader.look(&self.name).await.map_err(|error| of_store(&error))?;
        let Some(found) = looked else {
            let pending = |position| response::pending_object(self.reader.name(), position);
            return awaited.map(pending).ok_or_else(unknown);
        };
        let range = match self.conditions.wanted(&found.etag, found.bytes) {
            Wanted::Whole => 0..found.bytes,
            Wanted::Part(range) => range,
            Wanted::Same => return Ok(self.head(StatusCode::NOT_MODIFIED, &found)),
            Wanted::Nothing => return Ok(self.out_of_range(shard, &found)),
        };
        let mut response = match range == (0..found.bytes) {
            true => self.head(StatusCode::OK, &found),
            false => self.head_of_part(&range, &found),
        };
        let bytes = range.end - range.start;
        let pieces = if self.is_head {
            None
        } else {
            let room_max = if found.content.is_some() { PIECE_BYTES } else { STREAM_ROOM };
            let room = usize::try_from(bytes).map_or(room_max, |bytes| bytes.min(room_max));
            response.reservation = Some(Box::new(shard.shared.read_budget.take(room, client)?));
            Some(self.pieces(&found, range).await?)
        };
        response.streamed = Some(StreamedBody { bytes, pieces });
        Ok(response)
    }

    async fn pieces(&self, found: &FoundObject, range: Range<u64>) -> Result<Box<dyn Pieces>, Refused> {
        match &found.content {
            Some(content) => Ok(Box::new(InMemory::new(content, &range))),
            None => self.reader.open(&self.name, found, range).await.map_err(|error| of_store(&error)),
        }
    }

    /// The position of the event that this object belongs to, if the event is durable and waits for the sink.
    fn awaited(&self, shard: &ShardContext) -> Option<Position> {
        self.reader.awaited(&self.name).filter(|position| shard.log.has_durable(*position))
    }

    fn head(&self, status: StatusCode, found: &FoundObject) -> Response {
        let mut fields = format!("etag: {}\r\ncache-control: {}\r\n", found.etag, self.reader.cache_control());
        if status != StatusCode::NOT_MODIFIED {
            fields += &shown(&found.content_type);
        }
        Response { status, lines: LINES, fields: Some(fields.into()), ..Response::ok() }
    }

    fn head_of_part(&self, range: &Range<u64>, found: &FoundObject) -> Response {
        let head = self.head(StatusCode::PARTIAL_CONTENT, found);
        let part = format!("content-range: bytes {}-{}/{}\r\n", range.start, range.end - 1, found.bytes);
        Response { fields: head.fields.map(|fields| (fields.into_string() + &part).into()), ..head }
    }

    fn out_of_range(&self, shard: &ShardContext, found: &FoundObject) -> Response {
        let bytes = found.bytes;
        let refused =
            Problem::boxed(ErrorCode::Range, format!("the object has {bytes} bytes: request a range within them"));
        let fields = format!("etag: {}\r\ncontent-range: bytes */{bytes}\r\n", found.etag);
        let source = shard.authenticator.anonymous();
        let origin = Origin { route: RouteName::Objects, source: &source, client: None, named: None };
        Response { fields: Some(fields.into()), ..reject(shard, &refused, &origin) }
    }
}

fn unknown() -> Refused {
    let detail = "no sink that serves its objects has one of this name: request /objects/SINK/NAME with a name from \
                  a stored line or manifest";
    Problem::boxed(ErrorCode::UnknownObject, detail)
}

/// Bytes in memory, shared by all requests for them.
struct InMemory {
    left: Bytes,
}

impl InMemory {
    /// The range lies within the content.
    fn new(content: &Bytes, range: &Range<u64>) -> Self {
        let at = |byte: u64| usize::try_from(byte).map_or(content.len(), |at| at.min(content.len()));
        Self { left: content.slice(at(range.start)..at(range.end)) }
    }
}

impl Pieces for InMemory {
    fn poll_next(&mut self, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, ReadError>>> {
        let piece = self.left.split_to(PIECE_BYTES.min(self.left.len()));
        Poll::Ready((!piece.is_empty()).then_some(Ok(piece)))
    }
}
