//! `GET /events`: a page of events, of a key or by type and time.

use std::sync::Arc;

use event::read::{Bookmark, Filter, Page, Query, ReadError, ReadOrder, StoreReader, StoredEvent, Wanted};
use event::{EventId, FURTHER_VALUES_FROM, KeyedIds, Position, TypeName};
use limits::{BATCH_RECORDS_MAX, READ_EVENTS_DEFAULT, READ_EVENTS_MAX};
use text::{duration, rfc3339};

use super::cursor::Belonging;
use super::lookup::{SHARD, nothing_to_read, of_store, pending, store_of_page, type_name, with_room};
use super::parameters::{Parameters, bad};
use super::{dead_letter, response};
use crate::admission::{ClientBucket, ReadPermit};
use crate::event_types::{StoreReaders, TypeRegistry};
use crate::ingest::{DEFAULT_TYPE, check_key};
use crate::lookups::EVENT_ROOM;
use crate::problem::Refused;
use crate::shard::ShardContext;
use http1::Response;

const PARAMETERS: [&str; 8] = ["key", "type", "since", "until", "order", "limit", "cursor", SHARD];

/// Bytes that most events take at most.
const USUAL_EVENT_ROOM: usize = 16 * 1024;

/// A request for a page of events.
pub(crate) struct PageRequest {
    choice: Choice,
    limit: usize,
    after: Option<Bookmark>,
}

/// Which events, and from which store.
struct Choice {
    wanted: Wanted,
    /// How long before the first page the events begin, in microseconds, if `since` is an age.
    age: Option<i64>,
    /// The ids under which the key of these events is remembered: of a single event, and of a batch of one type or of several, whole or in
    /// part.
    key: Option<[EventId; 5]>,
    reader: Arc<dyn StoreReader>,
}

impl Choice {
    fn of(types: &TypeRegistry, parameters: &Parameters, source: &str) -> Result<Self, Refused> {
        let type_name = type_name(parameters)?;
        if let Some(key) = parameters.text("key") {
            parameters.without(&["since", "until", "order"], "cannot be combined with `key`")?;
            return Self::of_key(types, parameters, type_name, key, source);
        }
        let readers = match &type_name {
            Some(name) => types.readers_of(name)?,
            None => the_only_readers(types)?,
        };
        let reader = store_of_page(&readers, parameters)?;
        let (since, age) = match parameters.with("since", since)? {
            None => (None, None),
            Some(Since::Time(time)) => (Some(time), None),
            Some(Since::Age(age)) => (Some(clock::unix_microseconds().saturating_sub(age).max(0)), Some(age)),
        };
        let until = parameters.with("until", rfc3339::parse)?;
        let order = parameters.with("order", order)?.unwrap_or_default();
        let filter = Filter { type_name, since, until, order };
        Ok(Self { wanted: Wanted::Stored(filter), age, key: None, reader })
    }

    /// All events of a key: number 0 for a single event. For a batch, the first values of its lines, and then all others.
    fn of_key(
        types: &TypeRegistry,
        parameters: &Parameters,
        type_name: Option<TypeName>,
        key: &str,
        source: &str,
    ) -> Result<Self, Refused> {
        check_key(key.as_bytes(), "`key`")?;
        let of_default = || TypeName::new(DEFAULT_TYPE).map_err(|error| bad(error.to_string()));
        let name = type_name.map_or_else(of_default, Ok)?;
        let ids = KeyedIds::new(source, &name, key.as_bytes());
        let last = FURTHER_VALUES_FROM + u32::try_from(BATCH_RECORDS_MAX).unwrap_or_default();
        let [of_type, of_several] = [Some(&name), None].map(|name| KeyedIds::of_batch(source, name, key.as_bytes()));
        Ok(Self {
            wanted: Wanted::Ids { first: ids.id(0), last: ids.id(last) },
            age: None,
            key: Some([ids.id(0), of_type, of_type.in_part(), of_several, of_several.in_part()]),
            reader: store_of_page(&types.readers_of(&name)?, parameters)?,
        })
    }

    fn belonging(&self) -> Belonging<'_> {
        Belonging { sink: self.reader.name(), wanted: &self.wanted, age: self.age }
    }

    /// The cursor of the next page. If `since` is an age, all pages begin where the first one does.
    fn cursor(&self, bookmark: &Bookmark) -> String {
        match (&self.wanted, self.age) {
            (Wanted::Stored(Filter { since: Some(since), .. }), Some(_)) => {
                self.belonging().write(&Bookmark([&since.to_be_bytes(), &bookmark.0[..]].concat()))
            }
            _ => self.belonging().write(bookmark),
        }
    }

    /// Resumes after a cursor.
    fn resume(&mut self, cursor: &str) -> Result<Bookmark, Refused> {
        let Bookmark(bytes) = self.belonging().read(cursor)?;
        match (&mut self.wanted, self.age, bytes.split_first_chunk()) {
            (Wanted::Stored(filter), Some(_), Some((since, bookmark))) => {
                filter.since = Some(i64::from_be_bytes(*since));
                Ok(Bookmark(bookmark.to_vec()))
            }
            _ => Ok(Bookmark(bytes)),
        }
    }
}

impl PageRequest {
    pub(super) fn of(types: &TypeRegistry, query: Option<&str>, source: &str) -> Result<Self, Refused> {
        let parameters = Parameters::read(query, &PARAMETERS)?;
        let limit = parameters.with("limit", limit)?.unwrap_or(READ_EVENTS_DEFAULT);
        let mut choice = Choice::of(types, &parameters, source)?;
        let after = parameters.text("cursor").map(|text| choice.resume(text)).transpose()?;
        Ok(Self { choice, limit, after })
    }

    pub(super) async fn respond(&self, shard: &ShardContext, client: ClientBucket) -> Result<Response, Refused> {
        let positions = self.positions(shard);
        let pending = self.pending(shard, &positions);
        let (page, permit) = self.read(shard, client).await?;
        let page = match page {
            Ok(page) => page,
            Err(_) if !pending.is_empty() => Page::default(),
            Err(error) => return Err(of_store(&error)),
        };
        if page.events.is_empty() && !pending.is_empty() {
            return Ok(response::pending_key(&pending));
        }
        let next = page.next.as_ref().map(|bookmark| self.choice.cursor(bookmark));
        let dead = dead_letter::of_requests(shard, positions).await;
        let body = response::page(page.events, response::rest(next.as_deref(), &dead)).await?;
        Ok(with_room(response::ok(body), permit))
    }

    /// Reads the page, with memory for it. A page of usual events takes less than one of large events, so more are read at a time. A page
    /// of large events is read again.
    async fn read(
        &self,
        shard: &ShardContext,
        client: ClientBucket,
    ) -> Result<(Result<Page, ReadError>, ReadPermit), Refused> {
        let Choice { wanted, reader, .. } = &self.choice;
        let most = shard.shared.read_budget.page_bytes().min(self.limit.saturating_mul(EVENT_ROOM));
        let mut bytes_max = most.min(EVENT_ROOM.max(self.limit.saturating_mul(USUAL_EVENT_ROOM)));
        loop {
            let permit = shard.read_permit(bytes_max, client).await?;
            let (wanted, after) = (wanted.clone(), self.after.clone());
            let page = reader.read(Query { wanted, after, limit: self.limit, bytes_max, only_type: None }).await;
            if bytes_max == most || !page.as_ref().is_ok_and(|page| self.is_cut(page, bytes_max)) {
                return Ok((page, permit));
            }
            bytes_max = most;
        }
    }

    /// Whether a page probably ends before an event that had no room.
    fn is_cut(&self, page: &Page, bytes_max: usize) -> bool {
        let bytes: usize = page.events.iter().map(StoredEvent::bytes).sum();
        page.next.is_some() && page.events.len() < self.limit && bytes > bytes_max / 2
    }

    /// The positions of the requests with the key, if they are remembered. Only the first page reports them.
    fn positions(&self, shard: &ShardContext) -> Vec<Position> {
        let Some(key) = self.choice.key.filter(|_| self.after.is_none()) else { return Vec::new() };
        key.into_iter().filter_map(|id| shard.log.position_of(id)).collect()
    }

    /// The sink that doesn't have the events of the key yet, if so.
    fn pending(&self, shard: &ShardContext, positions: &[Position]) -> Vec<Arc<str>> {
        let reader = std::slice::from_ref(&self.choice.reader);
        positions.iter().flat_map(|position| pending(shard, reader, *position)).take(1).collect()
    }
}

/// The time from which events are requested.
enum Since {
    Time(i64),
    /// Microseconds before the first page.
    Age(i64),
}

fn since(text: &str) -> Result<Since, String> {
    match (rfc3339::parse(text), duration::parse(text)) {
        (Ok(time), _) => Ok(Since::Time(time)),
        (_, Ok(age)) => Ok(Since::Age(i64::try_from(age.as_micros()).unwrap_or(i64::MAX))),
        (Err(no_time), Err(no_length)) => Err(format!("{no_time}; or, as an age, {no_length}")),
    }
}

fn order(text: &str) -> Result<ReadOrder, String> {
    match text {
        "asc" => Ok(ReadOrder::OldestFirst),
        "desc" => Ok(ReadOrder::NewestFirst),
        _ => Err("expected asc (oldest first) or desc (newest first)".to_owned()),
    }
}

fn limit(text: &str) -> Result<usize, String> {
    let wanted = || format!("expected a number from 1 to {READ_EVENTS_MAX}");
    let number = Some(text).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let limit = number.and_then(|text| text.parse().ok()).filter(|limit| (1..=READ_EVENTS_MAX).contains(limit));
    limit.ok_or_else(wanted)
}

/// Pages go through one sink: there is no order over several.
fn the_only_readers(types: &TypeRegistry) -> Result<StoreReaders, Refused> {
    let mut readers = types.readers();
    match (readers.pop(), readers.is_empty()) {
        (Some(only), true) => Ok(only),
        (Some(_), false) => {
            Err(bad("events are read from several sinks: choose one with the parameter `type`".to_owned()))
        }
        (None, _) => Err(nothing_to_read()),
    }
}
