//! A receiver that follows the standard: it stores each message by its id, and accepts it once.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use event::EventId;

use testkit::mock_bulk_server::{MockBulkServer, Request};

/// Messages by their ids.
type Messages = Arc<Mutex<BTreeMap<String, Vec<u8>>>>;

/// The receiver. Its threads end with the connections.
pub(crate) struct Receiver {
    server: MockBulkServer,
    messages: Messages,
}

impl Receiver {
    pub(crate) fn start() -> Self {
        let messages = Messages::default();
        let kept = Arc::clone(&messages);
        Self { server: MockBulkServer::raw(move |request| take(&kept, request)), messages }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.url().trim_start_matches("http://").parse().unwrap()
    }

    /// Adds a message with other content and an event's id.
    pub(crate) fn poison(&self, id: EventId) {
        self.messages.lock().unwrap().insert(id.to_string(), b"spoilt".to_vec());
    }

    /// The events, each by its newest message.
    pub(crate) fn events(&self) -> Vec<(EventId, Vec<u8>)> {
        let mut newest: BTreeMap<EventId, (u64, Vec<u8>)> = BTreeMap::new();
        for (name, body) in &*self.messages.lock().unwrap() {
            let (id, revision) = name.split_at(EventId([0; 16]).to_string().len());
            let revision = revision.strip_prefix('-').map_or(0, |revision| revision.parse().unwrap());
            let known = newest.entry(id.parse().unwrap()).or_insert((revision, body.clone()));
            if revision >= known.0 {
                *known = (revision, body.clone());
            }
        }
        newest.into_iter().map(|(id, (_, body))| (id, body)).filter(|(_, body)| body != b"spoilt").collect()
    }
}

fn take(messages: &Messages, request: &Request) -> (u16, String) {
    let id = request.head.split_once("webhook-id: ").unwrap().1.lines().next().unwrap().to_owned();
    let (event, revision) = id.split_at(EventId([0; 16]).to_string().len());
    let mut messages = messages.lock().unwrap();
    // A result can't have the id of an event; an existing event is kept.
    let is_result = !revision.is_empty();
    if is_result && messages.contains_key(event) {
        return (422, "an event has this id".to_owned());
    }
    let known = messages.entry(id.clone()).or_insert_with(|| request.body.clone());
    if is_result || *known == request.body {
        (204, String::new())
    } else {
        (422, "this id came with other bytes".to_owned())
    }
}
