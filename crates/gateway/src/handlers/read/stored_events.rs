//! Reads stored events for the admin port, with the parameters, the cursors and the memory of `GET /events`.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use event::EventId;
use event::read::{Lookup, ReadError, ReadOrder, StoreReader, StoredEvent};
use expression::Expression;
use http::StatusCode;
use text::rfc3339;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::choice::{Choice, SINK};
use super::lookup::{SHARD, stores};
use super::operator_problem::shown_to_operators;
use super::page_request::limit;
use super::parameters::{Parameters, bad};
use super::response;
use super::scan::{Scan, ScanFilter, Scanned};
use crate::admission::{ClientBucket, ClientBuckets, ReadBudget, ReadPermit};
use crate::error_code::ErrorCode;
use crate::event_types::CurrentTypes;
use crate::lookups::EVENT_ROOM;
use crate::problem::{Problem, Refused};

const PAGE: [&str; 11] =
    ["key", "type", "source", "since", "until", "order", "limit", "cursor", SHARD, SINK, CONDITION];
const EVENT: [&str; 2] = ["type", SHARD];
/// The parameter with the condition.
const CONDITION: &str = "where";
/// Events of a page at most, and without the parameter.
const EVENTS_MAX: usize = 200;
const EVENTS_USUAL: usize = 50;
/// Reads at a time. More wait.
const READS_MAX: usize = 4;
/// A quarter of this is for a part of the store, half for the events of a page, the rest for their text.
const PAGE_ROOM: usize = 4 * EVENT_ROOM;
/// A store gets this long to look up an event.
const LOOKUP_MAX: Duration = Duration::from_secs(5);

/// Reads stored events for the admin port. Cheap to clone. It takes none of the shards' time.
#[derive(Clone)]
pub struct StoredEvents {
    types: CurrentTypes,
    budget: Arc<ReadBudget>,
    client: ClientBucket,
    turns: Arc<Semaphore>,
}

/// A response's bytes, with the memory that is counted for them until this is dropped.
#[derive(Debug)]
pub struct ReadBody {
    bytes: Vec<u8>,
    _permit: ReadPermit,
}

/// Why nothing can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadRefused {
    /// The status of the response.
    pub status: StatusCode,
    /// The code of the problem.
    pub code: &'static str,
    /// The reason, and what to do.
    pub detail: Cow<'static, str>,
}

/// A store's name, and its answer to a lookup.
pub type StoreAnswer = (Arc<str>, Result<Option<StoredEvent>, ReadError>);

impl AsRef<[u8]> for ReadBody {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl From<Refused> for ReadRefused {
    fn from(refused: Refused) -> Self {
        let Problem { code, detail, .. } = *refused;
        Self { status: code.status(), code: code.as_str(), detail }
    }
}

impl StoredEvents {
    pub(crate) fn new(types: CurrentTypes, budget: Arc<ReadBudget>) -> Self {
        // All callers of the admin port are one client: together they get one share of the memory.
        let client = ClientBuckets::default().of("", IpAddr::V4(Ipv4Addr::LOCALHOST));
        Self { types, budget, client, turns: Arc::new(Semaphore::new(READS_MAX)) }
    }

    /// A page as JSON: the events of a query, newest first unless it says otherwise, with `next`, `sink`, `looked_at` and `looked_to`. The
    /// parameter `sink` names one of `sinks`. A request compares up to about 5,000 events, 8 MiB or 1 s.
    ///
    /// # Errors
    /// The query is invalid, no store can be read, or too many are read now.
    pub async fn page(&self, query: Option<&str>, sinks: &[Arc<dyn StoreReader>]) -> Result<ReadBody, ReadRefused> {
        let mut scan = self.scan(query, sinks)?;
        let _turn = self.turn().await?;
        let room = self.budget.page_bytes().min(PAGE_ROOM);
        let mut permit = self.budget.take(room, self.client)?;
        scan.bytes_max = room / 4;
        let Scanned { events, looked_at, looked_to, next, .. } = scan.run().await?;
        let text = |value: Option<String>| value.map_or_else(|| "null".to_owned(), |value| format!("\"{value}\""));
        let rest = format!(
            r#","next":{},"sink":{},"looked_at":{looked_at},"looked_to":{}"#,
            text(next.map(|bookmark| scan.choice.cursor(&bookmark))),
            serde_json::to_string(&**scan.choice.reader.name()).expect("texts can be written as JSON"),
            text(looked_to.map(rfc3339::format)),
        );
        let bytes = response::page(events, rest).await?;
        permit.shrink(bytes.len());
        Ok(ReadBody { bytes, _permit: permit })
    }

    fn scan(&self, query: Option<&str>, sinks: &[Arc<dyn StoreReader>]) -> Result<Scan, Refused> {
        let parameters = Parameters::read(query, &PAGE)?;
        let source = parameters.text("source");
        let limit = parameters.with("limit", |text| limit(text, EVENTS_MAX))?.unwrap_or(EVENTS_USUAL);
        let condition = parameters.value::<Expression>(CONDITION)?.map(Arc::new);
        let mut choice =
            Choice::of(&self.types.now(), &parameters, source.unwrap_or_default(), ReadOrder::NewestFirst, sinks)?;
        // The ids of a key are those of its source.
        let source = source.filter(|_| parameters.text("key").is_none());
        choice.filter = match (source, parameters.text(CONDITION)) {
            (None, None) => None,
            (source, condition) => Some((source.unwrap_or_default().into(), condition.unwrap_or_default().into())),
        };
        let after = parameters.text("cursor").map(|text| choice.resume(text)).transpose()?;
        let source = source.map(Arc::from);
        Ok(Scan { choice, filter: ScanFilter { source, condition }, limit, bytes_max: EVENT_ROOM, after })
    }

    /// The event with this id as JSON, from the store that answers first.
    ///
    /// # Errors
    /// The query is invalid, no store has the event, or one can't be read and no other has it.
    pub async fn event(&self, id: &str, query: Option<&str>) -> Result<ReadBody, ReadRefused> {
        let parsed = id.parse::<EventId>().map_err(|error| bad(format!("the event id in the path: {error}")))?;
        let readers = stores(&self.types.now(), &Parameters::read(query, &EVENT)?)?;
        let permit = self.memory(readers.len()).await?;
        let mut answers = look_up(readers, parsed, LOOKUP_MAX);
        let mut failed = None;
        while let Some(answer) = answers.join_next().await {
            match answer {
                Ok((_, Ok(found))) => {
                    if let Some(bytes) = found.as_ref().and_then(response::event_json) {
                        return Ok(ReadBody { bytes, _permit: permit.0 });
                    }
                }
                Ok((_, Err(error))) => failed = Some(shown_to_operators(&error)),
                Err(_) => {}
            }
        }
        let unknown = format!("no readable sink has event {id}: GET /api/events/{id}/story shows what is known of it");
        Err(failed.unwrap_or_else(|| Problem::boxed(ErrorCode::UnknownEvent, unknown)).into())
    }

    /// Memory for the answers of so many stores to a lookup, until it is dropped.
    ///
    /// # Errors
    /// Too much is in use.
    pub async fn memory(&self, stores: usize) -> Result<ReadMemory, ReadRefused> {
        let _turn = self.turn().await?;
        self.hold(self.budget.page_bytes().min(stores.max(1).saturating_mul(EVENT_ROOM)))
    }

    /// Memory of so many bytes, for instance of an answer, until it is dropped.
    ///
    /// # Errors
    /// Too much is in use.
    pub fn hold(&self, bytes: usize) -> Result<ReadMemory, ReadRefused> {
        Ok(ReadMemory(self.budget.take(bytes, self.client)?))
    }

    async fn turn(&self) -> Result<tokio::sync::SemaphorePermit<'_>, Refused> {
        let stopping = |_| Problem::boxed(ErrorCode::Overload, "the server is stopping: retry after its restart");
        self.turns.acquire().await.map_err(stopping)
    }
}

/// Memory of reads, until it is dropped.
#[derive(Debug)]
pub struct ReadMemory(ReadPermit);

/// Looks up an event in all of these stores at the same time. One that doesn't answer within `wait` is unavailable.
#[must_use]
pub fn look_up(readers: Vec<Arc<dyn StoreReader>>, id: EventId, wait: Duration) -> JoinSet<StoreAnswer> {
    let mut answers = JoinSet::new();
    for reader in readers {
        answers.spawn(async move {
            let lookup = Lookup { ids: vec![id], bytes_max: EVENT_ROOM, only_type: None };
            let answer = match timeout(wait, reader.get(lookup)).await {
                Ok(found) => found.map(|found| found.events.into_iter().find(|event| event.id == id)),
                Err(_) => Err(ReadError::Unavailable(format!("no answer within {} s", wait.as_secs()).into())),
            };
            (reader.name().clone(), answer)
        });
    }
    answers
}
