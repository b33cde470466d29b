//! What a request wants to read, checked: one event, or a page of them; and what both have in common.

use std::sync::Arc;

use event::limits::EVENT_BYTES_MAX;
use event::read::{ReadError, StoreReader};
use event::{Position, TypeName};

use super::cursor;
use super::event_request::EventRequest;
use super::object_request::ObjectRequest;
use super::page_request::PageRequest;
use super::parameters::Parameters;
use crate::admission::{ClientBucket, ReadPermit};
use crate::error_code::ErrorCode;
use crate::event_types::TypeRegistry;
use crate::http1::Response;
use crate::problem::{Problem, Refused};
use crate::shard::ShardContext;

/// Bytes that an event of full size may take, with its envelope.
pub(super) const EVENT_ROOM: usize = EVENT_BYTES_MAX + 1024;

/// What is to be read.
pub(crate) enum ReadRequest {
    Event(EventRequest),
    Page(PageRequest),
    Object(ObjectRequest),
}

impl ReadRequest {
    /// # Errors
    /// It can't be answered, whatever is stored.
    pub(crate) fn of(
        types: &TypeRegistry,
        id: Option<&str>,
        query: Option<&str>,
        source: &str,
    ) -> Result<Self, Refused> {
        match id {
            Some(id) => EventRequest::of(types, id, query).map(Self::Event),
            None => PageRequest::of(types, query, source).map(Self::Page),
        }
    }

    /// Reads, for this client.
    ///
    /// # Errors
    /// There is nothing to answer with, or not now.
    pub(crate) async fn respond(&self, shard: &ShardContext, client: ClientBucket) -> Result<Response, Refused> {
        match self {
            Self::Event(request) => request.respond(shard, client).await,
            Self::Page(request) => request.respond(shard, client).await,
            Self::Object(request) => request.respond(shard, client).await,
        }
    }
}

/// The type that is asked for, if any.
pub(super) fn type_name(parameters: &Parameters) -> Result<Option<TypeName>, Refused> {
    let name =
        |text: &str| TypeName::new(text).map_err(|error| Problem::boxed(ErrorCode::UnknownType, error.to_string()));
    parameters.text("type").map(name).transpose()
}

/// The sinks that haven't come to a position yet.
pub(super) fn pending(shard: &ShardContext, readers: &[Arc<dyn StoreReader>], position: Position) -> Vec<Arc<str>> {
    if !shard.log.has_durable(position) {
        return Vec::new();
    }
    let has_deferred = |reader: &&Arc<dyn StoreReader>| reader.settled_up_to(position.shard) < position.sequence;
    readers.iter().filter(has_deferred).map(|reader| reader.name().clone()).collect()
}

/// The answer keeps the room that it takes, and no more.
pub(super) fn with_room(response: Response, mut permit: ReadPermit) -> Response {
    permit.shrink(response.body.len());
    Response { room: Some(permit), ..response }
}

pub(super) fn nothing_to_read() -> Refused {
    Problem::boxed(ErrorCode::NotReadable, "no type has a route to a sink that can be read")
}

/// Why a store gives no answer. Its own words are the operator's.
pub(super) fn of_store(error: &ReadError) -> Refused {
    match error {
        ReadError::Busy => Problem::boxed(ErrorCode::Overload, "too many reads wait for the store; ask again later"),
        ReadError::Unavailable(_) => {
            Problem::boxed(ErrorCode::StoreUnavailable, "the store can't be read now; ask again later")
        }
        ReadError::Bookmark => cursor::of_another_query(),
    }
}
