//! What a request wants to read, checked: one event, or pages of them.

use std::sync::Arc;

use event::limits::{BATCH_RECORDS_MAX, EVENT_BYTES_MAX, READ_BYTES_MAX, READ_EVENTS_DEFAULT, READ_EVENTS_MAX};
use event::read::{Bookmark, Filter, Page, Query, ReadError, Reader, Wanted};
use event::{EventId, KeyedIds, Position, TypeName, rfc3339};

use super::cursor::{self, Belonging};
use super::parameters::{Parameters, bad};
use super::{ReadPermit, answer};
use crate::code::Code;
use crate::http1::response::Response;
use crate::problem::{Problem, Refused};
use crate::request::{DEFAULT_TYPE, check_key};
use crate::type_table::TypeTable;
use crate::worker::Worker;

/// The parameters of `/events`, and of an event.
const OF_PAGES: [&str; 6] = ["key", "type", "since", "until", "limit", "cursor"];
const OF_EVENT: [&str; 2] = ["type", "position"];
/// Bytes that an event of full size may take, with its envelope.
const EVENT_ROOM: usize = EVENT_BYTES_MAX + 1024;

/// What is to be read.
pub(crate) enum ReadRequest {
    Event(EventRequest),
    Pages(PageRequest),
}

/// One event.
pub(crate) struct EventRequest {
    id: EventId,
    /// Where its client was told that it stands.
    position: Option<Position>,
    readers: Vec<Arc<dyn Reader>>,
}

/// A page of events.
pub(crate) struct PageRequest {
    wanted: Wanted,
    /// What the key of these events is remembered by: as a single event, and as a batch.
    key: Option<[EventId; 2]>,
    limit: usize,
    after: Option<Bookmark>,
    reader: Arc<dyn Reader>,
}

impl ReadRequest {
    /// # Errors
    /// It can't be answered, whatever is stored.
    pub(crate) fn of(types: &TypeTable, id: Option<&str>, query: Option<&str>, source: &str) -> Result<Self, Refused> {
        match id {
            Some(id) => EventRequest::of(types, id, query).map(Self::Event),
            None => PageRequest::of(types, query, source).map(Self::Pages),
        }
    }

    /// Reads.
    pub(crate) async fn answer(&self, worker: &Worker) -> Result<Response, Refused> {
        match self {
            Self::Event(request) => request.answer(worker).await,
            Self::Pages(request) => request.answer(worker).await,
        }
    }
}

impl EventRequest {
    fn of(types: &TypeTable, id: &str, query: Option<&str>) -> Result<Self, Refused> {
        let id = id.parse().map_err(|error| bad(format!("the path: {error}")))?;
        let parameters = Parameters::read(query, &OF_EVENT)?;
        let readers = match type_name(&parameters)? {
            Some(name) => vec![types.reader_of(&name)?],
            None => types.readers(),
        };
        if readers.is_empty() {
            return Err(nothing_to_read());
        }
        Ok(Self { id, position: parameters.value("position")?, readers })
    }

    async fn answer(&self, worker: &Worker) -> Result<Response, Refused> {
        let mut permit = worker.read_room().take(EVENT_ROOM)?;
        let position = worker.log().remembered(self.id).or(self.position);
        // Asked before the stores are: what is settled by now is found there, or nowhere.
        let pending = position.map_or_else(Vec::new, |position| pending(worker, &self.readers, position));
        let mut failed = None;
        for reader in &self.readers {
            let wanted = Wanted::Ids { first: self.id, last: self.id };
            match reader.read(Query { wanted, after: None, limit: 1, bytes_max: READ_BYTES_MAX }).await {
                Ok(Page { events, .. }) => {
                    if let Some(body) = events.first().and_then(answer::event) {
                        return Ok(with_room(answer::ok(body), permit));
                    }
                }
                Err(error) => failed = Some(of_store(&error)),
            }
        }
        permit.shrink(0);
        match (position, failed) {
            (Some(position), _) if !pending.is_empty() => Ok(answer::pending_event(self.id, position, &pending)),
            (_, Some(refused)) => Err(refused),
            (Some(position), None) if worker.log().has_durable(position) => {
                let detail = format!(
                    "no event {} is stored, and position {position} has its outcome: the event may be a dead letter, or \
                     was removed from the store",
                    self.id
                );
                Err(Problem::boxed(Code::UnknownEvent, detail))
            }
            (_, None) => Err(Problem::boxed(Code::UnknownEvent, format!("no event {} is known", self.id))),
        }
    }
}

impl PageRequest {
    fn of(types: &TypeTable, query: Option<&str>, source: &str) -> Result<Self, Refused> {
        let parameters = Parameters::read(query, &OF_PAGES)?;
        let limit = parameters.with("limit", limit)?.unwrap_or(READ_EVENTS_DEFAULT);
        let type_name = type_name(&parameters)?;
        let (wanted, key, reader) = match parameters.text("key") {
            Some(key) => {
                parameters.without(&["since", "until"], "can't stand beside `key`, which names its events")?;
                of_key(types, type_name, key, source)?
            }
            None => {
                let time = |name| parameters.with(name, rfc3339::parse);
                let reader = match &type_name {
                    Some(name) => types.reader_of(name)?,
                    None => the_only_reader(types)?,
                };
                let filter = Filter { type_name, since: time("since")?, until: time("until")? };
                (Wanted::Stored(filter), None, reader)
            }
        };
        let belonging = Belonging { sink: reader.name(), wanted: &wanted };
        let after = parameters.text("cursor").map(|text| belonging.read(text)).transpose()?;
        Ok(Self { wanted, key, limit, after, reader })
    }

    async fn answer(&self, worker: &Worker) -> Result<Response, Refused> {
        let bytes_max = READ_BYTES_MAX.min(self.limit.saturating_mul(EVENT_ROOM));
        let permit = worker.read_room().take(bytes_max)?;
        let pending = self.pending(worker);
        let query = Query { wanted: self.wanted.clone(), after: self.after.clone(), limit: self.limit, bytes_max };
        let page = match self.reader.read(query).await {
            Ok(page) => page,
            Err(_) if !pending.is_empty() => Page::default(),
            Err(error) => return Err(of_store(&error)),
        };
        if page.events.is_empty() && !pending.is_empty() {
            return Ok(answer::pending_key(&pending));
        }
        let belonging = Belonging { sink: self.reader.name(), wanted: &self.wanted };
        let next = page.next.as_ref().map(|bookmark| belonging.write(bookmark));
        let body = answer::page(page.events, next).await;
        Ok(with_room(answer::ok(body), permit))
    }

    /// The sink that doesn't have the events of the key yet, if so.
    fn pending(&self, worker: &Worker) -> Vec<Arc<str>> {
        let Some(key) = self.key.filter(|_| self.after.is_none()) else { return Vec::new() };
        let remembered = key.into_iter().filter_map(|id| worker.log().remembered(id));
        let reader = std::slice::from_ref(&self.reader);
        remembered.flat_map(|position| pending(worker, reader, position)).take(1).collect()
    }
}

/// All events of a key: number 0 of a single one, and those of a batch from 1 on.
fn of_key(
    types: &TypeTable,
    type_name: Option<TypeName>,
    key: &str,
    source: &str,
) -> Result<(Wanted, Option<[EventId; 2]>, Arc<dyn Reader>), Refused> {
    check_key(key.as_bytes(), "`key`")?;
    let of_default = || TypeName::new(DEFAULT_TYPE).map_err(|error| bad(error.to_string()));
    let name = type_name.map_or_else(of_default, Ok)?;
    let reader = types.reader_of(&name)?;
    let ids = KeyedIds::new(source, &name, key.as_bytes());
    let last = u32::try_from(BATCH_RECORDS_MAX).unwrap_or(u32::MAX);
    let known_by = [ids.id(0), KeyedIds::of_batch(source, key.as_bytes())];
    Ok((Wanted::Ids { first: ids.id(0), last: ids.id(last) }, Some(known_by), reader))
}

fn type_name(parameters: &Parameters) -> Result<Option<TypeName>, Refused> {
    let name = |text: &str| TypeName::new(text).map_err(|error| Problem::boxed(Code::UnknownType, error.to_string()));
    parameters.text("type").map(name).transpose()
}

fn limit(text: &str) -> Result<usize, String> {
    let wanted = || format!("wanted a number from 1 to {READ_EVENTS_MAX}");
    let number = Some(text).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let limit = number.and_then(|text| text.parse().ok()).filter(|limit| (1..=READ_EVENTS_MAX).contains(limit));
    limit.ok_or_else(wanted)
}

/// Pages go through one sink: an order over several there isn't.
fn the_only_reader(types: &TypeTable) -> Result<Arc<dyn Reader>, Refused> {
    let mut readers = types.readers();
    match (readers.pop(), readers.is_empty()) {
        (Some(only), true) => Ok(only),
        (Some(_), false) => Err(bad("the types are read from several sinks: choose one with `type`".to_owned())),
        (None, _) => Err(nothing_to_read()),
    }
}

/// The sinks that haven't come to a position yet.
fn pending(worker: &Worker, readers: &[Arc<dyn Reader>], position: Position) -> Vec<Arc<str>> {
    if !worker.log().has_durable(position) {
        return Vec::new();
    }
    let is_behind = |reader: &&Arc<dyn Reader>| reader.settled_up_to(position.shard) < position.sequence;
    readers.iter().filter(is_behind).map(|reader| reader.name().clone()).collect()
}

fn with_room(response: Response, mut permit: ReadPermit) -> Response {
    permit.shrink(response.body.len());
    Response { room: Some(permit), ..response }
}

fn nothing_to_read() -> Refused {
    Problem::boxed(Code::NotReadable, "no type has a route to a sink that can be read")
}

/// Why a store gives no answer. Its own words are the operator's.
fn of_store(error: &ReadError) -> Refused {
    match error {
        ReadError::Busy => Problem::boxed(Code::Overload, "too many reads wait for the store; ask again later"),
        ReadError::Unavailable(_) => {
            Problem::boxed(Code::StoreUnavailable, "the store can't be read now; ask again later")
        }
        ReadError::Bookmark => cursor::of_another_store(),
    }
}
