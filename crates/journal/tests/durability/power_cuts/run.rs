//! One run: a process that appends, frees, stops, is killed and loses its power, as a seed decides.

use journal::simulated_disk::{CutStyle, Random, SimulatedDisk};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::fault_injector::FaultInjector;
use super::model::{Model, Request, Violation};
use super::process::{Process, Seen, recycled_files};
use super::tally::Tally;
use crate::events::{Event, request};

/// A way in which the disk or the journal's user does wrong. A campaign must notice each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlantedBug {
    /// Syncs of files do nothing.
    FileSyncs,
    /// Syncs of directories do nothing.
    DirectorySyncs,
    /// State files get their names before they are synced.
    UnsyncedState,
    /// Segments are freed before the cursor that allows it is durable.
    FreesFirst,
    /// A request is answered before its block is committed.
    AnswersFirst,
}

/// The constants of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunSettings {
    pub(crate) first_segment_bytes: u64,
    pub(crate) segment_bytes_max: u64,
    wrong: Option<PlantedBug>,
}

/// How a step is interrupted.
#[derive(Clone, Copy, Debug)]
enum Interruption {
    Nothing,
    Power(u64),
    Kill(u64),
}

/// The outcome of a step.
enum Outcome {
    Done(Box<Process>),
    /// It failed, and the process is dead.
    Died,
}

const STEPS: u64 = 40;
const PAGE: u64 = 4096;

pub(crate) struct Run<'a> {
    random: Random,
    disk: SimulatedDisk,
    setting: RunSettings,
    model: Model,
    tally: &'a mut Tally,
    starts: u64,
    events: u64,
    trace: u64,
}

/// Does the run that `seed` decides; returns a checksum over everything that happened.
pub(crate) fn run(seed: u64, wrong: Option<PlantedBug>, tally: &mut Tally) -> Result<u64, Violation> {
    let mut random = Random::new(seed);
    let disk = SimulatedDisk::new(random.number());
    disk.ignore_sync(wrong == Some(PlantedBug::FileSyncs));
    disk.ignore_sync_directory(wrong == Some(PlantedBug::DirectorySyncs));
    let first_segment_bytes = PAGE * (4 + random.below(5));
    let segment_bytes_max = PAGE * [4, 8, 8, 16][usize::try_from(random.below(4)).expect("below 4")];
    let setting = RunSettings { first_segment_bytes, segment_bytes_max, wrong };
    tally.runs += 1;
    let mut run = Run { random, disk, setting, model: Model::default(), tally, starts: 0, events: 0, trace: seed };
    run.go()?;
    run.note_disk();
    Ok(run.trace)
}

impl Run<'_> {
    fn go(&mut self) -> Result<(), Violation> {
        let mut process = self.restart()?;
        for _ in 0..STEPS {
            let interruption = self.interruption();
            let outcome = self.step(process, interruption)?;
            self.note(self.disk.operations());
            process = match outcome {
                Outcome::Done(process) => {
                    self.disk.clear_faults();
                    process.way.spare();
                    if self.random.once_in(4) {
                        self.explore(3)?;
                    }
                    process
                }
                Outcome::Died => self.restart()?,
            };
        }
        Ok(())
    }

    fn interruption(&mut self) -> Interruption {
        match self.random.below(8) {
            0..=2 => Interruption::Nothing,
            3..=6 => Interruption::Power(1 + self.random.below(14)),
            _ => Interruption::Kill(1 + self.random.below(14)),
        }
    }

    fn arm(&self, process: &Process, interruption: Interruption) {
        match interruption {
            Interruption::Nothing => {}
            Interruption::Power(operations) => self.disk.fail_power_at(operations),
            Interruption::Kill(operations) => process.way.kill_at(operations),
        }
    }

    fn step(&mut self, process: Box<Process>, interruption: Interruption) -> Result<Outcome, Violation> {
        self.arm(&process, interruption);
        match self.random.below(16) {
            0..=9 => self.commit(process),
            10..=13 => self.free(process),
            14 => self.stop(process),
            _ => Ok(Outcome::Died),
        }
    }

    /// A step that failed must have been interrupted.
    fn died(&self, process: &Process, error: &dyn std::fmt::Display) -> Result<Outcome, Violation> {
        if self.disk.power_is_off() || process.way.is_dead() {
            return Ok(Outcome::Died);
        }
        Err(Violation::new(format!("nothing was wrong, but: {error}")))
    }

    fn commit(&mut self, mut process: Box<Process>) -> Result<Outcome, Violation> {
        let mut requests = Vec::new();
        for _ in 0..=self.random.below(4) {
            let events = self.some_events();
            let first = process.shard.appender.append(&request(&events));
            requests.push(Request { first, events });
        }
        self.model.attempt(requests);
        if self.setting.wrong == Some(PlantedBug::AnswersFirst) {
            self.model.acknowledge();
        }
        let (segments, recycled) = (process.shard.segments.count(), recycled_files(&self.disk));
        let block = process.shard.appender.take();
        let end = block.end();
        match process.shard.committer.commit(block, 1) {
            Ok(block) if block.header().end() == end => self.model.acknowledge(),
            Ok(block) => return Err(Violation::new(format!("wrong block: {:?}", block.header()))),
            Err(error) => return self.died(&process, &error),
        }
        process.shard.durable = end - 1;
        self.tally.commits += 1;
        self.tally.rolled += u64::from(process.shard.segments.count() > segments);
        self.tally.recycled_used += u64::from(recycled_files(&self.disk) < recycled);
        Ok(Outcome::Done(process))
    }

    fn some_events(&mut self) -> Vec<Event> {
        let (count, bytes) = match self.random.below(32) {
            0..=15 => (1, self.random.below(300)),
            16..=23 => (2 + self.random.below(8), self.random.below(600)),
            24..=27 => (1, 3000 + self.random.below(3000)),
            28..=30 => (2 + self.random.below(3), 1000 + self.random.below(2000)),
            _ => (1, 15_000 + self.random.below(20_000)),
        };
        let bytes = usize::try_from(bytes).expect("small");
        let numbers = self.events + 1..=self.events + count;
        self.events += count;
        numbers.map(|number| Event::new(number, bytes)).collect()
    }

    /// Moves the cursor, and frees the segments before it.
    fn free(&mut self, mut process: Box<Process>) -> Result<Outcome, Violation> {
        let (low, last) = (self.model.cursor(), self.model.last());
        let cursor = last - self.random.below(last.saturating_sub(low) + 1).min(last) / 4;
        let recycled = recycled_files(&self.disk);
        self.model.attempt_cursor(cursor);
        if self.setting.wrong == Some(PlantedBug::FreesFirst)
            && let Err(error) = process.shard.segments.free_up_to(cursor)
        {
            return self.died(&process, &error);
        }
        if let Err(error) = process.cursor.write(&cursor.to_le_bytes()) {
            return self.died(&process, &error);
        }
        self.model.acknowledge_cursor();
        match process.shard.segments.free_up_to(cursor) {
            Err(error) => return self.died(&process, &error),
            Ok(freed) => self.tally.freed += freed as u64,
        }
        self.tally.recycled += u64::from(recycled_files(&self.disk) > recycled);
        Ok(Outcome::Done(process))
    }

    /// A clean stop.
    fn stop(&mut self, process: Box<Process>) -> Result<Outcome, Violation> {
        let Process { shard, way, .. } = *process;
        match shard.committer.seal(shard.durable + 1, 1) {
            Ok(()) => self.tally.seals += 1,
            Err(_) if self.disk.power_is_off() || way.is_dead() => {}
            Err(error) => return Err(Violation::new(format!("nothing was wrong, but: {error}"))),
        }
        Ok(Outcome::Died)
    }

    /// Starts repeatedly until a start is not interrupted, and checks its events.
    fn restart(&mut self) -> Result<Box<Process>, Violation> {
        loop {
            if self.disk.power_is_off() {
                self.tally.cuts_within_operations += 1;
                self.explore(CutStyle::ALL.len())?;
                self.disk.power_cut();
            } else {
                self.tally.kills += 1;
                if self.random.once_in(3) {
                    self.disk.power_cut();
                }
                self.disk.clear_faults();
            }
            let way = FaultInjector::new(self.disk.clone(), self.setting.wrong == Some(PlantedBug::UnsyncedState));
            match self.random.below(8) {
                0 => self.disk.fail_power_at(1 + self.random.below(60)),
                1 => way.kill_at(1 + self.random.below(60)),
                _ => {}
            }
            self.starts += 1;
            match Process::start(way.clone(), &self.setting, self.starts) {
                Ok(process) => {
                    self.disk.clear_faults();
                    way.spare();
                    if !self.disk.power_is_off() {
                        return self.accept(Box::new(process));
                    }
                }
                Err(_) if self.disk.power_is_off() => self.tally.cuts_in_recovery += 1,
                Err(_) if way.is_dead() => {}
                Err(error) => return Err(Violation::new(format!("a start failed: {error}"))),
            }
        }
    }

    fn accept(&mut self, process: Box<Process>) -> Result<Box<Process>, Violation> {
        let seen = self.look(&process)?;
        self.model.check(&seen)?;
        self.model.accept(&seen);
        self.note(seen.events.len() as u64);
        Ok(process)
    }

    fn look(&self, process: &Process) -> Result<Seen, Violation> {
        let seen = process.look().map_err(|error| Violation::new(format!("reading failed: {error}")))?;
        match process.agrees_from_cursor(&seen) {
            Ok(true) => Ok(seen),
            Ok(false) => Err(Violation::new("a reader from the cursor on finds something else")),
            Err(error) => Err(Violation::new(format!("reading failed: {error}"))),
        }
    }

    /// Cuts the power of copies of the disk, in each style or in some of them, and checks the rest.
    fn explore(&mut self, cuts: usize) -> Result<(), Violation> {
        let offset = if cuts < CutStyle::ALL.len() { self.random.below(12) } else { 0 };
        for number in 0..cuts {
            let at = (usize::try_from(offset).expect("small") + number * 5) % CutStyle::ALL.len();
            let style = CutStyle::ALL[at];
            let fork = self.disk.fork(self.random.number());
            fork.power_cut_in_style(style);
            fork.clear_faults();
            if self.random.once_in(6) {
                self.cut_recovery(&fork)?;
            }
            self.check_state(&fork, style)?;
        }
        Ok(())
    }

    /// Lets the power of a copy fail while it recovers; an interrupted recovery must do no harm.
    fn cut_recovery(&mut self, fork: &SimulatedDisk) -> Result<(), Violation> {
        fork.fail_power_at(1 + self.random.below(60));
        let way = FaultInjector::new(fork.clone(), self.setting.wrong == Some(PlantedBug::UnsyncedState));
        let started = Process::start(way, &self.setting, self.starts + 1).map(drop);
        fork.clear_faults();
        if fork.power_is_off() {
            self.tally.cuts_in_recovery += 1;
            fork.power_cut();
        } else if let Err(error) = started {
            return Err(Violation::new(format!("a start failed: {error}")));
        }
        Ok(())
    }

    fn check_state(&mut self, disk: &SimulatedDisk, style: CutStyle) -> Result<(), Violation> {
        let way = FaultInjector::new(disk.clone(), self.setting.wrong == Some(PlantedBug::UnsyncedState));
        let process = Process::start(way, &self.setting, self.starts + 2)
            .map_err(|error| Violation::new(format!("a start failed after a cut in style {style:?}: {error}")))?;
        let seen = self.look(&process)?;
        self.tally.count(style, &seen, self.model.last());
        self.note(seen.durable);
        self.model.check(&seen).map_err(|Violation(text)| Violation(format!("after a cut in style {style:?}: {text}")))
    }

    fn note(&mut self, number: u64) {
        self.trace = xxh3_64_with_seed(&number.to_le_bytes(), self.trace);
    }

    fn note_disk(&mut self) {
        for path in self.disk.paths() {
            self.trace = xxh3_64_with_seed(path.as_os_str().as_encoded_bytes(), self.trace);
            let content = self.disk.content(&path).expect("the path is there");
            self.trace = xxh3_64_with_seed(&content, self.trace);
        }
    }
}
