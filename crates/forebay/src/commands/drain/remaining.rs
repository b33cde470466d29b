//! What remains in a drained directory, by sink and type.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use aggregation::AggregateBoard;
use dead_letters::{DeadFilter, DeadLetterService, each_dead_letter};
use delivery::{Delivery, LaneBoard};
use eventlog::EventLog;
use journal::DataDirectory;
use ledger::Ledger;
use text::{OperatorCommand, counted};

use admin_api::route::{RouteJson, RoutesJson};
use cli::errors::at;
use cli::on_one_line;
use cli::output::print;

/// The sources of the list, which outlive delivery.
pub(super) struct Stays {
    log: Arc<EventLog>,
    ledger: Arc<Ledger>,
    lanes: LaneBoard,
    aggregates: AggregateBoard,
    dead_letters: DeadLetterService,
}

/// What remains, one line for each.
pub(super) struct Found(Vec<String>);

impl Stays {
    pub(super) fn new(log: &Arc<EventLog>, delivery: &Delivery) -> Self {
        Self {
            log: log.clone(),
            ledger: delivery.ledger().clone(),
            lanes: delivery.lanes().clone(),
            aggregates: delivery.aggregates().clone(),
            dead_letters: delivery.dead_letters().clone(),
        }
    }

    /// Finds what remains.
    ///
    /// # Errors
    /// The dead letters can't be read.
    pub(super) fn find(&self, directory: &DataDirectory) -> anyhow::Result<Found> {
        let mut dead = BTreeMap::<(String, String), u64>::new();
        let lost_letters = each_dead_letter(directory, &DeadFilter::default(), false, &mut |letter| {
            *dead.entry((letter.sink.to_string(), letter.type_name)).or_default() += 1;
        });
        let lost_letters = lost_letters.map_err(at(directory.path().join("dead")))?;
        let routes = RoutesJson::of(&self.ledger.snapshot(), &self.lanes.lanes(), &self.dead_letters).routes;
        let mut lines: Vec<String> = routes.iter().filter(|route| route.pending > 0).map(pending).collect();
        lines.extend(
            dead.iter()
                .map(|((sink, of), letters)| format!("{sink}  {of}  dead  {}", counted(*letters, "dead letter"))),
        );
        let open = self.aggregates.aggregates().into_iter().filter_map(|aggregate| {
            let windows = aggregate.figures().windows;
            (windows > 0).then(|| format!("-  {}  open  {}", aggregate.name(), counted(windows, "window")))
        });
        lines.extend(open);
        let verify = OperatorCommand::JournalVerify;
        lines.extend(self.log.losses().open_ones().iter().map(|loss| format!("lost: {}", loss.message())));
        let lost: u64 = self.lanes.lanes().iter().map(|lane| lane.lost.get()).sum();
        if lost > 0 {
            let events = counted(lost, "event");
            lines.push(format!("lost: {events} that can't be read in the journal: {verify}"));
        }
        let lost: u64 = self.aggregates.aggregates().iter().map(|aggregate| aggregate.lost.get()).sum();
        if lost > 0 {
            let events = counted(lost, "event");
            lines.push(format!("lost: {events} that aggregates can't read in the journal: {verify}"));
        }
        if lost_letters > 0 {
            let positions = counted(lost_letters, "position");
            lines.push(format!("lost: {positions} of dead letters: {verify}"));
        }
        Ok(Found(lines))
    }
}

/// The line for a route with pending events.
fn pending(route: &RouteJson) -> String {
    let RouteJson { type_name, sink, state, pending, deferred, reason, .. } = route;
    let deferred = if *deferred > 0 { format!(", {deferred} of them deferred") } else { String::new() };
    let reason = route.last_deferred.as_ref().map(|last| &last.reason).or(reason.as_ref());
    let reason = reason.map(|reason| format!(": {}", on_one_line(reason))).unwrap_or_default();
    format!("{sink}  {type_name}  {state}  {pending} pending{deferred}{reason}")
}

impl Found {
    pub(super) fn add(&mut self, lines: Vec<String>) {
        self.0.extend(lines);
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Prints the lines, or that nothing remains.
    ///
    /// # Errors
    /// The standard output can't be written.
    pub(super) fn print(&self, data: &Path) -> anyhow::Result<()> {
        print(|output| {
            if self.is_empty() {
                writeln!(output, "everything is stored: {} can be deleted", data.display())?;
            }
            self.0.iter().try_for_each(|line| writeln!(output, "{line}"))
        })
    }
}
