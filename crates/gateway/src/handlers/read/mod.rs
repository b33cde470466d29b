//! `GET /events`, `GET /events/{id}` and `GET /objects/{sink}/{name}`: events and objects are read back. The types' rules or the path name
//! the readers; the gateway doesn't know which stores they read.

mod choice;
mod conditions;
mod content_type;
mod cursor;
mod dead_letter;
mod event_request;
mod lookup;
mod object_request;
mod operator_problem;
mod page_request;
mod parameters;
mod response;
mod scan;
mod stored_events;

use crate::admission::ClientBucket;
use crate::event_types::TypeRegistry;
use crate::problem::Refused;
use crate::shard::ShardContext;
use event_request::EventRequest;
use http1::Response;
pub(crate) use object_request::ObjectRequest;
use page_request::PageRequest;
pub use response::event_json;
pub use stored_events::{ReadBody, ReadMemory, ReadRefused, StoreAnswer, StoredEvents, look_up};

/// A request to read.
pub(crate) enum ReadRequest {
    Event(EventRequest),
    Page(PageRequest),
    Object(ObjectRequest),
}

impl ReadRequest {
    /// # Errors
    /// It can't be answered, regardless of what is stored.
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
    /// Nothing is found, or the store can't be read now.
    pub(crate) async fn respond(&self, shard: &ShardContext, client: ClientBucket) -> Result<Response, Refused> {
        match self {
            Self::Event(request) => request.respond(shard, client).await,
            Self::Page(request) => request.respond(shard, client).await,
            Self::Object(request) => request.respond(shard, client).await,
        }
    }
}
