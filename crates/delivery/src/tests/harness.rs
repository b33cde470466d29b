//! A process that delivers from a simulated disk to stores in memory, and can be killed at any moment.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use aggregation::{AggregateBoard, AggregateSetup, Clock};
use dead_letters::{DeadAction, DeadFilter, DeadLetterService, DeadLetters, DeadList, DeadOutcome, PageRequest};
use event::{EventId, TypeName};
use eventlog::{
    AppendBatch, DataDirectory, EventLog, FoundShard, JournalRecord, LogChunk, Reader, ShardOptions, SourceLine,
    StateFile, fields, find_shard,
};
use journal::simulated_disk::SimulatedDisk;
use ledger::{Begin, Ledger, LedgerRow, Routes, SavedLedger};
use objects::ObjectFormat;
use progress::ProgressBoard;
use sink::Sink;
use sink_directory::DirectoryConfig;
use sink_sqlite::{Sqlite, SqliteConfig};
use sink_testing::MemoryHandle;
use testkit::logged::Logged;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use super::Mutation;
use super::archive::ARCHIVE;
use super::archive::DiskFiles;
use crate::command::{Change, ChangeError, Command, DeliveryControl};
use crate::options::Options;
use crate::setup::{Setup, SinkSetup};
use crate::status::LaneStatus;
use crate::supervisor::Supervisor;

pub(super) const FENCED: &str = "fenced";
pub(super) const KEYED: &str = "keyed";
const DATA: &str = "/data";

pub(super) struct Harness {
    pub(super) disk: SimulatedDisk,
    pub(super) fenced: MemoryHandle,
    pub(super) keyed: MemoryHandle,
    pub(super) routes: Routes,
    pub(super) shards: u16,
    pub(super) aggregates: Vec<AggregateSetup>,
    /// The wall clock: microseconds.
    pub(super) clock: Arc<AtomicI64>,
    pub(super) mutation: Option<Mutation>,
    /// The files of the folder whose writes a crash loses, as of the start of the process.
    at_start: BTreeMap<PathBuf, Vec<u8>>,
    pub(super) segment_bytes: u64,
    pub(super) process: Option<Process>,
    /// Acknowledged events: number and type.
    pub(super) acknowledged: Vec<(u64, String)>,
    logged: Logged,
    pub(super) begin: Begin,
    pub(super) max_backlog: Option<u64>,
    pub(super) max_dead_letters: Option<u64>,
    pub(super) cover_every: Duration,
    /// Whether a thread writes the files of progress: tests with it need a runtime in real time.
    pub(super) progress_thread: bool,
    /// A store that replaces the transactional one, if set.
    pub(super) sqlite: Option<SqliteConfig>,
    /// If set, a directory of objects on the same disk replaces the idempotent store.
    pub(super) objects: Option<ObjectFormat>,
    /// Dead letters that were dropped, by sink; the answer to some was lost.
    pub(super) dropped: BTreeSet<(String, EventId)>,
    /// For acknowledged events whose route to a sink had a condition or was absent: whether it was true; `None` if it
    /// is unknown.
    pub(super) judged: BTreeMap<(String, u64), Option<bool>>,
    /// The transactional sink was removed and returned: its earlier events are not retained for it.
    pub(super) fenced_returned: bool,
    /// The transactional store was exchanged, and its lanes may not have noticed.
    pub(super) fenced_was_lost: bool,
    next: u64,
}

pub(super) struct Process {
    directory: DataDirectory,
    pub(super) log: Arc<EventLog>,
    pub(super) ledger: Arc<Ledger>,
    pub(super) lanes: Vec<Arc<LaneStatus>>,
    pub(super) aggregates: AggregateBoard,
    pub(super) progress: ProgressBoard,
    pub(super) sinks: Vec<Sink>,
    pub(super) dead: Vec<Arc<DeadLetters>>,
    pub(super) office: DeadLetterService,
    commands: watch::Sender<Command>,
    pub(super) changes: mpsc::Sender<Change>,
    task: JoinHandle<()>,
}

pub(super) fn name(text: &str) -> TypeName {
    TypeName::new(text).unwrap()
}

pub(super) fn id(number: u64) -> EventId {
    EventId(u128::from(number).to_be_bytes())
}

/// Conditions on events that are `{"n": number}`, by number: some are undecided on some events.
const CONDITIONS: [[Option<&str>; 2]; 5] = [
    [None, None],
    [Some("n % 3 != 0"), Some("n % 2 == 1")],
    [Some("60 / (n % 4) > 20"), None],
    [None, Some("60 / (n % 5) > 20")],
    [Some("n % 2 == 0"), Some("n < 0")],
];

/// The routes with others of these conditions between type `picky` and both sinks.
pub(super) fn picky(routes: Routes, number: usize) -> Routes {
    let others = routes.conditions().filter(|(of, ..)| *of != Some(&name("picky")));
    let others: Vec<_> = others.map(|(of, sink, when)| (of.cloned(), sink.clone(), when.clone())).collect();
    let mut made = Routes::new().with_others(routes.others().iter().cloned());
    for (name, sinks) in routes.named() {
        made = made.with(name.clone(), sinks.iter().cloned());
    }
    for (sink, text) in [FENCED, KEYED].into_iter().zip(CONDITIONS[number % CONDITIONS.len()]) {
        if let Some(text) = text {
            made = made.when(Some(name("picky")), sink.into(), text.parse().unwrap());
        }
    }
    others.into_iter().fold(made, |made, (of, sink, when)| made.when(of, sink, when))
}

/// Runs a test on a clock that jumps.
pub(super) fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(test)
}

pub(super) async fn seconds(count: u64) {
    tokio::time::sleep(Duration::from_secs(count)).await;
}

impl Harness {
    /// `both` goes to both sinks, `picky` too, by conditions; `named` to the idempotent one, `none` to no sink, any
    /// other type to the transactional one.
    pub(super) fn new(seed: u64) -> Self {
        let routes = Routes::new()
            .with(name("both"), [FENCED.into(), KEYED.into()])
            .with(name("picky"), [FENCED.into(), KEYED.into()])
            .with(name("named"), [KEYED.into()])
            .with(name("none"), [])
            .with_others([FENCED.into()]);
        let routes = picky(routes, 1);
        Self {
            disk: SimulatedDisk::new(seed),
            fenced: MemoryHandle::fenced(),
            keyed: MemoryHandle::keyed(),
            routes,
            shards: 2,
            aggregates: Vec::new(),
            clock: Arc::default(),
            mutation: None,
            at_start: BTreeMap::new(),
            segment_bytes: 16 * 1024,
            process: None,
            acknowledged: Vec::new(),
            logged: Logged::start(),
            begin: Begin::End,
            max_backlog: None,
            max_dead_letters: None,
            cover_every: Options::new().cover_every,
            progress_thread: false,
            sqlite: None,
            objects: None,
            dropped: BTreeSet::new(),
            judged: BTreeMap::new(),
            fenced_returned: false,
            fenced_was_lost: false,
            next: 1,
        }
    }

    /// Opens everything; fails where the disk does.
    pub(super) fn try_start(&mut self) -> Result<(), String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        if self.mutation == Some(Mutation::LostDeadLetters) {
            let dead = self.disk.paths().into_iter().filter(|path| path.starts_with("/data/dead"));
            dead.for_each(|path| self.disk.erase(path).unwrap());
        }
        let directory =
            DataDirectory::open(Arc::new(self.disk.clone()), Path::new(DATA)).map_err(|error| text(&error))?;
        let saved = SavedLedger::load(&directory).map_err(|error| text(&error))?;
        let mut options = saved.log_options(self.shards);
        // Threads would keep the machine's time, and everything else here keeps the simulated one.
        options.segments_ahead = false;
        options.inline_commit_max = Duration::MAX;
        options.first_segment_bytes = self.segment_bytes;
        let log = Arc::new(EventLog::open(&directory, &options).map_err(|error| text(&error))?);
        let sinks = self.setups();
        let handles = sinks.iter().map(|setup| setup.sink.clone()).collect();
        let clock = self.clock.clone();
        let clock: Clock = Arc::new(move || clock.load(Ordering::Relaxed));
        let options = Options {
            seed: 7,
            clock,
            aggregate_threads: 0,
            progress_thread: self.progress_thread,
            cover_every: self.cover_every,
            ..Options::new()
        };
        self.forget_journaled(&directory);
        let setup = Setup { routes: self.routes.clone(), sinks, aggregates: self.aggregates.clone() };
        let supervisor = Supervisor::new(&log, &directory, setup, saved, options);
        let mut supervisor = supervisor.map_err(|error| text(&error))?;
        if self.mutation == Some(Mutation::ForgetPins) {
            supervisor.checkpointer.pins = Arc::default();
        }
        let (ledger, lanes, dead) = (supervisor.ledger.clone(), supervisor.board.lanes(), supervisor.dead.clone());
        let progress = supervisor.progress.board().clone();
        let (office, aggregates) = (supervisor.dead_letters.clone(), supervisor.aggregates.board().clone());
        self.at_start = self.unsure_files();
        let (commands, received) = watch::channel(Command::Run);
        let (changes, received_changes) = mpsc::channel(1);
        let task = tokio::spawn(supervisor.run(received, received_changes));
        self.process = Some(Process {
            directory,
            log,
            ledger,
            lanes,
            aggregates,
            progress,
            sinks: handles,
            dead,
            office,
            commands,
            changes,
            task,
        });
        Ok(())
    }

    /// The sinks that any type has a route to.
    fn setups(&self) -> Vec<SinkSetup> {
        let max_backlog = self.max_backlog;
        let max_dead_letters = self.max_dead_letters;
        let begin = self.begin;
        let setup = |name: &str, sink| SinkSetup { name: name.into(), sink, begin, max_backlog, max_dead_letters };
        let sinks = [setup(FENCED, self.fenced_sink()), setup(KEYED, self.keyed_sink())];
        sinks.into_iter().filter(|setup| self.routes.mentions(&setup.name)).collect()
    }

    pub(super) fn control(&self) -> DeliveryControl {
        DeliveryControl(self.process().changes.clone())
    }

    /// The running process switches to these routes.
    pub(super) async fn change(&mut self, routes: Routes) -> Result<(), ChangeError> {
        let before = std::mem::replace(&mut self.routes, routes.clone());
        let changed = {
            let setup = Setup { routes, sinks: self.setups(), aggregates: self.aggregates.clone() };
            self.control().configure(setup).await
        };
        if changed.is_err() {
            self.routes = before;
        }
        changed
    }

    fn keyed_sink(&self) -> Sink {
        let Some(rules) = self.objects.clone() else { return Sink::new(self.keyed.clone()) };
        let config = DirectoryConfig { path: ARCHIVE.into(), rules };
        sink_directory::sink(config, Arc::new(DiskFiles(self.disk.clone())))
    }

    fn fenced_sink(&self) -> Sink {
        let memory = || Sink::new(self.fenced.clone());
        self.sqlite.clone().map_or_else(memory, |config| Sink::new(Sqlite::new(config)))
    }

    pub(super) fn start(&mut self) {
        self.try_start().unwrap();
    }

    pub(super) fn process(&self) -> &Process {
        self.process.as_ref().unwrap()
    }

    /// The process ends immediately; the disk keeps what was written.
    pub(super) async fn kill(&mut self, seed: u64) {
        self.end_process(seed).await;
        self.lose_writes();
    }

    async fn end_process(&mut self, seed: u64) {
        if let Some(process) = self.process.take() {
            process.task.abort();
            let _ = process.task.await;
            drop((process.log, process.dead, process.office, process.directory));
        }
        self.disk = self.disk.fork(seed);
    }

    pub(super) async fn power_cut(&mut self, seed: u64) {
        self.end_process(seed).await;
        self.disk.clear_faults();
        self.disk.power_cut();
        self.lose_writes();
    }

    /// Makes the saved states of aggregates say that none of their results is in the journal yet.
    fn forget_journaled(&self, directory: &DataDirectory) {
        let folder = Path::new(DATA).join("aggregates");
        let files = self.disk.paths().into_iter().filter(|path| path.starts_with(&folder));
        let stems: BTreeSet<PathBuf> = files.map(|path| path.with_extension("")).collect();
        for stem in stems.iter().filter(|_| self.mutation == Some(Mutation::ForgetJournaled)) {
            let name = stem.file_name().unwrap().to_str().unwrap();
            let (mut file, state) = StateFile::open(directory.disk().clone(), &folder, name).unwrap();
            let mut content = state.content.unwrap();
            // After the version: the last position of the first shard when it was saved.
            content[1..9].copy_from_slice(&(u64::MAX / 2).to_le_bytes());
            file.write(&content).unwrap();
        }
    }

    /// The files whose writes a crash loses, if the mutation is of that kind.
    fn unsure_files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let folder = self.mutation.and_then(Mutation::unsure_folder);
        let paths = folder.map(|folder| self.disk.paths().into_iter().filter(move |path| path.starts_with(folder)));
        paths.into_iter().flatten().map(|path| (path.clone(), self.disk.content(&path).unwrap())).collect()
    }

    /// Nothing that the process wrote to these files is there.
    fn lose_writes(&self) {
        for path in self.unsure_files().into_keys().filter(|path| !self.at_start.contains_key(path)) {
            self.disk.erase(path).unwrap();
        }
        for (path, content) in &self.at_start {
            self.disk.put(path, content).unwrap();
        }
    }

    pub(super) async fn stop(&mut self) {
        let process = self.process.take().unwrap();
        process.commands.send_replace(Command::Stop(Duration::from_secs(10)));
        process.task.await.unwrap();
    }

    /// Drains for at most this time. Returns whether the drain has ended; otherwise it continues.
    pub(super) async fn drain(&mut self, at_most: Duration) -> bool {
        let process = self.process.as_mut().unwrap();
        process.commands.send_replace(Command::Drain);
        let has_ended = tokio::time::timeout(at_most, &mut process.task).await.is_ok();
        if has_ended {
            self.process = None;
        }
        has_ended
    }

    /// Appends events and says how many were acknowledged.
    pub(super) async fn append(&mut self, shard: u16, type_name: &str, count: u64) -> usize {
        let log = self.process().log.clone();
        let shard = &log.shards()[usize::from(shard)];
        let type_id = log.types().intern(&name(type_name));
        let mut waiting = Vec::new();
        for _ in 0..count {
            let number = self.next;
            self.next += 1;
            let payload = format!("{{\"n\":{number}}}");
            if let Ok(taken) = shard.append_one(&record(number, type_name, payload.as_bytes()), type_id) {
                waiting.push((number, taken.appended().unwrap()));
            }
        }
        shard.commit_pending();
        let before = self.acknowledged.len();
        for (number, append) in waiting {
            if append.await.is_ok() {
                self.acknowledged.push((number, type_name.to_owned()));
                self.judge(number, type_name);
            }
        }
        self.acknowledged.len() - before
    }

    /// Notes the decision of the present routes about an event.
    fn judge(&mut self, number: u64, type_name: &str) {
        for sink in [FENCED, KEYED] {
            if self.routes.mentions(sink) && !self.routes.leads(&name(type_name), sink) {
                self.judged.insert((sink.to_owned(), number), Some(false));
            } else if let Some(condition) = self.routes.condition(&name(type_name), &sink.into()) {
                let verdict = condition.holds(format!("{{\"n\":{number}}}").as_bytes());
                self.judged.insert((sink.to_owned(), number), verdict.ok());
            }
        }
    }

    /// Whether an acknowledged event goes to a sink, or to its dead letters.
    pub(super) fn is_routed(&self, number: u64, type_name: &str, sink: &str) -> bool {
        let verdict = self.judged.get(&(sink.to_owned(), number)).copied();
        self.routes.leads(&name(type_name), sink) && verdict != Some(Some(false))
    }

    pub(super) fn origin(&self) -> event::Origin {
        self.process().directory.origin()
    }

    /// Damages the newer generation of the state file in this folder, if it has two.
    pub(super) fn damage_newest(&self, folder: &str) {
        let files = self.disk.paths().into_iter().filter(|path| path.starts_with(folder));
        let versioned = files.filter(|path| path.extension().is_some_and(|extension| extension != "new"));
        let version = |path: &std::path::PathBuf| {
            let content = self.disk.content(path).unwrap();
            content.get(8..16).map_or(0, |bytes| u64::from_le_bytes(bytes.try_into().unwrap()))
        };
        let files: Vec<_> = versioned.collect();
        if files.len() > 1
            && let Some(newest) = files.iter().max_by_key(|path| version(path))
        {
            self.disk.flip_bit(newest, 300).unwrap();
        }
    }

    /// Appends an event with its times, and says whether it was acknowledged.
    pub(super) async fn append_at(&mut self, shard: u16, type_name: &str, times: (i64, i64), payload: &str) -> bool {
        let log = self.process().log.clone();
        let shard = &log.shards()[usize::from(shard)];
        let type_id = log.types().intern(&name(type_name));
        let number = self.next;
        self.next += 1;
        let (event_time, received_at) = (Some(times.0), times.1);
        let record = JournalRecord { event_time, received_at, ..record(number, type_name, payload.as_bytes()) };
        let Ok(taken) = shard.append_one(&record, type_id) else { return false };
        let append = taken.appended().unwrap();
        shard.commit_pending();
        append.await.is_ok()
    }

    /// Appends all events as one request, which is one block.
    pub(super) async fn append_request(&mut self, type_name: &str, count: u64, payload: &[u8]) {
        let log = self.process().log.clone();
        let type_id = log.types().intern(&name(type_name));
        let numbers: Vec<u64> = (self.next..self.next + count).collect();
        self.next += count;
        let mut batch = AppendBatch::default();
        for (line, number) in (0..).zip(&numbers) {
            batch.push(&record(*number, type_name, payload), SourceLine { number: line, type_id });
        }
        let append = log.shards()[0].append_derived(batch.records(), batch.type_counts()).unwrap();
        log.shards()[0].commit_pending();
        append.await.unwrap();
        self.acknowledged.extend(numbers.into_iter().map(|number| (number, type_name.to_owned())));
    }

    /// A world whose data directory is a copy of this one's, and whose stores are the same. Its events are others.
    pub(super) fn copy(&self, seed: u64) -> Self {
        let mut copy = Self::new(seed);
        (copy.disk, copy.shards, copy.routes) = (self.disk.fork(seed), self.shards, self.routes.clone());
        (copy.fenced, copy.keyed) = (self.fenced.clone(), self.keyed.clone());
        copy.next = self.next + 1_000_000 * (seed + 1);
        copy
    }

    /// Appends one revision of a result of type `named`, which isn't one of the events that are acknowledged.
    pub(super) async fn append_revision(&mut self, number: u64, revision: u64) {
        let log = self.process().log.clone();
        let type_id = log.types().intern(&name("named"));
        let payload = format!("{{\"revision\":{revision}}}");
        let result = JournalRecord { revision: Some(revision), ..record(number, "named", payload.as_bytes()) };
        let append = log.shards()[0].append_one(&result, type_id).unwrap().appended().unwrap();
        log.shards()[0].commit_pending();
        append.await.unwrap();
    }

    /// The number that the next event will have.
    pub(super) fn next_number(&self) -> u64 {
        self.next
    }

    pub(super) fn rows(&self) -> Vec<LedgerRow> {
        self.process().ledger.snapshot()
    }

    pub(super) fn pending(&self) -> u64 {
        self.rows().iter().flat_map(|row| &row.sinks).map(|sink| sink.pending).sum()
    }

    /// How often something was reported with `text` in it.
    pub(super) fn reported(&self, text: &str) -> usize {
        self.messages().iter().filter(|message| message.contains(text)).count()
    }

    pub(super) fn messages(&self) -> Vec<String> {
        self.logged.lines()
    }

    /// The ledger balances, and never had to be corrected.
    pub(super) fn check_balance(&self) {
        for row in self.rows() {
            for sink in &row.sinks {
                assert_eq!(row.accepted, sink.stored + sink.dead + sink.skipped + sink.pending, "{row:?}");
            }
        }
        assert_eq!(self.process().ledger.errors().get(), 0, "{:?}", self.rows());
    }

    /// Waits until nothing is pending.
    pub(super) async fn wait_until_settled(&self) {
        for _ in 0..1000 {
            if self.pending() == 0 {
                return;
            }
            seconds(1).await;
        }
        panic!("events stay pending: {:?}, {:?}", self.rows(), self.messages());
    }

    /// Waits until nothing is pending in one sink.
    pub(super) async fn settle_in(&self, sink: &str) {
        for _ in 0..1000 {
            let rows = self.rows();
            if rows.iter().flat_map(|row| &row.sinks).all(|row| &*row.sink != sink || row.pending == 0) {
                return;
            }
            seconds(1).await;
        }
        panic!("events stay pending: {:?}, {:?}", self.rows(), self.messages());
    }

    /// Every acknowledged event is once in each store that it has a route to, or among its dead letters, and the
    /// ledger says the same. Ends the process.
    pub(super) async fn check_all(&mut self) {
        self.check_balance();
        let rows = self.rows();
        self.stop().await;
        for (sink, store) in [(FENCED, self.fenced.clone()), (KEYED, self.keyed.clone())] {
            let mut dead: BTreeSet<EventId> = self.dead_letters(sink);
            let dropped = self.dropped.iter().filter(|(name, id)| name == sink && store.get(*id).is_none());
            dead.extend(dropped.map(|(_, id)| *id));
            for (number, type_name) in &self.acknowledged {
                let routed = self.is_routed(*number, type_name, sink);
                let found = (store.get(id(*number)).is_some(), dead.contains(&id(*number)));
                let wanted = if routed { found.0 != found.1 } else { found == (false, false) };
                assert!(wanted, "{sink}, event {number} of {type_name}: (stored, dead) = {found:?}");
            }
            let sum = |pick: fn(&ledger::SinkRow) -> u64| -> u64 {
                rows.iter().flat_map(|row| &row.sinks).filter(|row| &*row.sink == sink).map(pick).sum()
            };
            assert_eq!(sum(|row| row.stored), store.count() as u64, "{sink}: stored; {rows:?}");
            assert_eq!(sum(|row| row.dead), dead.len() as u64, "{sink}: dead; {rows:?}");
        }
    }

    /// The ids of all dead letters of a sink that are on the disk and held or dropped.
    pub(super) fn dead_letters(&self, sink: &str) -> BTreeSet<EventId> {
        let directory = DataDirectory::open(Arc::new(self.disk.clone()), Path::new(DATA)).unwrap();
        let path = Path::new(DATA).join("dead").join(sink);
        let options = ShardOptions {
            segments_ahead: false,
            first_segment_bytes: 256 * 1024,
            ..ShardOptions::new(directory.disk().clone(), path, directory.origin(), 0)
        };
        let opened = find_shard(&options).and_then(FoundShard::open).unwrap();
        let mut reader = Reader::new(opened.segments, 1);
        let mut found = BTreeMap::new();
        while let Some(LogChunk::Block(block)) = reader.read(opened.durable).unwrap() {
            for (at, record) in block.records() {
                let dead = DeadFields::of(&record);
                if dead.settled.is_some_and(|code| code > DROPPED) {
                    continue;
                }
                let dead_letter = (record.id, dead.settled, dead.reason.to_owned());
                // A replay sends undecided events too, and the store may reject them with its own message.
                let amends = match found.insert((dead.shard, dead.sequence), dead_letter) {
                    Some((_, None, reason)) => dead.settled.is_some() || dead.reason != reason,
                    Some(_) | None => true,
                };
                assert!(amends, "a dead letter is there twice with the same reason, at {at}");
                let is_known = dead.reason.contains("is set to") || dead.reason.contains("neither true nor false");
                assert!(dead.settled.is_some() || is_known, "{}", dead.reason);
            }
        }
        let dead = found.into_values().filter(|(_, settled, _)| *settled != Some(REPLAYED));
        dead.map(|(id, ..)| id).collect()
    }

    /// The dead letters that are held.
    pub(super) fn list(&self, filter: &DeadFilter) -> DeadList {
        self.process().office.list(filter, &PageRequest::first(1000, true)).unwrap()
    }

    /// The numbers of the events that are held as dead letters of a sink.
    pub(super) fn held(&self, sink: &str) -> Vec<u64> {
        let filter = DeadFilter { sink: Some(sink.into()), ..DeadFilter::default() };
        let number = |id: EventId| u64::try_from(u128::from_be_bytes(id.0)).unwrap();
        self.list(&filter).letters.iter().map(|dead_letter| number(dead_letter.id)).collect()
    }

    /// Replays or drops, and returns the sum of the outcomes.
    pub(super) async fn act(&self, action: DeadAction, filter: &DeadFilter) -> DeadOutcome {
        let outcomes = self.process().office.act(&action, filter, u64::MAX).await;
        let mut sum = outcomes[0].clone();
        for other in &outcomes[1..] {
            sum.stored += other.stored;
            sum.refused += other.refused;
            sum.dropped += other.dropped;
            sum.edited += other.edited;
            sum.left += other.left;
            sum.failure = sum.failure.or_else(|| other.failure.clone());
        }
        sum
    }

    /// The sums of one sink's rows: stored and dead.
    pub(super) fn stored_and_dead(&self, sink: &str) -> (u64, u64) {
        let rows = self.rows();
        let of_sink = rows.iter().flat_map(|row| &row.sinks).filter(|row| &*row.sink == sink);
        of_sink.fold((0, 0), |(stored, dead), row| (stored + row.stored, dead + row.dead))
    }
}

fn record<'a>(number: u64, type_name: &'a str, payload: &'a [u8]) -> JournalRecord<'a> {
    JournalRecord {
        // In the names of objects that follow it.
        event_time: Some(i64::try_from(number % 3).unwrap() * 3_600_000_000),
        client: Some([127, 0, 0, 1].into()),
        ..JournalRecord::new(id(number), 1, type_name, payload)
    }
}

/// The codes of the ends of dead letters. Greater ones are for deferred events.
const REPLAYED: u8 = 1;
const DROPPED: u8 = 2;

/// What a record of a journal of dead letters says in addition to the event, as `docs/internals/journal-format.md` has it.
struct DeadFields<'a> {
    shard: u16,
    sequence: u64,
    reason: &'a str,
    settled: Option<u8>,
}

impl<'a> DeadFields<'a> {
    fn of(record: &JournalRecord<'a>) -> Self {
        let value = |wanted| fields(record.owner_fields).find(|(tag, _)| *tag == wanted).map(|(_, value)| value);
        Self {
            shard: u16::from_le_bytes(value(8).unwrap().try_into().unwrap()),
            sequence: u64::from_le_bytes(value(6).unwrap().try_into().unwrap()),
            reason: std::str::from_utf8(value(7).unwrap()).unwrap(),
            settled: value(11).map(|code| code[0]),
        }
    }
}
