//! `/api/events`: stored events, and the story of one event.
//!
//! | request | answer |
//! |---|---|
//! | `GET /api/events?type=&since=&until=&order=&where=&limit=&cursor=&key=&source=&sink=&shard=` | a page of the events that match, newest first: `{"events", "next", "sink", "looked_at", "looked_to"}` |
//! | `GET /api/events/ID?type=&shard=` | the event, as its store has it |

use bytes::Bytes;
use gateway::{ReadBody, ReadRefused, StoredEvents};
use hyper::{Method, StatusCode};

use super::is_read;
use super::response::{AdminResponse, json, not_allowed, problem};
use crate::bus_events::Readers;

/// The stores that events are read from.
pub(crate) struct Events {
    stored: StoredEvents,
    readers: Readers,
}

impl Events {
    pub(crate) const fn new(stored: StoredEvents, readers: Readers) -> Self {
        Self { stored, readers }
    }

    /// Answers a request whose path continues with `rest` after [`EVENTS`](admin_api::paths::EVENTS).
    pub(super) async fn respond(&self, method: &Method, rest: &str, query: Option<&str>) -> AdminResponse {
        if !is_read(method) {
            return not_allowed("GET, HEAD");
        }
        let parts: Vec<&str> = rest.split('/').skip(1).collect();
        match *parts {
            [] => answer(self.stored.page(query, &self.readers.current()).await),
            [id] => answer(self.stored.event(id, query).await),
            _ => {
                let paths = "the paths are /api/events and /api/events/ID";
                problem(StatusCode::NOT_FOUND, "path", paths.into())
            }
        }
    }
}

fn answer(read: Result<ReadBody, ReadRefused>) -> AdminResponse {
    match read {
        Ok(body) => AdminResponse { body: Bytes::from_owner(body).into(), ..json(StatusCode::OK, &()) },
        Err(ReadRefused { status, code, detail }) => problem(status, code, detail.into_owned()),
    }
}
