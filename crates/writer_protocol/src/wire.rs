//! Paths and header fields, and the limits of a connection.

use std::str::FromStr;
use std::time::Duration;

use event::{Lane, TraceParent};

/// The prefix of every path; the sink's name follows.
pub const PATH: &str = "/ingest/data";
/// The content type of a [frame](crate::frame).
pub const CONTENT_TYPE: &str = "application/vnd.forebay.batch";
/// The content type of a request's rejection.
pub const PROBLEM: &str = "application/problem+json";
/// The version of the protocol and the release, in each request and each response: [`version`](crate::version).
pub const PROTOCOL: &str = "forebay-protocol";
/// The lane: gateway id, shard and sink's name in the gateway's configuration, as in `0f…c1/0/warehouse`.
pub const LANE: &str = "forebay-lane";
/// The first and the last position that a batch accounts for, as in `101-200`.
pub const POSITIONS: &str = "forebay-positions";
/// The claim of the process that sends a batch, as 32 hexadecimal digits.
pub const CLAIM: &str = "forebay-claim";
/// The position up to which the lane knows its events to be stored: [`sink::Batch::floor`].
pub const MIN_POSITION: &str = "forebay-min-position";
/// The highest position that was ever sent to the sink before: [`sink::Batch::again`].
pub const RESENT_THROUGH: &str = "forebay-resent-through";
/// The mark of the store that the gateway's sink is bound to, as 32 hexadecimal digits.
pub const MARK: &str = "forebay-mark";
/// The [fingerprint](crate::SinkInfo::fingerprint) of the sink that the gateway is bound to.
pub const LAYOUT: &str = "forebay-layout";
/// Traces of records of a batch, as `SEQUENCE=TRACEPARENT` separated by commas. A writer may ignore them.
pub const TRACES: &str = "forebay-traces";
/// Traces of one batch: proxies limit a header to a few KiB.
pub const TRACES_MAX: usize = 48;
/// A draining writer sends it: its gateways then use another one.
pub const DRAINING: &str = "forebay-draining";
/// The interval of heartbeats while the store works: newlines before the answer.
pub const HEARTBEAT: Duration = Duration::from_secs(1);
/// A gateway doesn't use a connection that was idle for so long.
pub const IDLE_MAX: Duration = net::http_client::IDLE_MAX;
/// The largest answer to a batch, in bytes: each record may be rejected with a reason.
pub const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Formats a lane for [`LANE`].
#[must_use]
pub fn lane_text(lane: &Lane) -> String {
    format!("{}/{lane}", lane.origin)
}

/// Parses a lane from [`LANE`].
#[must_use]
pub fn lane_of(text: &str) -> Option<Lane> {
    let mut parts = text.splitn(3, '/');
    let (origin, shard, sink) = (parts.next()?, parts.next()?, parts.next()?);
    let is_name = !sink.is_empty() && sink.len() <= 128 && sink.bytes().all(|byte| byte.is_ascii_graphic());
    is_name.then_some(Lane { origin: origin.parse().ok()?, shard: shard.parse().ok()?, sink: sink.into() })
}

/// Formats traces for [`TRACES`], the sampled ones first if there are too many. `None` if there is none.
#[must_use]
pub fn traces_text(traces: &[(u64, TraceParent)]) -> Option<String> {
    let of = |is_sampled| traces.iter().filter(move |(_, trace)| trace.is_sampled == is_sampled);
    let mut chosen: Vec<_> = of(true).chain(of(false)).take(TRACES_MAX).collect();
    chosen.sort_by_key(|(sequence, _)| *sequence);
    let texts: Vec<String> = chosen.into_iter().map(|(sequence, trace)| format!("{sequence}={trace}")).collect();
    (!texts.is_empty()).then(|| texts.join(","))
}

/// Parses traces from [`TRACES`], in ascending order. Invalid ones are left out.
pub fn traces_of(text: &str) -> Vec<(u64, TraceParent)> {
    let parse = |part: &str| {
        let (sequence, trace) = part.split_once('=')?;
        Some((sequence.parse().ok()?, TraceParent::parse(trace.as_bytes())?))
    };
    let mut traces: Vec<_> = text.split(',').take(TRACES_MAX).filter_map(parse).collect();
    traces.sort_by_key(|(sequence, _)| *sequence);
    traces
}

/// Parses the first and last position from [`POSITIONS`].
#[must_use]
pub fn positions_of(text: &str) -> Option<(u64, u64)> {
    let (first, last) = text.split_once('-')?;
    let (first, last) = (u64::from_str(first).ok()?, u64::from_str(last).ok()?);
    // An empty batch ends before it begins.
    (first >= 1 && last >= first - 1).then_some((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use event::Origin;

    #[test]
    fn lane_survives_its_text() {
        let lane = Lane { origin: Origin([0xab; 16]), shard: 9, sink: "a/b".into() };
        assert_eq!(lane_of(&lane_text(&lane)), Some(lane));
        for wrong in
            ["", "/", "ab/1/x", "zz/1/x", &format!("{}/x/y", "0".repeat(32)), &format!("{}/1/", "0".repeat(32))]
        {
            assert_eq!(lane_of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn traces_survive_their_text_and_sampled_ones_go_first() {
        let trace = |number: u8, is_sampled| TraceParent { trace_id: [number; 16], span_id: [1; 8], is_sampled };
        assert_eq!(traces_text(&[]), None);
        let few = [(5, trace(1, true)), (9, trace(2, false))];
        assert_eq!(traces_of(&traces_text(&few).unwrap()), few);
        let many: Vec<_> = (1..100).map(|number| (number.into(), trace(number, number > 90))).collect();
        let kept = traces_of(&traces_text(&many).unwrap());
        assert_eq!((kept.len(), kept.iter().filter(|(_, trace)| trace.is_sampled).count()), (TRACES_MAX, 9));
        assert_eq!(traces_of(&format!(",x,1={},2=", "0".repeat(55))), []);
    }

    #[test]
    fn positions_are_a_run() {
        assert_eq!(positions_of("5-9"), Some((5, 9)));
        assert_eq!(positions_of("5-4"), Some((5, 4)));
        for wrong in ["", "5", "5-", "-5", "0-1", "9-5", "1--2", "18446744073709551616-1"] {
            assert_eq!(positions_of(wrong), None, "{wrong}");
        }
    }
}
