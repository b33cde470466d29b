//! All metrics of the process: every crate keeps its own counters, here they are collected and named.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use aggregation::{AggregateBoard, AggregateFigures, AggregateStatus};
use dead_letters::{DeadCounters, DeadLetterService};
use delivery::{CheckpointCounters, Delivery, LaneBoard, LaneState, LaneStatus};
use eventlog::{EventLog, FilterStep, Shard, unix_microseconds};
use gateway::{GatewayCounters, RouteName, StatusClass};
use ledger::{Ledger, LedgerRow, SinkRow};

use crate::log;
use crate::metrics::refusals;
use crate::metrics::retention;
use crate::metrics::text_format::{Exposition, Series, float};
use crate::metrics::upstreams;
use crate::object_registry::{ObjectRegistry, Served};
use crate::reload::ReloadCounters;
use crate::retention::RetentionBoard;
use discovery::UpstreamBoard;

/// Where the figures come from.
pub(crate) struct Metrics {
    log: Arc<EventLog>,
    gateway: Arc<GatewayCounters>,
    ledger: Arc<Ledger>,
    lanes: LaneBoard,
    aggregates: AggregateBoard,
    checkpoints: Arc<CheckpointCounters>,
    dead_letters: DeadLetterService,
    reloads: Arc<ReloadCounters>,
    objects: ObjectRegistry,
    upstreams: UpstreamBoard,
    retention: RetentionBoard,
    started: SystemTime,
}

impl Metrics {
    pub(crate) fn new(
        log: Arc<EventLog>,
        gateway: Arc<GatewayCounters>,
        delivery: &Delivery,
        reloads: Arc<ReloadCounters>,
        objects: ObjectRegistry,
        upstreams: UpstreamBoard,
        retention: RetentionBoard,
    ) -> Self {
        let (ledger, lanes, checkpoints) =
            (delivery.ledger().clone(), delivery.lanes().clone(), delivery.checkpoints().clone());
        let (dead_letters, aggregates) = (delivery.dead_letters().clone(), delivery.aggregates().clone());
        let started = clock::now();
        Self {
            log,
            gateway,
            ledger,
            lanes,
            aggregates,
            checkpoints,
            dead_letters,
            reloads,
            objects,
            upstreams,
            retention,
            started,
        }
    }

    /// The metrics of this moment as text.
    pub(crate) fn render(&self) -> String {
        let mut text = Exposition::new();
        let (rows, filtered) = self.ledger.snapshot_with_filtered();
        ledger(&mut text, &rows);
        self::filtered(&mut text, &filtered);
        unread_times(&mut text, &self.log);
        dead_letters(&mut text, &rows, &self.dead_letters);
        let errors = self.ledger.errors().get();
        text.count("forebay_ledger_errors_total", "Times that the ledger didn't add up: a bug.", errors);
        intake(&mut text, &self.gateway);
        self.journal(&mut text);
        let lane_list = self.lanes.lanes();
        lanes(&mut text, &lane_list);
        retention::add(&mut text, &self.retention);
        upstreams::render(&mut text, &self.upstreams.all(), &lane_list);
        aggregates(&mut text, &self.aggregates.aggregates());
        objects(&mut text, &self.objects);
        self.checkpoints(&mut text);
        self.process(&mut text);
        text.finish()
    }

    fn journal(&self, text: &mut Exposition) {
        let shards = self.log.shards();
        text.histogram("forebay_journal_commit_seconds", "Time of a commit: its write and fdatasync.", |series| {
            each_shard(shards, |label, shard| series.durations(label, &shard.counters().commit_time.snapshot()));
        });
        text.histogram("forebay_journal_commit_bytes", "Size of a commit, padding included.", |series| {
            each_shard(shards, |label, shard| series.sizes(label, &shard.counters().commit_bytes.snapshot()));
        });
        let mut count = |name, help, of: fn(&Shard) -> u64| {
            text.counter(name, help, |series| each_shard(shards, |label, shard| series.count(label, of(shard))));
        };
        count("forebay_journal_commits_total", "Commits.", |shard| shard.counters().commits.get());
        count("forebay_journal_records_total", "Records committed.", |shard| shard.counters().records.get());
        count("forebay_journal_commits_away_total", "Commits that were handed to the commit thread.", |shard| {
            shard.counters().commits_offloaded.get()
        });
        let mut gauge = |name, help, of: fn(&Shard) -> u64| {
            text.gauge(name, help, |series| each_shard(shards, |label, shard| series.count(label, of(shard))));
        };
        gauge("forebay_journal_bytes", "Size of all segments.", |shard| shard.segments().bytes());
        gauge("forebay_journal_segments", "Segments.", |shard| shard.segments().count() as u64);
        gauge("forebay_handover_bytes", "Blocks kept in memory for delivery.", |shard| shard.tail_cache_bytes() as u64);
        let room = self.log.disk_guard();
        text.level("forebay_disk_free_bytes", "Space on the disk of the data directory.", room.free_bytes());
        let help = "Whether events are refused because the disk has too little left.";
        text.level("forebay_disk_short", help, room.is_short().into());
        let help = "Damaged places that the last start found.";
        text.level("forebay_journal_recovery_findings", help, self.log.findings().len() as u64);
        let help = "Losses of acknowledged events that the operator hasn't accepted yet.";
        text.level("forebay_journal_open_losses", help, self.log.losses().open_ones().len() as u64);
        let help = "Requests that wait until their events are stored.";
        text.level("forebay_waiting_for_stores", help, self.log.delivery_watch().waiting() as u64);
        self.duplicates(text);
    }

    fn duplicates(&self, text: &mut Exposition) {
        let help = "How far back events that come again are recognised: the age of the oldest id.";
        text.gauge("forebay_duplicate_window_seconds", help, |series| {
            series.value(&[], self.log.ids_age().as_secs_f64());
        });
        let ids = self.log.ids_remembered() as u64;
        text.level("forebay_duplicate_window_ids", "Ids of clients that are remembered.", ids);
    }

    fn checkpoints(&self, text: &mut Exposition) {
        let checkpoints = &self.checkpoints;
        text.count("forebay_ledger_saves_total", "Times that ledger and cursors were saved.", checkpoints.saves.get());
        text.count(
            "forebay_ledger_failed_saves_total",
            "Times that they couldn't be saved.",
            checkpoints.failed_saves.get(),
        );
        text.count("forebay_journal_freed_segments_total", "Segments freed.", checkpoints.freed_segments.get());
        text.count(
            "forebay_journal_failed_frees_total",
            "Segments that couldn't be freed.",
            checkpoints.failed_frees.get(),
        );
    }

    fn process(&self, text: &mut Exposition) {
        text.counter("forebay_reloads_total", "Times that the configuration was read again, by result.", |series| {
            series.count(&[("result", "applied")], self.reloads.applied.get());
            series.count(&[("result", "refused")], self.reloads.refused.get());
        });
        let help = "Messages that were left out of the log because there were too many of their kind.";
        text.count("forebay_log_suppressed_total", help, log::suppressed());
        let help = "Lines of the log that were dropped because nothing read stderr.";
        text.count("forebay_log_dropped_total", help, log::dropped());
        text.gauge("forebay_build_info", "The version that runs; always 1.", |series| {
            series.count(&[("version", env!("CARGO_PKG_VERSION"))], 1);
        });
        text.gauge("forebay_start_time_seconds", "When the process started, in seconds since 1970.", |series| {
            let since = self.started.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            series.value(&[], since.as_secs_f64());
        });
    }
}

fn objects(text: &mut Exposition, board: &ObjectRegistry) {
    let served = board.all();
    let help = "Reads of objects, by sink and what came of them.";
    text.counter("forebay_object_reads_total", help, |series| {
        for served in &served {
            let counters = served.reads.counters();
            for (result, counter) in [
                ("hit", &counters.hits),
                ("joined", &counters.joined),
                ("miss", &counters.misses),
                ("revalidated", &counters.revalidated),
                ("stale", &counters.stale),
                ("unknown", &counters.unknown),
                ("failed", &counters.failed),
            ] {
                series.count(&[("sink", &served.name), ("result", result)], counter.get());
            }
        }
    });
    text.counter("forebay_object_fetched_bytes_total", "Bytes of objects that stores gave, by sink.", |series| {
        let fetched = |served: &Arc<Served>| served.reads.counters().fetched_bytes.get();
        served.iter().for_each(|served| series.count(&[("sink", &served.name)], fetched(served)));
    });
    text.level("forebay_object_cache_bytes", "Objects that are in memory for those who read them.", board.bytes());
}

fn filtered(text: &mut Exposition, steps: &[(FilterStep, u64)]) {
    let help = "Events that a step of their type's transform took out, by type, step and what it does.";
    text.counter("forebay_events_filtered_total", help, |series| {
        for (FilterStep { type_name, step, operation }, events) in steps {
            let step = step.to_string();
            series.count(&[("type", type_name.as_str()), ("step", &step), ("operation", operation)], *events);
        }
    });
}

fn unread_times(text: &mut Exposition, log: &EventLog) {
    let help = "Events whose time could not be read, by type: they count as happened when they were received.";
    text.counter("forebay_event_times_unread_total", help, |series| {
        for (type_name, events) in log.types().unread_times().counts() {
            series.count(&[("type", type_name.as_str())], events);
        }
    });
}

fn ledger(text: &mut Exposition, rows: &[LedgerRow]) {
    text.counter("forebay_events_accepted_total", "Events that were made durable, by type.", |series| {
        let accepted = |row: &LedgerRow| if row.derived { 0 } else { row.accepted };
        rows.iter().for_each(|row| series.count(&[("type", row.type_name.as_str())], accepted(row)));
    });
    text.counter("forebay_events_derived_total", "Results of aggregates that were made durable, by type.", |series| {
        let derived = |row: &LedgerRow| if row.derived { row.accepted } else { 0 };
        rows.iter().for_each(|row| series.count(&[("type", row.type_name.as_str())], derived(row)));
    });
    let help = "Events that their store has, by type and sink.";
    text.counter("forebay_events_stored_total", help, |series| each_sink(rows, series, |sink| sink.stored));
    let help = "Events that their store refused for good, by type and sink.";
    text.counter("forebay_events_dead_total", help, |series| each_sink(rows, series, |sink| sink.dead));
    let help = "Events that were not for the sink, by type and sink.";
    text.counter("forebay_events_skipped_total", help, |series| each_sink(rows, series, |sink| sink.skipped));
    let help = "Events that are lost from the journal without an outcome, by type and sink.";
    text.counter("forebay_events_lost_total", help, |series| each_sink(rows, series, |sink| sink.lost));
    let help = "Events without an outcome yet, by type and sink.";
    text.gauge("forebay_events_pending", help, |series| each_sink(rows, series, |sink| sink.pending));
    let help = "Whether the route was taken out of the configuration: what is pending there is held.";
    text.gauge("forebay_route_removed", help, |series| each_sink(rows, series, |sink| sink.removed.into()));
}

fn dead_letters(text: &mut Exposition, rows: &[LedgerRow], dead_letters: &DeadLetterService) {
    text.gauge("forebay_dead_letters", "Dead letters that wait for a person, by type and sink.", |series| {
        each_route(rows, series, |row, sink| dead_letters.held(&sink.sink, &row.type_name));
    });
    let help = "Pending events that are deferred: their store refuses them for now and takes others, by type and sink.";
    text.gauge("forebay_events_deferred", help, |series| {
        each_route(rows, series, |row, sink| dead_letters.deferred(&sink.sink, &row.type_name).0);
    });
    let help = "Positions of the journal of dead letters that are lost, and whose loss isn't accepted, by sink.";
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
    count("forebay_dead_replayed_total", "Dead letters that were replayed and stored.", |dead| dead.replayed.get());
    count("forebay_dead_refused_again_total", "Dead letters that were replayed and refused again.", |dead| {
        dead.refused_again.get()
    });
    count("forebay_dead_dropped_total", "Dead letters that were given up.", |dead| dead.dropped.get());
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

fn intake(text: &mut Exposition, gateway: &GatewayCounters) {
    text.counter("forebay_http_requests_total", "Requests answered, by route and class of status.", |series| {
        for route in RouteName::ALL {
            for class in StatusClass::ALL {
                let labels = [("route", route.as_str()), ("status", class.as_str())];
                series.count(&labels, gateway.requests(route, class));
            }
        }
    });
    refusals::add(text, gateway);
    text.histogram("forebay_http_request_seconds", "Time from a request's head to its answer.", |series| {
        series.durations(&[("route", RouteName::Event.as_str())], &gateway.event_time());
        series.durations(&[("route", RouteName::Batch.as_str())], &gateway.batch_time());
    });
    text.count("forebay_http_body_bytes_total", "Bytes of bodies received.", gateway.body_bytes());
    text.count("forebay_http_connections_total", "Connections taken.", gateway.connections_accepted());
    let refused = gateway.connections_refused();
    text.count(
        "forebay_http_connections_refused_total",
        "Connections closed since their client had too many.",
        refused,
    );
    text.count("forebay_tls_handshakes_total", "Connections on which TLS was agreed on.", gateway.tls_handshakes());
    let help = "Connections that spoke without TLS where it is needed, or didn't agree on it.";
    text.count("forebay_tls_failures_total", help, gateway.tls_failures());
    text.count("forebay_duplicates_total", "Events that came again and were recognised.", gateway.duplicates());
    text.count("forebay_http_accept_errors_total", "Connections that couldn't be taken.", gateway.accept_errors());
    text.level("forebay_http_connections", "Connections open.", gateway.open_connections() as u64);
    let drains = gateway.drains();
    let help = "Connections that are read on after a response that left before the request was read.";
    text.level("forebay_http_draining_connections", help, drains.draining() as u64);
    text.count("forebay_http_drained_bytes_total", "Bytes discarded on such connections.", drains.discarded_bytes());
    let help = "Connections closed at once after such a response, since too many were being drained.";
    text.count("forebay_http_drains_refused_total", help, drains.refused());
    text.level(
        "forebay_http_in_flight_bytes",
        "Bytes of bodies that aren't answered yet.",
        gateway.bytes_in_flight() as u64,
    );
}

fn lanes(text: &mut Exposition, lanes: &[Arc<LaneStatus>]) {
    text.gauge("forebay_lane_backlog_events", "Events of all types behind the lane's cursor.", |series| {
        each_lane(lanes, |labels, lane| series.count(labels, lane.backlog()));
    });
    text.gauge("forebay_lane_backlog_age_seconds", "Age of the oldest event that is being delivered.", |series| {
        each_lane(lanes, |labels, lane| series.value(labels, age(lane)));
    });
    text.gauge("forebay_lane_state", "What the lane does: 1 for its state, 0 for the others.", |series| {
        each_lane(lanes, |labels, lane| {
            let now = state_name(&lane.state());
            for state in ["connecting", "delivering", "waiting", "stopped"] {
                series.count(&[labels[0], labels[1], ("state", state)], u64::from(state == now));
            }
        });
    });
    let mut count = |name, help, of: fn(&LaneStatus) -> u64| {
        text.counter(name, help, |series| each_lane(lanes, |labels, lane| series.count(labels, of(lane))));
    };
    count("forebay_lane_batches_total", "Batches written.", |lane| lane.batches.get());
    count("forebay_lane_retries_total", "Attempts that failed.", |lane| lane.retries.get());
    count("forebay_lane_lost_events_total", "Events that damage has made unreadable.", |lane| lane.lost.get());
    text.histogram("forebay_lane_write_seconds", "Time that the sink took for a batch.", |series| {
        each_lane(lanes, |labels, lane| series.durations(labels, &lane.write_time.snapshot()));
    });
    text.histogram("forebay_lane_batch_records", "Records of a batch.", |series| {
        each_lane(lanes, |labels, lane| series.sizes(labels, &lane.batch_records.snapshot()));
    });
}

fn aggregates(text: &mut Exposition, aggregates: &[Arc<AggregateStatus>]) {
    let figures: Vec<_> = aggregates.iter().map(|status| (status, status.figures())).collect();
    let mut count = |name, help, of: fn(&AggregateStatus, &AggregateFigures) -> u64| {
        text.counter(name, help, |series| {
            for (status, figures) in &figures {
                series.count(&[("aggregate", status.name().as_str())], of(status, figures));
            }
        });
    };
    count("forebay_aggregate_events_total", "Events that the aggregate has taken.", |_, now| now.counts.taken);
    let help = "Times that an event came too late for a window and is in no result of it.";
    count("forebay_aggregate_late_total", help, |_, now| now.counts.late);
    let help = "Times that an event went to a part of a window that was over.";
    count("forebay_aggregate_parts_total", help, |_, now| now.counts.parts);
    let help = "Events that were dated too far ahead, or before 1970, and are in no result.";
    count("forebay_aggregate_misdated_total", help, |_, now| now.counts.out_of_range);
    let help = "Times that an event went to an overflow group.";
    count("forebay_aggregate_overflowed_total", help, |_, now| now.counts.overflowed);
    let help = "Values that no measure could use.";
    count("forebay_aggregate_unused_values_total", help, |_, now| now.counts.unused);
    count("forebay_aggregate_results_total", "Results that were given out.", |_, now| now.counts.results);
    let help = "Events of all types that damage has made unreadable for the aggregate.";
    count("forebay_aggregate_lost_events_total", help, |status, _| status.lost.get());
    count("forebay_aggregate_saves_total", "Times that its state was saved.", |status, _| status.saves.get());
    let help = "Times that its state couldn't be saved.";
    count("forebay_aggregate_failed_saves_total", help, |status, _| status.failed_saves.get());
    let mut gauge = |name, help, of: fn(&AggregateStatus, &AggregateFigures) -> f64| {
        text.gauge(name, help, |series| {
            for (status, figures) in &figures {
                series.value(&[("aggregate", status.name().as_str())], of(status, figures));
            }
        });
    };
    gauge("forebay_aggregate_windows", "Windows that may still change.", |_, now| float(now.windows as u64));
    gauge("forebay_aggregate_groups", "Groups of all its windows.", |_, now| float(now.groups as u64));
    let help = "Memory of its groups, as it is counted against its budget.";
    gauge("forebay_aggregate_memory_bytes", help, |_, now| float(now.memory_bytes as u64));
    let help = "What its groups may take of memory at most: its budget.";
    gauge("forebay_aggregate_memory_limit_bytes", help, |_, now| float(now.memory_limit_bytes as u64));
    let help = "Durable events of all types that it hasn't read yet.";
    gauge("forebay_aggregate_lag_events", help, |status, _| float(status.lag()));
    let help = "Up to when everything has come, late events apart, in seconds since 1970; 0 before that is known.";
    gauge("forebay_aggregate_watermark_seconds", help, |_, now| {
        let watermark = now.watermark.and_then(|watermark| u64::try_from(watermark).ok()).unwrap_or(0);
        Duration::from_micros(watermark).as_secs_f64()
    });
}

fn each_lane(lanes: &[Arc<LaneStatus>], mut add: impl FnMut(&[(&str, &str); 2], &LaneStatus)) {
    for lane in lanes {
        let shard = lane.lane().shard.to_string();
        add(&[("sink", &lane.lane().sink), ("shard", &shard)], lane);
    }
}

fn each_shard(shards: &[Arc<Shard>], mut add: impl FnMut(&[(&str, &str)], &Shard)) {
    for shard in shards {
        add(&[("shard", &shard.number().to_string())], shard);
    }
}

const fn state_name(state: &LaneState) -> &'static str {
    match state {
        LaneState::Connecting => "connecting",
        LaneState::Delivering => "delivering",
        LaneState::Waiting(_) => "waiting",
        LaneState::Stopped(_) => "stopped",
    }
}

/// Seconds since the oldest event of the batch in hand was received, by the wall clock.
fn age(lane: &LaneStatus) -> f64 {
    let Some(oldest) = lane.oldest_pending_at() else { return 0.0 };
    let age = unix_microseconds().saturating_sub(oldest);
    Duration::from_micros(u64::try_from(age).unwrap_or(0)).as_secs_f64()
}
