//! The story of one event: its receipt, its place in the journal, the rules of its type, and its outcome in each sink. Nothing is written for it:
//! it is assembled from the journal, the deduplication window, the stores, the dead letters, the ledger and the progress of lanes.

mod answer;
mod journaled;
mod known;
mod lane_view;
mod outcome;
mod progress;
mod query;
mod search;
mod sinks;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use admin_api::story::{NotFoundJson, SinkOutcomeJson, SinkStoryJson, StoryJson};
use dead_letters::{DeadLetterService, DeadLetters};
use delivery::LaneBoard;
use event::read::StoreReader;
use event::{EventId, TypeName};
use eventlog::{EventLog, LostFrom};
use gateway::{ReadRefused, StoredEvents, look_up};
use ledger::{EventRoute, Ledger};
use text::rfc3339;
use tokio::task::spawn_blocking;

use crate::actions::Actions;
use crate::bus_events::Readers;
use crate::type_info::TypeInfo;
use known::KnownEvent;
use lane_view::LaneViews;
use outcome::StoreSays;
pub(crate) use progress::ProgressSource;
pub(crate) use query::StoryQuery;
use search::InLog;
use sinks::Asked;

/// A store gets this long to answer.
const STORE_MAX: Duration = Duration::from_secs(2);
/// Stores whose answers have room at the same time.
const STORES_WITH_EVENT: usize = 4;

/// The sources of stories. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Stories {
    pub(crate) log: Arc<EventLog>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) lanes: LaneBoard,
    pub(crate) dead: DeadLetterService,
    pub(crate) readers: Readers,
    pub(crate) types: TypeInfo,
    pub(crate) stored: StoredEvents,
    pub(crate) actions: Actions,
    pub(crate) progress: Arc<dyn ProgressSource>,
}

/// The answer to a query.
pub(crate) enum Told {
    Story(Box<StoryJson>),
    NotFound(NotFoundJson),
}

/// What was found before the dead letters and the progress are read.
struct Found {
    query: StoryQuery,
    in_log: InLog,
    lanes: LaneViews,
    event: Option<KnownEvent>,
    known_from: Vec<String>,
    not_known: Vec<String>,
    looked_in: Vec<String>,
    stores: BTreeMap<Arc<str>, StoreSays>,
}

impl Stories {
    /// The story of an event, or where it was looked for.
    ///
    /// # Errors
    /// Too much is read now, or the process is stopping.
    pub(crate) async fn tell(&self, query: StoryQuery) -> Result<Told, ReadRefused> {
        let stories = self.clone();
        let found = blocking(move || stories.find_in_log(query)).await?;
        let stores = self.stores(&found);
        let _memory = self.stored.memory(stores.len().min(STORES_WITH_EVENT)).await?;
        let found = ask(found, stores).await;
        let stories = self.clone();
        blocking(move || stories.assemble(found)).await
    }

    fn find_in_log(&self, query: StoryQuery) -> Found {
        let in_log = InLog::search(&self.log, &query);
        // The lanes are read first, then the stores: an event that is at or before a lane's cursor is in its store, or never gets there.
        let lanes = LaneViews::now(&self.log, &self.lanes);
        let event = in_log.journaled.as_ref().map(|journaled| journaled.event.clone());
        let mut known_from = Vec::new();
        known_from.extend(event.as_ref().map(|_| "journal".to_owned()));
        known_from.extend(in_log.is_remembered.then(|| "ids of clients".to_owned()));
        let mut not_known = Vec::new();
        if in_log.is_elsewhere {
            not_known.push("the position of the request: it has another event".to_owned());
        }
        let looked_in = vec!["journal".to_owned(), "ids of clients".to_owned()];
        Found { query, in_log, lanes, event, known_from, not_known, looked_in, stores: BTreeMap::new() }
    }

    /// The stores that may have the event: those of its type, or all.
    fn stores(&self, found: &Found) -> Vec<Arc<dyn StoreReader>> {
        let mut readers = self.readers.current();
        let name = found.type_name();
        let routes = name.map(|name| self.ledger.event_routes(&name, None)).unwrap_or_default();
        if !routes.is_empty() {
            readers.retain(|reader| routes.iter().any(|route| route.sink == *reader.name()));
        }
        readers
    }

    fn assemble(&self, mut found: Found) -> Told {
        let by_request = found.in_log.exact_position();
        let id = found.event.as_ref().map(|event| event.id).or(found.in_log.ids.first().copied());
        let dead = sinks::in_dead_letters(&self.dead, &mut found.not_known, |dead| dead.trace(id, by_request));
        let reason = |dead: &Arc<DeadLetters>| dead.deferred_reason(id, by_request);
        let deferred = sinks::in_dead_letters(&self.dead, &mut found.not_known, reason);
        for (sink, trace) in &dead {
            found.add(format!("dead letters of {sink}"), (&trace.letter).into());
            if found.in_log.exact_position().is_none() {
                (found.in_log.position, found.in_log.is_exact) = (Some(trace.letter.position), true);
            }
        }
        found.looked_in.push("dead letters of all sinks".to_owned());
        let is_asked_by_position = found.query.position.is_some() && found.in_log.position.is_some();
        if found.known_from.is_empty() && !is_asked_by_position {
            return Told::NotFound(not_found(found.looked_in));
        }
        let position = found.in_log.position;
        let name = found.type_name();
        let routes = name.as_ref().map(|name| self.ledger.event_routes(name, position)).unwrap_or_default();
        let actions = self.actions.now().actions;
        let asked = Asked {
            event: found.event.as_ref(),
            position,
            exact: found.in_log.exact_position(),
            lanes: &found.lanes,
            stores: &found.stores,
            progress: &*self.progress,
            is_lost: self.is_lost(&found),
            actions: &actions,
        };
        let in_sink = |route: &EventRoute| asked.in_sink(route, dead.get(&route.sink), deferred.get(&route.sink));
        let sinks = routes.iter().map(in_sink).collect();
        let config = name.as_ref().and_then(|name| self.types.config_of(name));
        let event = found.event.take();
        let is_original = found.in_log.journaled.is_some() || !dead.values().any(sinks::is_held);
        let mut story = StoryJson {
            id: id.map(|id| id.to_string()).unwrap_or_default(),
            r#type: name.map(|name| name.to_string()),
            received: answer::received(event.as_ref(), found.query.key()),
            journal: position.map(|position| answer::journal(&found.in_log, position, &*self.progress)),
            rules: config.as_ref().map(|config| answer::rules(config, self.types.loaded())),
            sinks,
            aggregates: config.as_ref().zip(event.as_ref()).map(|(c, e)| answer::windows(c, e)).unwrap_or_default(),
            ..StoryJson::default()
        };
        found.say_unknown(&story, event.as_ref(), (is_original, self.types.loaded()), &*self.progress);
        (story.payload, story.payload_bytes) = answer::payload(event.and_then(|event| event.payload));
        story.payload_omitted = story.payload_bytes.map(|_| true);
        (story.known_from, story.not_known) = (found.known_from, found.not_known);
        Told::Story(Box::new(story))
    }

    /// Whether a start has found the event's position lost, and the journal doesn't have the event.
    fn is_lost(&self, found: &Found) -> bool {
        let Some(position) = found.in_log.exact_position().filter(|_| found.in_log.journaled.is_none()) else {
            return false;
        };
        let holds = |(first, last): (u64, u64)| (first..=last).contains(&position.sequence);
        let losses = self.log.losses().all();
        losses.iter().any(|loss| loss.from == LostFrom::Shard(position.shard) && loss.positions.is_some_and(holds))
    }
}

impl Found {
    fn type_name(&self) -> Option<TypeName> {
        let known = self.event.as_ref().and_then(|event| TypeName::new(&event.type_name).ok());
        known.or_else(|| self.query.type_name.clone())
    }

    /// Adds what a source has of the event.
    fn add(&mut self, source: String, event: KnownEvent) {
        self.known_from.push(source);
        match &mut self.event {
            Some(known) => known.add(event),
            None => self.event = Some(event),
        }
    }

    /// Says what isn't known, and why.
    fn say_unknown(
        &mut self,
        story: &StoryJson,
        event: Option<&KnownEvent>,
        (is_original, loaded): (bool, i64),
        progress: &dyn ProgressSource,
    ) {
        let mut say = |text: &str| self.not_known.push(text.to_owned());
        if story.r#type.is_none() {
            say("its type, and so its sinks: add type=TYPE to the request");
        }
        match event {
            None => say("the event itself: the journal has freed it, and no readable sink has it"),
            Some(event) => {
                if !is_original {
                    say("whether its payload is the accepted one: an operator may have edited the dead letter");
                }
                if event.received_at < loaded {
                    say("the rules at its receipt: the configuration was loaded later");
                }
                say("the payload before the steps of its type, and the time of each step");
            }
        }
        if story.journal.is_none() {
            say("its position: times of sinks are bounds over all shards");
        } else if self.in_log.exact_position().is_none() {
            say("its own position: the one that is shown is that of the first event of its request");
        }
        let has_no_time = |sink: &&SinkStoryJson| sink.outcome == SinkOutcomeJson::Stored && sink.at.is_none();
        let shard = self.in_log.position.map_or(0, |position| position.shard);
        for sink in story.sinks.iter().filter(has_no_time) {
            let reach = progress.reaches_back_to(shard, &sink.sink);
            let reach = reach
                .map_or_else(|| "aren't kept yet".to_owned(), |at| format!("reach back to {}", rfc3339::format(at)));
            say(&format!("when it was stored in {}: the times of this sink {reach}", sink.sink));
        }
    }
}

/// Asks the stores for the event, by one of its ids after the other.
async fn ask(mut found: Found, stores: Vec<Arc<dyn StoreReader>>) -> Found {
    found.looked_in.extend(stores.iter().map(|store| format!("store {}", store.name())));
    for id in found.in_log.ids.clone() {
        if ask_for(&mut found, stores.clone(), id).await {
            found.in_log.ids = vec![id];
            break;
        }
    }
    found
}

/// Whether a store has the event with this id.
async fn ask_for(found: &mut Found, stores: Vec<Arc<dyn StoreReader>>, id: EventId) -> bool {
    let mut answers = look_up(stores, id, STORE_MAX);
    let (mut has, mut names) = (false, Vec::new());
    while let Some(answer) = answers.join_next().await {
        let Ok((name, answer)) = answer else { continue };
        let says = match answer {
            Ok(Some(event)) => {
                has = true;
                let source = format!("store {name}");
                if !found.known_from.contains(&source) {
                    names.push((source, KnownEvent::from(event)));
                }
                StoreSays::Has
            }
            Ok(None) => StoreSays::HasNot,
            Err(error) => {
                let sentence = format!("whether store {name} has it: {error}");
                if !found.not_known.contains(&sentence) {
                    found.not_known.push(sentence);
                }
                StoreSays::Nothing
            }
        };
        found.stores.insert(name, says);
    }
    // In an order that doesn't depend on the stores' speed.
    names.sort_by(|(one, _), (other, _)| one.cmp(other));
    names.into_iter().for_each(|(source, event)| found.add(source, event));
    has
}

fn not_found(looked_in: Vec<String>) -> NotFoundJson {
    let detail = "the event isn't in the journal, the dead letters or the stores: check the id, or use its position or key. Rejected events have no id: see the last rejections";
    NotFoundJson { status: 404, code: "unknown_event", detail: detail.to_owned(), looked_in }
}

/// Runs work that reads the disk or takes long.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ReadRefused> {
    spawn_blocking(work).await.map_err(|_| ReadRefused {
        status: hyper::StatusCode::SERVICE_UNAVAILABLE,
        code: "stopping",
        detail: "the server is stopping: retry after its restart".into(),
    })
}
