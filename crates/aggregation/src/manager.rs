//! All aggregates of a process: started, changed and ended with the configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use aggregate::Fold;
use event::{Origin, Position, TypeName};
use eventlog::{DataDirectory, EventLog, Reserve, Shard, SharedDisk, list_directory, make_directory};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::checkpoint::{Checkpoint, CheckpointFile, Found};
use crate::halt::Halt;
use crate::options::AggregationOptions;
use crate::retention::AggregateRetention;
use crate::setup::AggregateSetup;
use crate::status::{AggregateBoard, AggregateFigures, AggregateStatus};
use crate::thread::FoldThreads;
use crate::worker::{Times, Worker};

pub(crate) const FOLDER: &str = "aggregates";
/// How long an aggregate may take for its current step before it is aborted, as by a crash.
const STEP_MAX: Duration = Duration::from_secs(1);

/// The environment of aggregates.
struct Deps {
    log: Arc<EventLog>,
    disk: SharedDisk,
    folder: PathBuf,
    reserve: Arc<Reserve>,
    origin: Origin,
    options: Arc<AggregationOptions>,
}

impl Deps {
    fn new(log: &Arc<EventLog>, directory: &DataDirectory, options: AggregationOptions) -> Self {
        Self {
            log: log.clone(),
            disk: directory.disk().clone(),
            folder: directory.path().join(FOLDER),
            reserve: directory.reserve().clone(),
            origin: directory.origin(),
            options: Arc::new(options),
        }
    }
}

struct Running {
    setup: AggregateSetup,
    status: Arc<AggregateStatus>,
    halt: watch::Sender<Halt>,
    task: JoinHandle<()>,
}

/// An aggregate that is ready to start.
struct Prepared {
    worker: Worker,
    halt: watch::Sender<Halt>,
    /// A message for the operator about its start.
    message: Option<String>,
}

/// The aggregates.
pub struct AggregateManager {
    around: Deps,
    pins: Arc<AggregateRetention>,
    board: AggregateBoard,
    /// The configured aggregates.
    setups: Vec<AggregateSetup>,
    running: BTreeMap<TypeName, Running>,
    /// Aggregates that wait for their thread.
    prepared: Vec<Prepared>,
    threads: FoldThreads,
}

impl Drop for AggregateManager {
    fn drop(&mut self) {
        self.running.values().for_each(|running| running.task.abort());
    }
}

impl AggregateManager {
    /// The aggregates of a process that writes to `log`: none yet.
    #[must_use]
    pub fn new(log: &Arc<EventLog>, directory: &DataDirectory, options: AggregationOptions) -> Self {
        Self {
            threads: FoldThreads::new(options.threads),
            around: Deps::new(log, directory, options),
            pins: Arc::default(),
            board: AggregateBoard::default(),
            setups: Vec::new(),
            running: BTreeMap::new(),
            prepared: Vec::new(),
        }
    }

    /// The positions up to which the aggregates need no segments.
    pub const fn pins(&self) -> &Arc<AggregateRetention> {
        &self.pins
    }

    /// The status of the aggregates.
    pub const fn board(&self) -> &AggregateBoard {
        &self.board
    }

    /// Opens the aggregates that do not run, from their checkpoints. `was_routed` says whether a type had its own route
    /// in the last saved ledger, if there is one: a result type with a route belongs to an aggregate that existed.
    ///
    /// # Errors
    /// The error of the file system; nothing has changed.
    pub fn prepare(
        &mut self,
        setups: &[AggregateSetup],
        was_routed: Option<impl Fn(&TypeName) -> bool>,
    ) -> io::Result<()> {
        let missing: Vec<&AggregateSetup> =
            setups.iter().filter(|setup| !self.running.contains_key(setup.name())).collect();
        if missing.is_empty() {
            return Ok(());
        }
        make_directory(&*self.around.disk, &self.around.folder)?;
        let files = self.around.disk.list(&self.around.folder)?;
        let mut prepared = Vec::new();
        for setup in missing {
            let begin = Beginning::of(setup, &files, was_routed.as_ref());
            match self.open(setup, begin) {
                Ok(opened) => prepared.push(opened),
                Err(error) => {
                    prepared.iter().for_each(|ready: &Prepared| self.pins.remove(ready.worker.setup.name()));
                    return Err(error);
                }
            }
        }
        self.prepared = prepared;
        Ok(())
    }

    fn open(&self, setup: &AggregateSetup, begin: Beginning) -> io::Result<Prepared> {
        let around = &self.around;
        let name = setup.name();
        let file_name = setup.file_name();
        let (mut file, found) = CheckpointFile::open(
            around.disk.clone(),
            &around.folder,
            &file_name,
            around.reserve.clone(),
            &setup.rules,
        )?;
        let (fold, mark, message) = match found {
            Found::Sound(checkpoint) => {
                let Checkpoint { mut fold, mark } = *checkpoint;
                around.log.shards().iter().for_each(|shard| fold.add_shard(shard.number()));
                (fold, Some(mark), None)
            }
            Found::None(reason) => {
                let begin = if reason.is_some() { Beginning::Oldest } else { begin };
                let fold = self.new_fold(setup, begin);
                file.write(&fold, around.log.shards()[0].durable())?;
                (fold, None, begin.message(reason.as_deref()))
            }
        };
        let status = Arc::new(AggregateStatus::new(name.clone(), around.log.clone(), AggregateFigures::of(&fold)));
        let (sender, halt) = watch::channel(Halt::No);
        let worker = Worker {
            setup: setup.clone(),
            log: around.log.clone(),
            fold,
            file,
            pins: self.pins.clone(),
            status,
            options: around.options.clone(),
            halt,
            type_id: around.log.types().intern(name),
            mark,
            times: Times::new(),
        };
        worker.pin();
        Ok(Prepared { worker, halt: sender, message })
    }

    fn new_fold(&self, setup: &AggregateSetup, begin: Beginning) -> Fold {
        let shards = self.around.log.shards();
        let numbers: Vec<u16> = shards.iter().map(|shard| shard.number()).collect();
        let mut fold = Fold::new(setup.rules.clone(), self.around.origin, &numbers);
        for shard in shards {
            let sequence = match begin {
                Beginning::Oldest | Beginning::First => before_oldest(shard),
                Beginning::End | Beginning::Changed => shard.durable(),
            };
            fold.pass(Position { shard: shard.number(), sequence });
        }
        fold
    }

    /// From now on these are configured. Others are forgotten.
    pub fn adopt(&mut self, setups: Vec<AggregateSetup>) {
        self.setups = setups;
        for ready in &mut self.prepared {
            if let Some(message) = ready.message.take() {
                tracing::warn!(aggregate = %ready.worker.setup.name(), "{message}");
            }
        }
        let kept: BTreeSet<String> = self.setups.iter().map(AggregateSetup::file_name).collect();
        if let Err(error) = self.remove_files(&kept) {
            tracing::warn!(
                reason = %error,
                "can't remove the states of aggregates that are no longer configured: check the disk and permissions \
                 of the data directory"
            );
        }
        self.show();
    }

    fn show(&self) {
        let running = self.running.values().map(|running| running.status.clone());
        let mut all: Vec<_> = running.chain(self.prepared.iter().map(|ready| ready.worker.status.clone())).collect();
        all.sort_by(|one, other| one.name().cmp(other.name()));
        self.board.show(all);
    }

    fn remove_files(&self, kept: &BTreeSet<String>) -> io::Result<()> {
        for file in list_directory(&*self.around.disk, &self.around.folder)? {
            // A state file's two generations and its temporary file each have a suffix.
            if file.rsplit_once('.').is_some_and(|(stem, _)| stem.contains('@') && !kept.contains(stem)) {
                self.around.disk.remove(&self.around.folder.join(&file))?;
            }
        }
        Ok(())
    }

    /// Starts the prepared aggregates.
    pub fn start(&mut self) -> io::Result<()> {
        let mut places = Vec::new();
        for _ in &self.prepared {
            places.push(self.threads.place()?);
        }
        for (Prepared { worker, halt, .. }, place) in self.prepared.drain(..).zip(places) {
            let (setup, status) = (worker.setup.clone(), worker.status.clone());
            let task = place.spawn(worker.run());
            self.running.insert(setup.name().clone(), Running { setup, status, halt, task });
        }
        Ok(())
    }

    /// Ends the aggregates that are not in `setups` unchanged. Their state stays in their checkpoints until
    /// [`AggregateManager::adopt`].
    pub async fn end_others(&mut self, setups: &[AggregateSetup]) {
        let must_end = |running: &Running| !setups.iter().any(|setup| setup.is_same(&running.setup));
        let going: Vec<TypeName> =
            self.running.iter().filter(|(_, running)| must_end(running)).map(|(name, _)| name.clone()).collect();
        for name in going {
            let Some(Running { halt, mut task, .. }) = self.running.remove(&name) else { continue };
            halt.send_replace(Halt::Now);
            if timeout(STEP_MAX, &mut task).await.is_err() {
                task.abort();
                // It ends at its next pause at the latest.
                let _ = task.await;
            }
            self.pins.remove(&name);
        }
    }

    /// Continues with the configured aggregates, after a change that failed.
    pub fn resume(&mut self) {
        let setups = self.setups.clone();
        self.prepared.iter().for_each(|ready| self.pins.remove(ready.worker.setup.name()));
        self.prepared.clear();
        // The aggregates that were prepared for the change have saved their initial states. Later starts must not begin
        // with them.
        let kept = setups.iter().map(AggregateSetup::file_name).collect();
        if let Err(error) = self.remove_files(&kept) {
            tracing::warn!(
                reason = %error,
                "can't remove the aggregate states of a failed reload, and the next reload may use them: check the \
                 disk and permissions of the data directory"
            );
        }
        if let Err(error) = self.prepare(&setups, Some(|_: &TypeName| false)).and_then(|()| self.start()) {
            tracing::warn!(
                reason = %error,
                "can't resume aggregates: check the disk and permissions of the data directory, then restart Forebay"
            );
        }
        self.show();
    }

    /// Reports aggregates that ended because of a bug.
    pub fn report_bugs(&mut self) {
        let ended = |running: &Running| running.task.is_finished() && *running.halt.borrow() == Halt::No;
        for (name, running) in &self.running {
            if ended(running) {
                running.halt.send_replace(Halt::Now);
                tracing::warn!(
                    aggregate = %name,
                    "BUG: the aggregate ended; its events stay in the journal. Restart Forebay, and report this"
                );
            }
        }
    }

    /// Ends each worker when it has caught up or is drained, as `when` says, and the others when `over` ends. Returns
    /// whether all had ended before.
    pub async fn end_when(&mut self, when: Halt, over: impl Future<Output = ()>) -> bool {
        let (mut in_time, mut over) = (true, pin!(over));
        for running in self.running.values() {
            running.halt.send_replace(when);
        }
        for (_, Running { halt, mut task, .. }) in std::mem::take(&mut self.running) {
            in_time = in_time
                && tokio::select! {
                    biased;
                    _ = &mut task => true,
                    () = over.as_mut() => false,
                };
            if in_time {
                continue;
            }
            halt.send_replace(Halt::Now);
            if timeout(STEP_MAX, &mut task).await.is_err() {
                task.abort();
                let _ = task.await;
            }
        }
        self.threads = FoldThreads::new(self.around.options.threads);
        in_time
    }
}

/// Where an aggregate without a state begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beginning {
    /// With the process's first start.
    First,
    /// It is new.
    End,
    /// Its definition has changed.
    Changed,
    /// Its state is lost.
    Oldest,
}

impl Beginning {
    fn of(setup: &AggregateSetup, files: &[String], was_routed: Option<impl Fn(&TypeName) -> bool>) -> Self {
        let prefix = setup.file_prefix();
        let Some(was_routed) = was_routed else { return Self::First };
        if files.iter().any(|file| file.starts_with(&prefix)) {
            return Self::Changed;
        }
        if was_routed(setup.name()) { Self::Oldest } else { Self::End }
    }

    fn message(self, reason: Option<&str>) -> Option<String> {
        match self {
            Self::First | Self::End => None,
            Self::Changed => Some(
                "the aggregate's definition has changed: the aggregate begins with the next event, and discards its \
                 open windows"
                    .to_owned(),
            ),
            Self::Oldest => {
                let reason = reason.unwrap_or("its state file is missing");
                Some(format!(
                    "aggregate has lost its state ({reason}): it begins with the oldest event in the journal, and \
                     results of windows that began earlier are incomplete"
                ))
            }
        }
    }
}

/// The last sequence before the oldest event that a shard has.
fn before_oldest(shard: &Shard) -> u64 {
    shard.segments().oldest().unwrap_or(1).saturating_sub(1)
}
