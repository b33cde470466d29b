//! The thread of a tap: it compares samples with the condition, and writes lines about those that match.

use std::time::{Duration, Instant};

use bytes::Bytes;
use expression::Expression;
use rustix::process::setpriority_process;
use serde_json::json;
use tap::{OpenTap, Passing, Point};
use tokio::sync::mpsc::Sender;

use super::line;
use super::log_tail::LogTail;
use crate::lines;

/// Between two looks. The threads that offer events don't wake this one.
const TICK: Duration = Duration::from_millis(50);
const TICKS_A_SECOND: u32 = 20;
/// Events that are compared in a tick: 2,000 a second.
const EVENTS_A_TICK: i64 = 100;
/// Steps of the condition in a tick: some milliseconds.
const STEPS_A_TICK: usize = 100_000;
/// Seconds between two beats.
const BEAT_EVERY: u32 = 10;
/// By how much the thread is nicer than the shards.
const NICE: i32 = 10;

/// What a tap has seen in the current second.
#[derive(Debug, Default)]
struct Sum {
    passed: u64,
    looked_at: u64,
    matched: u64,
    shown: u64,
}

/// A tap, and its client.
pub(super) struct Sampler {
    tap: OpenTap,
    tail: Option<LogTail>,
    view: View,
}

/// What the client sees.
struct View {
    condition: Option<Expression>,
    rate: u32,
    at: Point,
    lines: Sender<Bytes>,
    /// The number of the last line.
    number: u64,
    sum: Sum,
    /// Lines left in this second.
    room: u32,
    /// Left in this tick.
    events: i64,
    steps: usize,
}

impl Sampler {
    pub(super) fn new(
        tap: OpenTap,
        tail: Option<LogTail>,
        condition: Option<Expression>,
        rate: u32,
        lines: Sender<Bytes>,
    ) -> Self {
        // Before the client gets its answer: it may post an event before this thread runs.
        tap.allow(EVENTS_A_TICK);
        let at = tap.filter().at;
        let view = View { condition, rate, at, lines, number: 0, sum: Sum::default(), room: rate, events: 0, steps: 0 };
        Self { tap, tail, view }
    }

    /// Runs until the client or the process is gone.
    pub(super) fn run(mut self) {
        // Shards come first. Without the permission all threads are alike.
        let _ = setpriority_process(None, NICE);
        let mut next = Instant::now();
        for tick in 1_u32.. {
            if self.view.lines.is_closed() || self.tap.has_ended() {
                return;
            }
            self.tap.allow(EVENTS_A_TICK);
            next = (next + TICK).max(Instant::now());
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
            self.look();
            if tick % TICKS_A_SECOND == 0 {
                self.view.finish_second(tick / TICKS_A_SECOND);
            }
        }
    }

    fn look(&mut self) {
        let Self { tap, tail, view } = self;
        (view.events, view.steps) = (EVENTS_A_TICK, STEPS_A_TICK);
        if let Some(tail) = tail {
            let skipped = tail.read(|passing| {
                if tap.filter().takes(passing.type_name, passing.source, passing.sink) {
                    view.sum.passed += 1;
                    view.look(passing);
                }
            });
            view.sum.passed += skipped;
            return;
        }
        while let Some(seen) = tap.take() {
            view.look(&seen.passing());
        }
        view.sum.passed += tap.take_passed();
    }
}

impl View {
    /// Counts an event and compares it, unless there were enough in this tick.
    fn look(&mut self, passing: &Passing<'_>) {
        if self.events <= 0 || self.steps == 0 {
            return;
        }
        self.events -= 1;
        self.sum.looked_at += 1;
        if !self.matches(passing) {
            return;
        }
        self.sum.matched += 1;
        if self.room > 0 && self.lines.try_send(line::of(self.number + 1, self.at, passing)).is_ok() {
            self.number += 1;
            self.sum.shown += 1;
            self.room -= 1;
        }
    }

    /// Whether the condition is true. Without the whole payload it isn't.
    fn matches(&mut self, passing: &Passing<'_>) -> bool {
        let Some(condition) = &self.condition else { return true };
        let payload = passing.payload.filter(|_| passing.is_whole());
        let payload = payload.and_then(|payload| str::from_utf8(payload).ok());
        payload.is_some_and(|payload| condition.holds_within(payload, &mut self.steps).unwrap_or(false))
    }

    /// A client that doesn't read gets the sum later.
    fn finish_second(&mut self, second: u32) {
        let Sum { passed, looked_at, matched, shown } = self.sum;
        let dropped = matched - shown;
        let sum = json!({
            "sum": "last 1 s", "passed": passed, "looked_at": looked_at, "matched": matched, "shown": shown, "dropped": dropped,
        });
        if self.lines.try_send(lines::line(&sum)).is_ok() {
            self.sum = Sum::default();
        }
        self.room = self.rate;
        if second.is_multiple_of(BEAT_EVERY) {
            let _ = self.lines.try_send(lines::beat());
        }
    }
}
