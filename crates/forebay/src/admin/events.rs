//! `/api/events`: stored events, and the story of one event.
//!
//! | request | answer |
//! |---|---|
//! | `GET /api/events?type=&since=&until=&order=&where=&limit=&cursor=&key=&source=&sink=&shard=` | a page of the events that match, newest first: `{"events", "next", "sink", "looked_at", "looked_to"}` |
//! | `GET /api/events/ID?type=&shard=` | the event, as its store has it |
//! | `GET /api/events/ID/story?position=&type=` | what is known of the event; 404 with `looked_in` |
//! | `GET /api/events/SHARD:SEQUENCE/story`, `GET /api/events/by-key/story?key=&type=&source=` | the same, of an event without a known id |

use bytes::Bytes;
use gateway::{ReadBody, ReadRefused};
use hyper::{Method, StatusCode};

use super::response::{AdminResponse, json, not_allowed, problem, read_refused};
use super::{held, is_read};
use crate::story::{Stories, StoryQuery, Told};

/// The end of a path to a story.
const STORY: &str = "/story";

/// Reads events, and answers with their stories.
pub(crate) struct Events {
    pub(crate) stories: Stories,
}

impl Events {
    /// Answers a request whose path continues with `rest` after [`EVENTS`](admin_api::paths::EVENTS).
    pub(super) async fn respond(&self, method: &Method, rest: &str, query: Option<&str>) -> AdminResponse {
        if !is_read(method) {
            return not_allowed("GET, HEAD");
        }
        let event = rest.trim_start_matches('/');
        match event.strip_suffix(STORY) {
            Some(event) if !event.contains('/') => self.story(event, query).await,
            None if rest.is_empty() => answer(self.stories.stored.page(query, &self.stories.readers.current()).await),
            None if !event.contains('/') => answer(self.stories.stored.event(event, query).await),
            _ => {
                let paths = "the paths are /api/events, /api/events/ID and /api/events/ID/story";
                problem(StatusCode::NOT_FOUND, "path", paths.into())
            }
        }
    }
}

impl Events {
    async fn story(&self, event: &str, query: Option<&str>) -> AdminResponse {
        let query = match StoryQuery::read(event, query.unwrap_or_default()) {
            Ok(query) => query,
            Err(detail) => return problem(StatusCode::BAD_REQUEST, "query", detail),
        };
        match self.stories.tell(query).await {
            Ok(Told::Story(story)) => held::counted(json(StatusCode::OK, &story), &self.stories.stored),
            Ok(Told::NotFound(problem)) => json(StatusCode::NOT_FOUND, &problem),
            Err(refused) => read_refused(refused),
        }
    }
}

fn answer(read: Result<ReadBody, ReadRefused>) -> AdminResponse {
    match read {
        Ok(body) => AdminResponse { body: Bytes::from_owner(body).into(), ..json(StatusCode::OK, &()) },
        Err(refused) => read_refused(refused),
    }
}
