//! Where time goes: until events are stored, and in the event loops of shards.

use delivery::StoredTimes;
use gateway::{GatewayCounters, RouteName};

use super::exposition::{Exposition, float};

/// Adds the times from receipt to storage.
pub(crate) fn stored(text: &mut Exposition, times: &StoredTimes) {
    let help = "Time from an event's receipt until a store has it, by type and sink.";
    text.histogram("forebay_event_stored_seconds", help, |series| {
        for ((type_name, sink), times) in times.snapshots() {
            let labels = [("type", type_name.as_str()), ("sink", &*sink)];
            let bounds = times.bounds.map(|microseconds| float(microseconds) / 1e6);
            series.buckets(&labels, &bounds, &times.buckets, float(times.sum) / 1e6);
        }
    });
}

/// Adds the times of requests, and of the event loops that answer them.
pub(crate) fn of_requests(text: &mut Exposition, gateway: &GatewayCounters) {
    text.histogram("forebay_http_request_seconds", "Time from a request's head to its response, by route.", |series| {
        for route in RouteName::ALL {
            series.durations(&[("route", route.as_str())], &gateway.request_time(route));
        }
    });
    let help = "Time in which the thread of a shard was at work, without waiting for commits.";
    text.counter("forebay_shard_busy_seconds_total", help, |series| {
        gateway.busy_times().enumerate().for_each(|(number, busy)| {
            series.value(&[("shard", &number.to_string())], busy.as_secs_f64());
        });
    });
    let help = "Duration of an iteration of a shard's event loop, from its wake-up to its commit, by shard.";
    text.histogram("forebay_shard_turn_seconds", help, |series| {
        gateway.iteration_times().enumerate().for_each(|(number, times)| {
            series.durations(&[("shard", &number.to_string())], &times);
        });
    });
}
