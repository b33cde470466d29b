//! The outcomes of events, by type and sink, and their dead letters.

use dead_letters::{DeadCounters, DeadLetterService};
use eventlog::EventLog;
use ledger::{LedgerRow, SinkRow};

use crate::metrics::exposition::{Exposition, Series};

/// Adds events whose time couldn't be read.
pub(super) fn unread_times(text: &mut Exposition, log: &EventLog) {
    let help = "Events whose time could not be read, by type; their time of receipt is used.";
    text.counter("forebay_event_times_unread_total", help, |series| {
        for (type_name, events) in log.types().unread_times().counts() {
            series.count(&[("type", type_name.as_str())], events);
        }
    });
}

/// Adds the outcomes of events.
pub(super) fn ledger(text: &mut Exposition, rows: &[LedgerRow]) {
    text.counter("forebay_events_accepted_total", "Events accepted and durable, by type.", |series| {
        let accepted = |row: &LedgerRow| if row.derived { 0 } else { row.accepted };
        rows.iter().for_each(|row| series.count(&[("type", row.type_name.as_str())], accepted(row)));
    });
    text.counter("forebay_events_derived_total", "Results of aggregates that are durable, by type.", |series| {
        let derived = |row: &LedgerRow| if row.derived { row.accepted } else { 0 };
        rows.iter().for_each(|row| series.count(&[("type", row.type_name.as_str())], derived(row)));
    });
    let help = "Events stored, by type and sink.";
    text.counter("forebay_events_stored_total", help, |series| each_sink(rows, series, |sink| sink.stored));
    let help = "Events whose outcome is a dead letter, by type and sink. A replay that is stored lowers it.";
    text.counter("forebay_events_dead_total", help, |series| each_sink(rows, series, |sink| sink.dead));
    let help = "Events skipped, because they were not for the sink, by type and sink.";
    text.counter("forebay_events_skipped_total", help, |series| each_sink(rows, series, |sink| sink.skipped));
    let help = "Events lost from the journal before an outcome, by type and sink.";
    text.counter("forebay_events_lost_total", help, |series| each_sink(rows, series, |sink| sink.lost));
    let help = "Events without an outcome yet, by type and sink.";
    text.gauge("forebay_events_pending", help, |series| each_sink(rows, series, |sink| sink.pending));
    let help =
        "Whether the route is removed from the configuration (1) and its pending events are held, by type and sink.";
    text.gauge("forebay_route_removed", help, |series| each_sink(rows, series, |sink| sink.removed.into()));
}

/// Adds the dead letters of each sink.
pub(super) fn dead_letters(text: &mut Exposition, rows: &[LedgerRow], dead_letters: &DeadLetterService) {
    text.gauge("forebay_dead_letters", "Dead letters held, by type and sink.", |series| {
        each_route(rows, series, |row, sink| dead_letters.held(&sink.sink, &row.type_name));
    });
    let help =
        "Events that became dead letters since the start of the process, by type and sink. Replays don't lower it.";
    text.counter("forebay_events_dead_lettered_total", help, |series| {
        each_route(rows, series, |row, sink| dead_letters.written(&sink.sink, &row.type_name));
    });
    let help =
        "Deferred events: pending, because their store rejects them for now and accepts others, by type and sink.";
    text.gauge("forebay_events_deferred", help, |series| {
        each_route(rows, series, |row, sink| dead_letters.deferred(&sink.sink, &row.type_name).0);
    });
    let help = "Lost positions in the journal of dead letters, until the loss is accepted, by sink.";
    text.gauge("forebay_dead_letters_lost", help, |series| {
        for (sink, lost) in dead_letters.lost() {
            series.count(&[("sink", &sink)], lost);
        }
    });
    let mut count = |name, help, of: fn(&DeadCounters) -> u64| {
        text.counter(name, help, |series| {
            dead_letters.counters().iter().for_each(|(sink, dead)| series.count(&[("sink", sink)], of(dead)));
        });
    };
    count("forebay_dead_replayed_total", "Dead letters replayed and stored, by sink.", |dead| dead.replayed.get());
    count("forebay_dead_refused_again_total", "Dead letters replayed and rejected again, by sink.", |dead| {
        dead.refused_again.get()
    });
    count("forebay_dead_dropped_total", "Dead letters dropped, by sink.", |dead| dead.dropped.get());
}

fn each_sink(rows: &[LedgerRow], series: &mut Series<'_>, of: impl Fn(&SinkRow) -> u64) {
    each_route(rows, series, |_, sink| of(sink));
}

fn each_route(rows: &[LedgerRow], series: &mut Series<'_>, of: impl Fn(&LedgerRow, &SinkRow) -> u64) {
    for row in rows {
        for sink in &row.sinks {
            series.count(&[("type", row.type_name.as_str()), ("sink", &sink.sink)], of(row, sink));
        }
    }
}
