//! Metrics of the requests of a gateway to its writers, by upstream and server.

use std::sync::Arc;

use delivery::LaneStatus;
use sink_remote::{RequestOutcome, ServerState, Upstream, WriterServer};

use crate::metrics::exposition::{Exposition, Labels};

/// Renders the metrics. A writer's backlog is that of the lanes whose last batch went to it.
pub(crate) fn render(text: &mut Exposition, upstreams: &[Upstream], lanes: &[Arc<LaneStatus>]) {
    text.counter(
        "forebay_upstream_requests_total",
        "Requests to writers, by upstream, server and outcome.",
        |series| {
            each_server(upstreams, |[upstream, server], state| {
                for outcome in RequestOutcome::ALL {
                    series.count(&[upstream, server, ("outcome", outcome.as_str())], state.requests(outcome));
                }
            });
        },
    );
    let help = "Time from a request to a writer to the end of its response, including the store's work.";
    text.histogram("forebay_upstream_request_seconds", help, |series| {
        each_server(upstreams, |labels, server| series.durations(&labels, &server.latency().snapshot()));
    });
    let help = "Ejections of a writer, because it failed or rejected a request, or one of its stores failed.";
    text.counter("forebay_upstream_ejections_total", help, |series| {
        each_server(upstreams, |labels, server| series.count(&labels, server.ejections().get()));
    });
    let help = "Writers of an upstream, by state; untried ones have neither responded nor failed since the start.";
    text.gauge("forebay_upstream_servers", help, |series| {
        for upstream in upstreams {
            let states: Vec<ServerState> = upstream.servers().iter().map(|server| server.state()).collect();
            for state in ServerState::ALL {
                let labels: Labels<'_> = &[("upstream", &upstream.config().name), ("state", state.as_str())];
                series.count(labels, states.iter().filter(|other| **other == state).count() as u64);
            }
        }
    });
    let help = "Look-ups of an upstream's writers in DNS or etcd, by result.";
    text.counter("forebay_upstream_lookups_total", help, |series| {
        for upstream in upstreams {
            let lookups = upstream.lookups();
            for (result, count) in [("resolved", &lookups.resolved), ("failed", &lookups.failed)] {
                series.count(&[("upstream", &upstream.config().name), ("result", result)], count.get());
            }
        }
    });
    let help = "Events of all types after the cursors of the lanes whose last batch went to the writer.";
    text.gauge("forebay_upstream_backlog_events", help, |series| {
        for upstream in upstreams {
            let used: Vec<_> =
                lanes.iter().filter_map(|lane| Some((upstream.server_of(lane.lane())?, lane.backlog()))).collect();
            each_server(std::slice::from_ref(upstream), |labels, server| {
                let lanes = used.iter().filter(|(used, _)| std::ptr::eq(Arc::as_ptr(used), server));
                series.count(&labels, lanes.map(|(_, backlog)| backlog).sum());
            });
        }
    });
}

fn each_server(upstreams: &[Upstream], mut add: impl FnMut([(&str, &str); 2], &WriterServer)) {
    for upstream in upstreams {
        for server in upstream.servers() {
            add([("upstream", &upstream.config().name), ("server", &server.label())], &server);
        }
    }
}
