//! All metrics of the process: every crate keeps its own counters, here they are collected and named.

use std::sync::Arc;
use std::time::Duration;

use aggregation::{AggregateBoard, AggregateFigures, AggregateStatus};
use dead_letters::DeadLetterService;
use delivery::{CheckpointCounters, Delivery, LaneBoard, LaneStatus, StoredTimes};
use eventlog::{EventLog, FilterStep, Shard, unix_microseconds};
use gateway::{GatewayCounters, RouteName, StatusClass};
use ledger::Ledger;

use crate::findings::Findings;
use crate::log;
use crate::metrics::bus_events;
use crate::metrics::events;
use crate::metrics::exposition::{Exposition, float};
use crate::metrics::findings;
use crate::metrics::host::HostMetrics;
use crate::metrics::push::PushCounters;
use crate::metrics::refusals;
use crate::metrics::retention;
use crate::metrics::text_format::text_of;
use crate::metrics::times;
use crate::metrics::upstreams;
use crate::object_registry::{ObjectRegistry, Served};
use crate::reload_requests::ReloadCounters;
use crate::retention::RetentionBoard;
use discovery::UpstreamBoard;

/// The sources of the figures.
pub(crate) struct Metrics {
    log: Arc<EventLog>,
    gateway: Arc<GatewayCounters>,
    ledger: Arc<Ledger>,
    lanes: LaneBoard,
    stored_times: Arc<StoredTimes>,
    aggregates: AggregateBoard,
    checkpoints: Arc<CheckpointCounters>,
    dead_letters: DeadLetterService,
    reloads: Arc<ReloadCounters>,
    objects: ObjectRegistry,
    upstreams: UpstreamBoard,
    retention: RetentionBoard,
    findings: Findings,
    host: HostMetrics,
    push: Arc<PushCounters>,
}

impl Metrics {
    #[expect(clippy::too_many_arguments, reason = "one for each source")]
    pub(crate) fn new(
        log: Arc<EventLog>,
        gateway: Arc<GatewayCounters>,
        delivery: &Delivery,
        reloads: Arc<ReloadCounters>,
        objects: ObjectRegistry,
        upstreams: UpstreamBoard,
        retention: RetentionBoard,
        findings: Findings,
        push: Arc<PushCounters>,
    ) -> Self {
        let (ledger, lanes, checkpoints) =
            (delivery.ledger().clone(), delivery.lanes().clone(), delivery.checkpoints().clone());
        let (dead_letters, aggregates) = (delivery.dead_letters().clone(), delivery.aggregates().clone());
        Self {
            log,
            gateway,
            ledger,
            lanes,
            stored_times: delivery.stored_times().clone(),
            aggregates,
            checkpoints,
            dead_letters,
            reloads,
            objects,
            upstreams,
            retention,
            findings,
            host: HostMetrics::default(),
            push,
        }
    }

    /// The metrics of this moment as text.
    pub(crate) fn render(&self) -> String {
        text_of(|text| self.collect(text))
    }

    /// Collects the metrics of this moment.
    pub(crate) fn collect(&self, text: &mut Exposition) {
        let (rows, filtered) = self.ledger.snapshot_with_filtered();
        events::ledger(text, &rows);
        self::filtered(text, &filtered);
        times::stored(text, &self.stored_times);
        events::unread_times(text, &self.log);
        events::dead_letters(text, &rows, &self.dead_letters);
        let errors = self.ledger.errors().get();
        text.count("forebay_ledger_errors_total", "Inconsistent sums in the ledger: each is a bug.", errors);
        intake(text, &self.gateway);
        self.journal(text);
        let lane_list = self.lanes.lanes();
        lanes(text, &lane_list);
        retention::add(text, &self.retention);
        upstreams::render(text, &self.upstreams.all(), &lane_list);
        aggregates(text, &self.aggregates.aggregates());
        objects(text, &self.objects);
        self.checkpoints(text);
        self.process(text);
        findings::add(text, &self.findings);
        self.host.add(text);
        self.push.add(text);
    }

    fn journal(&self, text: &mut Exposition) {
        let shards = self.log.shards();
        text.histogram(
            "forebay_journal_commit_seconds",
            "Duration of a commit (write and fdatasync), by shard.",
            |series| {
                each_shard(shards, |label, shard| series.durations(label, &shard.counters().commit_time.snapshot()));
            },
        );
        let help = "Duration of a commit's fdatasync, by shard.";
        text.histogram("forebay_journal_fdatasync_seconds", help, |series| {
            each_shard(shards, |label, shard| series.durations(label, &shard.counters().sync_time.snapshot()));
        });
        text.histogram("forebay_journal_commit_bytes", "Size of a commit with padding, by shard.", |series| {
            each_shard(shards, |label, shard| series.sizes(label, &shard.counters().commit_bytes.snapshot()));
        });
        let mut count = |name, help, of: fn(&Shard) -> u64| {
            text.counter(name, help, |series| each_shard(shards, |label, shard| series.count(label, of(shard))));
        };
        count("forebay_journal_commits_total", "Commits, by shard.", |shard| shard.counters().commits.get());
        count("forebay_journal_records_total", "Records committed, by shard.", |shard| shard.counters().records.get());
        count(
            "forebay_journal_commits_offloaded_total",
            "Commits offloaded to the commit thread, by shard.",
            |shard| shard.counters().commits_offloaded.get(),
        );
        let mut gauge = |name, help, of: fn(&Shard) -> u64| {
            text.gauge(name, help, |series| each_shard(shards, |label, shard| series.count(label, of(shard))));
        };
        gauge("forebay_journal_bytes", "Size of all segments, by shard.", |shard| shard.segments().bytes());
        gauge("forebay_journal_segments", "Segments, by shard.", |shard| shard.segments().count() as u64);
        gauge("forebay_tail_cache_bytes", "Blocks kept in memory for delivery, by shard.", |shard| {
            shard.tail_cache_bytes() as u64
        });
        let room = self.log.disk_guard();
        text.level("forebay_disk_free_bytes", "Free space on the disk of the data directory.", room.free_bytes());
        let help = "Whether events are rejected because the disk has too little space: 1 or 0.";
        text.level("forebay_disk_pressure", help, room.is_short().into());
        let help = "Damaged places in the journals that the last start found.";
        text.level("forebay_journal_recovery_findings", help, self.log.findings().len() as u64);
        let help = "Losses of acknowledged events that the operator hasn't accepted yet.";
        text.level("forebay_journal_open_losses", help, self.log.losses().open_ones().len() as u64);
        let help = "Requests that wait until their events are stored.";
        text.level("forebay_waiting_for_stores", help, self.log.delivery_watch().waiting() as u64);
        self.duplicates(text);
    }

    fn duplicates(&self, text: &mut Exposition) {
        let help = "Age of the oldest event id in the deduplication window.";
        text.gauge("forebay_duplicate_window_seconds", help, |series| {
            series.value(&[], self.log.ids_age().as_secs_f64());
        });
        let ids = self.log.ids_remembered() as u64;
        text.level("forebay_duplicate_window_ids", "Event ids in the deduplication window.", ids);
    }

    fn checkpoints(&self, text: &mut Exposition) {
        let checkpoints = &self.checkpoints;
        text.count("forebay_ledger_saves_total", "Saves of the ledger and the cursors.", checkpoints.saves.get());
        text.count(
            "forebay_ledger_failed_saves_total",
            "Failed saves of the ledger and the cursors.",
            checkpoints.failed_saves.get(),
        );
        text.count("forebay_journal_freed_segments_total", "Journal segments freed.", checkpoints.freed_segments.get());
        text.count(
            "forebay_journal_failed_frees_total",
            "Journal segments that couldn't be freed.",
            checkpoints.failed_frees.get(),
        );
    }

    fn process(&self, text: &mut Exposition) {
        text.counter("forebay_reloads_total", "Reloads of the configuration, by result.", |series| {
            series.count(&[("result", "applied")], self.reloads.applied.get());
            series.count(&[("result", "refused")], self.reloads.refused.get());
        });
        let help = "Log messages suppressed because there were too many of their kind.";
        text.count("forebay_log_suppressed_total", help, log::suppressed());
        let help = "Log lines dropped because stderr was full.";
        text.count("forebay_log_dropped_total", help, log::dropped());
        text.gauge("forebay_build_info", "The running version, as a label; always 1.", |series| {
            series.count(&[("version", env!("CARGO_PKG_VERSION"))], 1);
        });
    }
}

fn bridges(text: &mut Exposition, gateway: &GatewayCounters) {
    let bridges = gateway.bridges().all();
    let help = "Requests of bridges, by bridge and answer: a class of a service's status, or the code of an error.";
    text.counter("forebay_bridge_requests_total", help, |series| {
        for (name, counters) in &bridges {
            counters.answers().for_each(|(answer, count)| series.count(&[("bridge", name), ("answer", answer)], count));
        }
    });
    text.gauge("forebay_bridge_waiting", "Requests of bridges that wait for an answer, by bridge.", |series| {
        bridges.iter().for_each(|(name, counters)| series.count(&[("bridge", name)], counters.waiting() as u64));
    });
    let help = "Time from a request's head to its answer, by bridge.";
    text.histogram("forebay_bridge_request_seconds", help, |series| {
        bridges.iter().for_each(|(name, counters)| series.durations(&[("bridge", name)], &counters.time()));
    });
    let help = "Whether a shard is connected to the bus: 1 or 0.";
    text.gauge("forebay_bus_connected", help, |series| {
        gateway.bus_connections().enumerate().for_each(|(shard, is_connected)| {
            series.count(&[("shard", &shard.to_string())], is_connected.into());
        });
    });
}

fn intakes(text: &mut Exposition, gateway: &GatewayCounters) {
    let intakes = gateway.intakes().all();
    text.counter("forebay_intake_requests_total", "Requests of intakes, by intake and class of status.", |series| {
        for (name, counters) in &intakes {
            counters.requests().for_each(|(class, count)| series.count(&[("intake", name), ("status", class)], count));
        }
    });
    let help = "Records of intakes, by intake and result: accepted (with duplicates), or rejected permanently.";
    text.counter("forebay_intake_records_total", help, |series| {
        for (name, counters) in &intakes {
            for (result, count) in [("accepted", counters.accepted()), ("rejected", counters.rejected())] {
                series.count(&[("intake", name), ("result", result)], count);
            }
        }
    });
    let help = "Requests of intakes without a valid signature, by intake.";
    text.counter("forebay_intake_signature_failures_total", help, |series| {
        for (name, counters) in &intakes {
            series.count(&[("intake", name)], counters.signature_failures());
        }
    });
}

fn objects(text: &mut Exposition, board: &ObjectRegistry) {
    let served = board.all();
    let help = "Reads of objects, by sink and result.";
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
    text.counter("forebay_object_fetched_bytes_total", "Bytes of objects fetched from stores, by sink.", |series| {
        let fetched = |served: &Arc<Served>| served.reads.counters().fetched_bytes.get();
        served.iter().for_each(|served| series.count(&[("sink", &served.name)], fetched(served)));
    });
    text.level("forebay_object_cache_bytes", "Size of the objects in the read cache.", board.bytes());
}

fn filtered(text: &mut Exposition, steps: &[(FilterStep, u64)]) {
    let help = "Events filtered out by a step of their type's transform, by type, step and operation.";
    text.counter("forebay_events_filtered_total", help, |series| {
        for (FilterStep { type_name, step, operation }, events) in steps {
            let step = step.to_string();
            series.count(&[("type", type_name.as_str()), ("step", &step), ("operation", operation)], *events);
        }
    });
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
    times::of_requests(text, gateway);
    bridges(text, gateway);
    intakes(text, gateway);
    bus_events::add(text);
    text.count("forebay_http_body_bytes_total", "Bytes of request bodies received.", gateway.body_bytes());
    text.count("forebay_http_connections_total", "Connections accepted.", gateway.connections_accepted());
    let refused = gateway.connections_refused();
    text.count(
        "forebay_http_connections_refused_total",
        "Connections closed because their client had too many.",
        refused,
    );
    text.count("forebay_tls_handshakes_total", "Completed TLS handshakes.", gateway.tls_handshakes());
    let help = "Failed TLS handshakes, and connections without TLS on a port that needs it.";
    text.count("forebay_tls_failures_total", help, gateway.tls_failures());
    text.count("forebay_duplicates_total", "Duplicates that were recognised.", gateway.duplicates());
    text.count("forebay_http_accept_errors_total", "Connections that couldn't be accepted.", gateway.accept_errors());
    text.level("forebay_http_connections", "Open connections.", gateway.open_connections() as u64);
    let drains = gateway.drains();
    let help = "Connections being drained: their response was sent before the request was read.";
    text.level("forebay_http_draining_connections", help, drains.draining() as u64);
    text.count(
        "forebay_http_drained_bytes_total",
        "Bytes discarded while draining connections.",
        drains.discarded_bytes(),
    );
    let help = "Connections closed without draining, because too many were being drained.";
    text.count("forebay_http_drains_refused_total", help, drains.refused());
    text.level(
        "forebay_http_in_flight_bytes",
        "Bytes of request bodies without a response yet.",
        gateway.bytes_in_flight() as u64,
    );
}

fn lanes(text: &mut Exposition, lanes: &[Arc<LaneStatus>]) {
    text.gauge(
        "forebay_lane_backlog_events",
        "Events of all types after the lane's cursor, by sink and shard.",
        |series| {
            each_lane(lanes, |labels, lane| series.count(labels, lane.backlog()));
        },
    );
    text.gauge(
        "forebay_lane_backlog_age_seconds",
        "Age of the oldest event in delivery, by sink and shard.",
        |series| {
            each_lane(lanes, |labels, lane| series.value(labels, age(lane)));
        },
    );
    text.gauge(
        "forebay_lane_state",
        "State of the lane, by sink, shard and state: 1 for the current state, 0 for the others.",
        |series| {
            each_lane(lanes, |labels, lane| {
                let state = lane.state();
                let now = state.name();
                for state in ["connecting", "delivering", "waiting", "stopped"] {
                    series.count(&[labels[0], labels[1], ("state", state)], u64::from(state == now));
                }
            });
        },
    );
    let mut count = |name, help, of: fn(&LaneStatus) -> u64| {
        text.counter(name, help, |series| each_lane(lanes, |labels, lane| series.count(labels, of(lane))));
    };
    count("forebay_lane_batches_total", "Batches written, by sink and shard.", |lane| lane.batches.get());
    count("forebay_lane_retries_total", "Failed attempts to write a batch, by sink and shard.", |lane| {
        lane.retries.get()
    });
    count(
        "forebay_lane_lost_events_total",
        "Events that the lane can't read because of damage, by sink and shard.",
        |lane| lane.lost.get(),
    );
    text.histogram("forebay_lane_write_seconds", "Duration of a batch's write, by sink and shard.", |series| {
        each_lane(lanes, |labels, lane| series.durations(labels, &lane.write_time.snapshot()));
    });
    text.histogram("forebay_lane_batch_records", "Records in a batch, by sink and shard.", |series| {
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
    count("forebay_aggregate_events_total", "Events read by the aggregate.", |_, now| now.counts.events);
    let help = "Events too late for a window, and in no result of it: one for each window, by aggregate.";
    count("forebay_aggregate_late_total", help, |_, now| now.counts.late);
    let help = "Late events counted in a separate part of a closed window: one for each window, by aggregate.";
    count("forebay_aggregate_parts_total", help, |_, now| now.counts.parts);
    let help = "Events in no result because their time is too far in the future, or before 1970, by aggregate.";
    count("forebay_aggregate_misdated_total", help, |_, now| now.counts.out_of_range);
    let help = "Events counted in an overflow group: one for each window, by aggregate.";
    count("forebay_aggregate_overflowed_total", help, |_, now| now.counts.overflowed);
    let help = "Values that no measure could use, by aggregate.";
    count("forebay_aggregate_unused_values_total", help, |_, now| now.counts.unused);
    count("forebay_aggregate_results_total", "Results emitted, by aggregate.", |_, now| now.counts.results);
    let help = "Events of all types that the aggregate can't read because of damage.";
    count("forebay_aggregate_lost_events_total", help, |status, _| status.lost.get());
    count("forebay_aggregate_saves_total", "Saves of the aggregate's state.", |status, _| status.saves.get());
    let help = "Failed saves of the aggregate's state.";
    count("forebay_aggregate_failed_saves_total", help, |status, _| status.failed_saves.get());
    let mut gauge = |name, help, of: fn(&AggregateStatus, &AggregateFigures) -> f64| {
        text.gauge(name, help, |series| {
            for (status, figures) in &figures {
                series.value(&[("aggregate", status.name().as_str())], of(status, figures));
            }
        });
    };
    gauge("forebay_aggregate_windows", "Open windows, by aggregate.", |_, now| float(now.windows as u64));
    gauge("forebay_aggregate_groups", "Groups in all windows, by aggregate.", |_, now| float(now.groups as u64));
    let help = "Memory of the groups, as counted in the memory budget, by aggregate.";
    gauge("forebay_aggregate_memory_bytes", help, |_, now| float(now.memory_bytes as u64));
    let help = "Memory budget of the groups, by aggregate.";
    gauge("forebay_aggregate_memory_limit_bytes", help, |_, now| float(now.memory_limit_bytes as u64));
    let help = "Durable events of all types that the aggregate hasn't read yet.";
    gauge("forebay_aggregate_lag_events", help, |status, _| float(status.lag()));
    let help = "Time up to which all events except late ones have arrived, in seconds since 1970, or 0 if unknown, by aggregate.";
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

/// Seconds since the oldest event of the batch in hand was received, by the wall clock.
fn age(lane: &LaneStatus) -> f64 {
    let Some(oldest) = lane.oldest_pending_at() else { return 0.0 };
    let age = unix_microseconds().saturating_sub(oldest);
    Duration::from_micros(u64::try_from(age).unwrap_or(0)).as_secs_f64()
}
