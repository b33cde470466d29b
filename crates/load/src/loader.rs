//! Loads files: reads lines, sends them in batches under keys that a repetition uses again, and remembers up to where
//! everything was answered.
//!
//! A batch's key says which load it belongs to, which input, and where in it the batch begins. Batches are cut the same
//! way each time, so batches that are resent after a crash have the same keys as before.

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
mod packing;
mod refused;
mod rotation;
mod select;
mod sender;
mod source;
mod state;
mod state_lock;
mod undecided;
mod unpack;

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

pub use counters::{Counts, LoadCounters};
pub use edit::{Edit, InvalidEdit};
pub use filter::{InvalidFilter, LineFilter};
pub use input::Input;

use anyhow::anyhow;
use clap::Args;
use clap::builder::{PathBufValueParser, TypedValueParser};
use expression::Expression;

use crate::IngestEndpoint;
use ack_watermark::AckWatermark;
use batch::Batch;
use body::Shape;
use gaps::Gaps;
use lines::LINE_BYTES_MAX;
use refused::{RefusedFile, Row};
use select::Selection;
use sender::{Post, Sender};
use source::{Block, Reading, Source};
use state::{Entry, Place, Settings, State};
use undecided::UndecidedLines;

/// The default bytes of a batch.
const BATCH_BYTES: usize = 1024 * 1024;
/// The greatest `--batch-bytes`: with one line more it must fit the server's limit.
const BATCH_BYTES_MAX: usize = 16 * 1024 * 1024;
const _: () = assert!(BATCH_BYTES_MAX + LINE_BYTES_MAX < limits::BATCH_BYTES_MAX);

/// Input that is only counted is read in pieces that stay in a core's cache.
const COUNT_BYTES: usize = 256 * 1024;

/// Gets messages for the operator during the load.
pub type Notify<'a> = &'a (dyn Fn(&str) + Sync);

/// The options of a load, as on the command line.
#[derive(Clone, Debug, Args)]
pub struct LoadOptions {
    /// Files to load: NDJSON or JSON arrays, plain or compressed with gzip or zstd; `-` is the standard input
    #[arg(required = true, value_name = "FILE", value_parser = PathBufValueParser::new().map(Input::of))]
    pub inputs: Vec<Input>,
    /// Connections that send batches concurrently
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub workers: u16,
    /// The target size of a batch in bytes, up to 16 MiB
    #[arg(long, value_name = "BYTES", default_value_t = BATCH_BYTES, value_parser = batch_bytes)]
    pub batch_bytes: usize,
    /// A name for this load: lines loaded under it are not stored again, even without its state file
    #[arg(long, value_name = "NAME", value_parser = load_id)]
    pub id: Option<String>,
    /// The state file of the load [default: FILE.forebay-load next to each file]
    #[arg(long, value_name = "FILE")]
    pub state: Option<PathBuf>,
    /// Write rejected lines to this file, each with its number and the reason
    #[arg(long, value_name = "FILE")]
    pub refused: Option<PathBuf>,
    /// Load only lines that match this regular expression
    #[arg(long = "match", value_name = "REGEX")]
    pub filter: Option<LineFilter>,
    /// Load only lines that also meet this CEL condition: 'status >= 500'
    #[arg(long = "where", value_name = "CEL")]
    pub condition: Option<Expression>,
    /// Count the selected lines and send nothing
    #[arg(long)]
    pub count: bool,
    /// Set or add the value at a pointer: /source='"web"'
    #[arg(long, value_name = "/POINTER=JSON", value_parser = Edit::set)]
    set: Vec<Edit>,
    /// Make the string at a pointer lower case
    #[arg(long, value_name = "/POINTER", value_parser = Edit::lower)]
    lower: Vec<Edit>,
    /// Trim the white space around the string at a pointer
    #[arg(long, value_name = "/POINTER", value_parser = Edit::trim)]
    trim: Vec<Edit>,
    /// Continue when the file grows, is truncated or rotated, until Ctrl-C
    #[arg(long, conflicts_with = "count")]
    pub follow: bool,
}

impl LoadOptions {
    /// The edits of each line: fields are set first, then lowered, then trimmed.
    fn edits(&self) -> Vec<Edit> {
        [self.set.as_slice(), &self.lower, &self.trim].concat()
    }
}

fn batch_bytes(text: &str) -> Result<usize, String> {
    let bytes = text.parse().ok().filter(|bytes| (1024..=BATCH_BYTES_MAX).contains(bytes));
    bytes.ok_or_else(|| format!("expected a number of bytes from 1024 to {BATCH_BYTES_MAX}"))
}

/// The id is part of each batch's key, which has at most 256 bytes.
fn load_id(text: &str) -> Result<String, String> {
    let is_sound = (1..=128).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
    is_sound.then(|| text.to_owned()).ok_or_else(|| "expected 1 to 128 visible ASCII characters".to_owned())
}

/// An input can't be read further.
fn unreadable(error: io::Error) -> anyhow::Error {
    anyhow!("can't read more of the file: {error}. Correct this and start the load again: it resumes there")
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
/// The message says which input failed. What was answered before is remembered.
pub fn run(
    (to, options): (&IngestEndpoint, &LoadOptions),
    counters: &LoadCounters,
    stop: &AtomicBool,
    notify: Notify<'_>,
) -> anyhow::Result<Ended> {
    let load = Load { to, options, counters, stop, notify };
    counters.change(|counts| counts.bytes_all = size_of(&options.inputs).unwrap_or(0));
    for input in &options.inputs {
        load.load(input).map_err(|error| anyhow!("{}: {error}", input.name()))?;
        if stop.load(Ordering::Relaxed) {
            return Ok(Ended::Stopped);
        }
    }
    Ok(Ended::Complete)
}

/// Bytes of all inputs, if all are files.
fn size_of(inputs: &[Input]) -> Option<u64> {
    let size = |input: &Input| match input {
        Input::File(path) => std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file).map(|file| file.len()),
        Input::Stdin => None,
    };
    inputs.iter().map(size).sum()
}

struct Load<'a> {
    to: &'a IngestEndpoint,
    options: &'a LoadOptions,
    counters: &'a LoadCounters,
    stop: &'a AtomicBool,
    notify: Notify<'a>,
}

/// The state that one input's workers share.
struct Work<'a> {
    input: &'a str,
    /// The prefix of the keys of its batches.
    key: String,
    shape: Shape,
    source: Mutex<Source<'a>>,
    watermark: &'a AckWatermark<'a>,
    post: Option<Post<'a>>,
    refused: Option<RefusedFile>,
    halt: Halt<'a>,
}

/// When to end: the caller has set `stop`, or a worker has failed.
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
    fn load(&self, input: &Input) -> anyhow::Result<()> {
        let name = input.name();
        let mut state = self.state(input)?;
        self.counters.begin_input();
        // The number of lines isn't needed, and to count them costs as much as to find those that match.
        let only_matches = self.options.count && self.options.filter.is_some() && self.options.condition.is_none();
        let reading = Reading {
            block_bytes: if self.options.count { COUNT_BYTES } else { self.options.batch_bytes },
            counts_lines: !only_matches,
            follow: self.options.follow,
            settle: follow::SETTLE,
            stop: self.stop,
            read: self.counters.bytes_read.clone(),
            gaps: Gaps { notify: self.notify, counters: self.counters },
        };
        let source = Source::open(input, state.entry(&name), reading)?;
        let (before, read_before) = (source.entry().clone(), self.counters.read().lines_read);
        let Place { offset, lines, refused, .. } = before.place;
        self.counters.begin_sending(offset > 0);
        let is_within_line = source.is_within_line();
        self.counters.change(|counts| {
            counts.lines_before += lines;
            counts.refused_before += refused;
        });
        self.load_from(&name, source, &mut state)?;
        if self.counters.read().lines_read == read_before && !self.stop.load(Ordering::Relaxed) {
            // Only line breaks are counted: a later one ends the last line, which counts then.
            self.counters.change(|counts| counts.lines_before += u64::from(is_within_line));
            self.tell_loaded_before(&name, &before, &state);
        }
        Ok(())
    }

    /// Loads the rest of an input.
    fn load_from(&self, name: &str, source: Source<'_>, state: &mut State) -> anyhow::Result<()> {
        let entry = source.entry().clone();
        let key = key_of(state.id(), name);
        let watermark = AckWatermark::new(state, name, entry.clone());
        watermark.begin(entry)?;
        let work = Work {
            input: name,
            key,
            shape: self.shape(),
            source: Mutex::new(source),
            watermark: &watermark,
            post: (!self.options.count).then(|| self.post()),
            refused: self.options.refused.as_deref().map(RefusedFile::open).transpose()?,
            halt: Halt { stop: self.stop, has_failed: AtomicBool::new(false) },
        };
        let worked = self.work(&work);
        watermark.finish().and(worked)
    }

    /// Nothing was read: reports it if an earlier run has loaded all.
    fn tell_loaded_before(&self, name: &str, entry: &Entry, state: &State) {
        let (Some(loaded_at), Some(path)) = (&entry.loaded_at, state.path()) else { return };
        (self.notify)(&format!(
            "{name} was completely loaded at {loaded_at}: nothing was sent now. To load the file again as new events, \
             remove {} or give another --state",
            path.display()
        ));
    }

    fn state(&self, input: &Input) -> anyhow::Result<State> {
        let LoadOptions { batch_bytes, filter, condition, id, .. } = self.options;
        let path = match (&self.options.state, input) {
            _ if self.options.count => None,
            (Some(path), _) => Some(path.clone()),
            (None, Input::Stdin) => None,
            (None, Input::File(path)) => {
                let mut path = path.clone().into_os_string();
                path.push(".forebay-load");
                Some(path.into())
            }
        };
        let settings = Settings {
            url: self.to.server.target().to_string(),
            r#type: self.to.event_type.clone(),
            batch_bytes: *batch_bytes,
            r#match: filter.as_ref().map(ToString::to_string),
            r#where: condition.as_ref().map(ToString::to_string),
            edits: self.options.edits().iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
        };
        State::open(path, id.as_deref(), settings)
    }

    fn shape(&self) -> Shape {
        let LoadOptions { filter, condition, batch_bytes, .. } = self.options;
        let selection = Selection { filter: filter.clone(), condition: condition.clone() };
        Shape { selection, edits: self.options.edits(), bytes: *batch_bytes }
    }

    fn post(&self) -> Post<'_> {
        let Load { to, counters, notify, .. } = *self;
        Post { server: &to.server, path: to.path("batch"), token: to.token.as_deref(), counters, notify }
    }

    fn work(&self, work: &Work<'_>) -> anyhow::Result<()> {
        thread::scope(|scope| {
            let workers: Vec<_> = (0..self.options.workers).map(|_| scope.spawn(|| self.worker(work))).collect();
            let ended = workers.into_iter().map(|worker| match worker.join() {
                Ok(ended) => ended,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            // All are waited for, and the first error counts.
            ended.fold(Ok(()), Result::and)
        })
    }

    fn worker(&self, work: &Work<'_>) -> anyhow::Result<()> {
        let mut block = Vec::new();
        // Lines that were read before an error are still sent and answered.
        let mut unread = Ok(());
        let mut all = || {
            let sender = work.post.as_ref().map(Sender::new).transpose()?;
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
                let Some(refused) = self.take(work, &found, &block, sender.as_ref())? else { break };
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

    /// Processes a block, and returns how many of its lines were rejected; none if it wasn't processed because it is time
    /// to stop.
    fn take(
        &self,
        work: &Work<'_>,
        block: &Block,
        bytes: &[u8],
        sender: Option<&Sender<'_>>,
    ) -> anyhow::Result<Option<u64>> {
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
        self.counters.change(|counts| {
            counts.lines_read += block.lines;
            counts.matched += matched;
        });
        Ok(refused)
    }

    /// Rejects the line after a block that is too long to read: the server never gets it.
    fn refuse_too_long(&self, work: &Work<'_>, block: &Block, length: u64) -> anyhow::Result<u64> {
        self.counters.change(|counts| counts.lines_read += 1);
        if work.post.is_none() {
            self.counters.change(|counts| counts.matched += u64::from(work.shape.selection.takes_all()));
            return Ok(0);
        }
        let before = self.counters.change(|counts| counters::add(&mut counts.refused, 1));
        let detail = format!(
            "the line has {length} bytes, and at most {LINE_BYTES_MAX} are allowed: it was not sent. Make it shorter"
        );
        let line = block.lines_before + block.lines + 1;
        // It was skipped, so its text isn't known.
        let row = Row { file: work.input, line, code: "too_large", detail: &detail, text: "" };
        row.show(before, self.notify);
        if let Some(kept) = &work.refused {
            let mut rows = Vec::new();
            row.append(&mut rows);
            kept.append_durably(&rows)?;
        }
        Ok(1)
    }

    fn undecided<'b>(&'b self, work: &'b Work<'_>, block: &Block, bytes: &'b [u8]) -> UndecidedLines<'b> {
        let Load { counters, notify, .. } = *self;
        UndecidedLines::new(work.input, bytes, block.lines_before, (counters, notify), work.refused.as_ref())
    }
}

/// The prefix of all keys of an input's batches: the load and, shortened to a checksum, the input's name.
fn key_of(id: &str, input: &str) -> String {
    format!("load-{id}-{:016x}", state::sum(input.as_bytes()))
}
