//! The lanes that a request waits for.

use super::*;
use crate::route_state::{Closed, Gap};

fn name(text: &str) -> TypeName {
    TypeName::new(text).unwrap()
}

fn lane(cursor: u64) -> LaneProgress {
    LaneProgress { cursor, confirmed: true, ..LaneProgress::default() }
}

/// A sink to which type `a` goes from sequence 6 on.
fn sink(lane: LaneProgress) -> SinkProgress {
    let route = RouteState { from: vec![5], ..RouteState::default() };
    SinkProgress {
        lanes: vec![lane],
        routes: BTreeMap::from([(name("a"), route)]),
        configured: true,
        ..SinkProgress::default()
    }
}

fn pending(sink: &SinkProgress, type_name: &str, first: u64, last: u64) -> Option<Option<u64>> {
    sink.pending(&eventlog::SequenceRange { shard: 0, first, last, only: None }, &[name(type_name)])
}

#[test]
fn lane_is_pending_until_it_passes_routed_events() {
    let behind = sink(lane(9));
    assert_eq!(pending(&behind, "a", 9, 10), Some(Some(10)));
    assert_eq!(pending(&behind, "a", 9, 9), None);
    assert_eq!(pending(&behind, "b", 9, 10), None, "it has no route there");
    assert_eq!(pending(&sink(lane(0)), "a", 1, 5), None, "its event precedes its route");
    assert_eq!(pending(&sink(lane(0)), "a", 1, 6), Some(Some(6)));
}

#[test]
fn saved_cursor_counts_after_the_store_confirms_it() {
    let unconfirmed = LaneProgress { confirmed: false, ..lane(20) };
    assert_eq!(pending(&sink(unconfirmed), "a", 9, 10), Some(Some(10)));
    assert_eq!(pending(&sink(lane(20)), "a", 9, 10), None);
}

#[test]
fn unreadable_events_are_never_reported_as_stored() {
    let damaged = sink(LaneProgress { lost_within: Some((8, 12)), ..lane(20) });
    assert_eq!(pending(&damaged, "a", 12, 13), Some(None), "and no request waits for it");
    assert_eq!(pending(&damaged, "a", 13, 14), None);
}

#[test]
fn removed_route_keeps_its_backlog_until_discarded() {
    let closed = Closed { until: vec![10], accepted: 3, passed: false };
    let mut gone = sink(LaneProgress { confirmed: false, ..lane(8) });
    gone.configured = false;
    gone.routes.insert(name("a"), RouteState { from: vec![5], closed: Some(closed.clone()), ..RouteState::default() });
    assert_eq!(pending(&gone, "a", 10, 10), Some(None));
    assert_eq!(pending(&gone, "a", 8, 8), None, "stored before it went");
    assert_eq!(pending(&gone, "a", 11, 11), None, "it came later");
    gone.configured = true;
    assert_eq!(pending(&gone, "a", 10, 10), Some(Some(10)), "the sink is still there for other types");
    gone.configured = false;
    gone.routes
        .insert(name("a"), RouteState { from: vec![10], closed: Some(closed), base: 3, ..RouteState::default() });
    assert_eq!(pending(&gone, "a", 10, 10), None);
}

#[test]
fn requests_do_not_wait_for_events_of_gaps() {
    let mut back = sink(lane(0));
    let gaps = vec![Gap { after: vec![10], until: vec![20] }, Gap { after: vec![20], until: vec![20] }];
    back.routes.insert(name("a"), RouteState { from: vec![5], gaps, ..RouteState::default() });
    assert_eq!(pending(&back, "a", 11, 20), None);
    assert_eq!(pending(&back, "a", 9, 12), Some(Some(10)), "but for those before");
    assert_eq!(pending(&back, "a", 15, 21), Some(Some(21)));
}

#[test]
fn requests_do_not_wait_for_stopped_lanes() {
    let mut stopped = sink(LaneProgress { dispute: Some(Dispute::Claimed), ..lane(8) });
    stopped.routes.insert(name("a"), RouteState::default());
    assert_eq!(pending(&stopped, "a", 9, 9), Some(None));
}
