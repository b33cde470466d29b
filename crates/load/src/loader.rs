//! Loads files: reads lines, sends them in batches under keys that a repetition gives again, and remembers up to where
//! everything was answered.
//!
//! A batch's key says which load it belongs to, which input, and where in it the batch begins. Batches are cut the same
//! way each time, so whatever is sent again after a crash comes under the keys that it had before.

mod ack_watermark;
mod array;
mod batch;
mod batch_result;
mod body;
mod counters;
mod edit;
mod filter;
mod follow;
mod gaps;
mod input;
mod lines;
mod refused;
mod rotation;
mod select;
mod sender;
mod source;
mod state;
mod state_lock;
mod undecided;

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

pub use counters::{Counters, Counts};
pub use edit::{Edit, InvalidEdit};
pub use filter::{InvalidFilter, LineFilter};
pub use input::Input;

use expression::Expression;

use crate::{Server, Target};
use ack_watermark::AckWatermark;
use batch::Batch;
use body::Shape;
use gaps::Gaps;
use refused::{RefusedFile, TooLong};
use select::Selection;
use sender::{Post, Sender};
use source::{Block, Reading, Source};
use state::{Entry, Settings, State};
use undecided::{Shown, UndecidedLines};

/// The bytes of a batch, where nothing else is said.
pub const BATCH_BYTES: usize = 1024 * 1024;
/// The most that a batch may be told to have: with one line more it must fit the server's limit.
pub const BATCH_BYTES_MAX: usize = 16 * 1024 * 1024;
const _: () = assert!(BATCH_BYTES_MAX + lines::LINE_BYTES_MAX < event::limits::BATCH_BYTES_MAX);

/// What is only counted is read in pieces that stay in a core's cache.
const COUNT_BYTES: usize = 256 * 1024;

/// Hears what a person should know while it goes on.
pub type Notify<'a> = &'a (dyn Fn(&str) + Sync);

/// What to load, and how.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// The server.
    pub server: Server,
    /// The type of the events; without it the server decides.
    pub event_type: Option<String>,
    /// What shows the server that the sender may.
    pub token: Option<String>,
    /// One after the other.
    pub inputs: Vec<Input>,
    /// Threads, each with a connection.
    pub workers: usize,
    /// About the bytes of a batch, at most [`BATCH_BYTES_MAX`].
    pub batch_bytes: usize,
    /// A name of the load; without it one is made and kept in the state.
    pub id: Option<String>,
    /// Where the state is kept; without it beside each file.
    pub state: Option<PathBuf>,
    /// Where refused lines are kept.
    pub refused: Option<PathBuf>,
    /// Only lines that match are loaded.
    pub filter: Option<LineFilter>,
    /// Of these only lines that this holds for.
    pub condition: Option<Expression>,
    /// What is done with each line.
    pub edits: Vec<Edit>,
    /// Lines are counted and not sent.
    pub count_only: bool,
    /// The end of the (last) file isn't the end.
    pub follow: bool,
}

/// Why a load ends before its end.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// An input can't be opened.
    #[error("can't open {path}: {source}")]
    Open {
        /// Its path.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// An input can't be read on.
    #[error("can't be read on: {0}")]
    Read(#[source] io::Error),
    /// The file has lost its end.
    #[error(
        "it has {bytes} bytes and begins as before, but {loaded} bytes of it were loaded: it was cut. What it still has was loaded, and          nothing was sent now. If there are new lines, load them as a file of their own; if all are new, give --state another name"
    )]
    Shrunk {
        /// Bytes that it has.
        bytes: u64,
        /// Bytes that were loaded.
        loaded: u64,
    },
    /// The input begins with `[` but isn't an array.
    #[error("it begins like a JSON array, and something stands behind the array's end")]
    NoArray,
    /// The array's closing bracket is missing.
    #[error(
        "it ends within a JSON array, as a file that was cut. The whole elements before were loaded; when the rest is there, start again"
    )]
    OpenArray,
    /// The server isn't the one that it should be, or nobody vouches for it.
    #[error("{target}: {source}")]
    Untrusted {
        /// Its address.
        target: Target,
        /// What is wrong with it.
        source: io::Error,
    },
    /// Only files can be followed.
    #[error("only a file of lines that isn't compressed can be followed")]
    CannotFollow,
    /// The standard input isn't the one of before.
    #[error("the standard input isn't the one that this state belongs to: give another --state")]
    OtherInput,
    /// The state can't be read or written.
    #[error("the state {path}: {source}; --state names another place for it")]
    State {
        /// Its path.
        path: PathBuf,
        /// What is wrong.
        source: io::Error,
    },
    /// Another load works with the state.
    #[error(
        "another load of this file is running, with the state {path}: wait for its end, or let it do the work; to load the \
         file elsewhere beside it, give --state another name"
    )]
    InUse {
        /// The state's path.
        path: PathBuf,
    },
    /// A line was loaded before it was whole.
    #[error(
        "line {line} had no line break when it was loaded, and now the file goes on behind it, at byte {offset}: what was \
         loaded is perhaps only the line's first part. Nothing from there on was sent. If the line was whole, insert a line break \
         there and start again; if not, load it and what follows under a name of its own, as `tail -n +{line} FILE | forebay \
         load - --id NAME`. For files that are still written to there is --follow, which waits for line breaks"
    )]
    LineHasGrown {
        /// Its number, from 1.
        line: u64,
        /// Where it ended before, in decoded bytes.
        offset: u64,
    },
    /// There is no end to what the server wants sent alone.
    #[error(
        "the batch at byte {offset}: lines that were sent alone, as the server wants it, are refused with the batch once more, and \
         so are others that it doesn't list. Look for the step of their type that forgets what it has seen, and start again"
    )]
    Unlisted {
        /// Where the batch begins, in decoded bytes.
        offset: u64,
    },
    /// The state belongs to a load with other settings.
    #[error(
        "{path} belongs to load {id} with other settings ({was}): give the same to go on with it, another --state to \
         load anew, or remove it"
    )]
    OtherSettings {
        /// The state's path.
        path: PathBuf,
        /// The load's name.
        id: String,
        /// Its settings as JSON.
        was: String,
    },
    /// The file of refused lines can't be written.
    #[error("{path}: {source}")]
    Refused {
        /// Its path.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The server doesn't take the batches, and won't.
    #[error("the server answered {status}: {answer}")]
    Rejected {
        /// The answer's status.
        status: u16,
        /// Its body.
        answer: String,
    },
    /// No random number for the load's name.
    #[error("no random number for the load's id: {0}; name it with --id")]
    Random(#[source] io::Error),
}

/// An error, and the input that it befell.
#[derive(Debug, thiserror::Error)]
#[error("{input}: {source}")]
pub struct InputError {
    input: String,
    source: LoadError,
}

/// How a load ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Everything was answered.
    Complete,
    /// It was stopped; there may be more to load.
    Stopped,
}

/// Loads everything. Ends early, and in good order, once `stop` is set.
///
/// # Errors
/// [`InputError`] says which input failed. What was answered before is remembered.
pub fn run(
    options: &LoadOptions,
    counters: &Counters,
    stop: &AtomicBool,
    notify: Notify<'_>,
) -> Result<Ended, InputError> {
    let load = Load { options, counters, stop, notify };
    for input in &options.inputs {
        load.load(input).map_err(|source| InputError { input: input.name(), source })?;
        if stop.load(Ordering::Relaxed) {
            return Ok(Ended::Stopped);
        }
    }
    Ok(Ended::Complete)
}

struct Load<'a> {
    options: &'a LoadOptions,
    counters: &'a Counters,
    stop: &'a AtomicBool,
    notify: Notify<'a>,
}

/// What one input's workers share.
struct Work<'a> {
    input: &'a str,
    /// What the keys of its batches begin with.
    key: String,
    shape: Shape,
    source: Mutex<Source<'a>>,
    watermark: &'a AckWatermark<'a>,
    post: Option<Post<'a>>,
    refused: Option<RefusedFile>,
    halt: Halt<'a>,
}

/// When to end: somebody asks for it, or a worker has failed.
struct Halt<'a> {
    stop: &'a AtomicBool,
    has_failed: AtomicBool,
}

impl Halt<'_> {
    fn is_set(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.has_failed.load(Ordering::Relaxed)
    }
}

impl Load<'_> {
    fn load(&self, input: &Input) -> Result<(), LoadError> {
        let name = input.name();
        let mut state = self.state(input)?;
        self.counters.bytes_read.store(0, Ordering::Relaxed);
        // Nobody asks how many lines there are, and to count them costs as much as to find those that match.
        let only_matches = self.options.count_only && self.options.filter.is_some() && self.options.condition.is_none();
        let reading = Reading {
            block_bytes: if self.options.count_only { COUNT_BYTES } else { self.options.batch_bytes },
            counts_lines: !only_matches,
            follow: self.options.follow,
            settle: follow::SETTLE,
            stop: self.stop,
            read: self.counters.bytes_read.clone(),
            gaps: Gaps { notify: self.notify, count: &self.counters.gaps },
        };
        let (source, size) = Source::open(input, state.entry(&name), reading)?;
        self.counters.bytes_all.store(size, Ordering::Relaxed);
        let (before, read_before) = (source.entry().clone(), self.counters.read().lines_read);
        self.load_from(&name, source, &mut state)?;
        if self.counters.read().lines_read == read_before && !self.stop.load(Ordering::Relaxed) {
            self.tell_loaded_before(&name, &before, &state);
        }
        Ok(())
    }

    /// Loads what an input still has.
    fn load_from(&self, name: &str, source: Source<'_>, state: &mut State) -> Result<(), LoadError> {
        let entry = source.entry().clone();
        Counters::add(&self.counters.refused_before, entry.place.refused);
        let key = key_of(state.id(), name);
        let watermark = AckWatermark::new(state, name, entry.clone());
        watermark.begin(entry)?;
        let work = Work {
            input: name,
            key,
            shape: self.shape(),
            source: Mutex::new(source),
            watermark: &watermark,
            post: (!self.options.count_only).then(|| self.post()),
            refused: self.options.refused.as_deref().map(RefusedFile::open).transpose()?,
            halt: Halt { stop: self.stop, has_failed: AtomicBool::new(false) },
        };
        let worked = self.work(&work);
        watermark.finish().and(worked)
    }

    /// Nothing came: says so where an earlier run has had it all.
    fn tell_loaded_before(&self, name: &str, entry: &Entry, state: &State) {
        let (Some(loaded_at), Some(path)) = (&entry.loaded_at, state.path()) else { return };
        (self.notify)(&format!(
            "{name} was loaded before, up to its end, at {loaded_at}: nothing of it was sent now. To load it once more, as new events, \
             remove {} or give another --state",
            path.display()
        ));
    }

    fn state(&self, input: &Input) -> Result<State, LoadError> {
        let LoadOptions { server, event_type, batch_bytes, filter, condition, edits, id, .. } = self.options;
        let path = match (&self.options.state, input) {
            _ if self.options.count_only => None,
            (Some(path), _) => Some(path.clone()),
            (None, Input::Stdin) => None,
            (None, Input::File(path)) => {
                let mut path = path.clone().into_os_string();
                path.push(".forebay-load");
                Some(path.into())
            }
        };
        let settings = Settings {
            url: server.target().to_string(),
            r#type: event_type.clone(),
            batch_bytes: *batch_bytes,
            r#match: filter.as_ref().map(ToString::to_string),
            r#where: condition.as_ref().map(ToString::to_string),
            edits: edits.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
        };
        State::open(path, id.as_deref(), settings)
    }

    fn shape(&self) -> Shape {
        let LoadOptions { filter, condition, edits, batch_bytes, .. } = self.options;
        let selection = Selection { filter: filter.clone(), condition: condition.clone() };
        Shape { selection, edits: edits.clone(), bytes: *batch_bytes }
    }

    fn post(&self) -> Post<'_> {
        let LoadOptions { server, event_type, token, .. } = self.options;
        let path = match event_type {
            Some(name) => format!("/ingest/batch/{name}"),
            None => "/ingest/batch".to_owned(),
        };
        let path = server.target().path(&path);
        Post { server, path, token: token.as_deref(), counters: self.counters, notify: self.notify }
    }

    fn work(&self, work: &Work<'_>) -> Result<(), LoadError> {
        thread::scope(|scope| {
            let workers: Vec<_> = (0..self.options.workers.max(1)).map(|_| scope.spawn(|| self.worker(work))).collect();
            let ended = workers.into_iter().map(|worker| match worker.join() {
                Ok(ended) => ended,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            // All are waited for, and the first error counts.
            ended.fold(Ok(()), Result::and)
        })
    }

    fn worker(&self, work: &Work<'_>) -> Result<(), LoadError> {
        let mut sender = work.post.as_ref().map(Sender::new);
        let mut block = Vec::new();
        // What was read before an error is still sent and answered.
        let mut unread = Ok(());
        let mut all = || {
            while !work.halt.is_set() {
                let next = work.source.lock().unwrap_or_else(PoisonError::into_inner).next(&mut block, work.watermark);
                let found = match next {
                    Ok(Some(found)) => found,
                    Ok(None) => break,
                    Err(error) => {
                        unread = Err(error);
                        break;
                    }
                };
                let Some(refused) = self.take(work, &found, &block, sender.as_mut())? else { break };
                work.watermark.answered(found.number, found.place, refused)?;
            }
            Ok(())
        };
        let ended = all();
        if ended.is_err() {
            work.halt.has_failed.store(true, Ordering::Relaxed);
        }
        if work.halt.is_set() {
            work.watermark.give_up();
        }
        ended.and(unread)
    }

    /// Does with a block what is to be done, and says how many of its lines were refused; none if it wasn't done because it is time
    /// to stop.
    fn take(
        &self,
        work: &Work<'_>,
        block: &Block,
        bytes: &[u8],
        sender: Option<&mut Sender<'_>>,
    ) -> Result<Option<u64>, LoadError> {
        let mut refused = Some(0);
        if let Some(length) = block.too_long {
            refused = Some(self.refuse_too_long(work, block, length)?);
        }
        let mut open = self.undecided(work, block, bytes);
        let undecided = |line, why: &_| open.take(line, why);
        let selection = &work.shape.selection;
        let matched = if let Some(sender) = sender.filter(|_| !bytes.is_empty()) {
            work.shape.pieces(bytes, block.lines, undecided, |piece| {
                if let Some(before) = refused {
                    let batch = Batch { load: self, work, block, piece };
                    refused = batch.deliver(sender)?.map(|now| before + now);
                }
                Ok(())
            })?
        } else if selection.takes_all() {
            block.lines
        } else if let Some(count) = selection.count_matching(bytes) {
            count
        } else {
            let mut count = 0;
            selection.lines(bytes, |_| count += 1, undecided)?;
            count
        };
        open.end()?;
        Counters::add(&self.counters.lines_read, block.lines);
        Counters::add(&self.counters.matched, matched);
        Ok(refused)
    }

    /// Refuses the line behind a block that was passed over: nobody else gets to see it.
    fn refuse_too_long(&self, work: &Work<'_>, block: &Block, length: u64) -> Result<u64, LoadError> {
        Counters::add(&self.counters.lines_read, 1);
        if work.post.is_none() {
            Counters::add(&self.counters.matched, u64::from(work.shape.selection.takes_all()));
            return Ok(0);
        }
        let line = block.lines_before + block.lines + 1;
        let before = self.counters.refused.fetch_add(1, Ordering::Relaxed);
        let refused = TooLong { input: work.input, line, length };
        refused.show(before, self.notify);
        if let Some(kept) = &work.refused {
            refused.keep(kept)?;
        }
        Ok(1)
    }

    fn undecided<'b>(&'b self, work: &'b Work<'_>, block: &Block, bytes: &'b [u8]) -> UndecidedLines<'b> {
        let shown = Shown { counters: self.counters, notify: self.notify };
        UndecidedLines::new(work.input, bytes, block.lines_before, shown, work.refused.as_ref())
    }
}

/// What all keys of an input's batches begin with: the load and, shortened to a checksum, the input's name.
fn key_of(id: &str, input: &str) -> String {
    format!("load-{id}-{:016x}", state::sum(input.as_bytes()))
}
