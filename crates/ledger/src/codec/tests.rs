//! A ledger is loaded with the content that this version or version 1 saved.

use std::collections::BTreeMap;

use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;

use super::*;
use crate::condition::Terms;

/// What the encoder of version 1 wrote for [`full`].
const VERSION1: &str = r"forebay-ledger 1
counted 12,0
accepted a.b 20
accepted c 0
filtered c 3 dedupe 12
route a.b x,y
route c -
others y
condition * y b
condition a.b x c != '-'
counted-lost 2
derived c
derived d.e
sink x
dead 6
claims 00000000000000000000000000000000,f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1
mark 3b3b3b3b3b3b3b3b3b3b3b3b3b3b3b3b
lane 0 1 12 3 ahead
unheard 0 40
accept 0 again
outcome 0 a.b 7 1 2
lane 1 0 0 0 -
accept 1 -
pair a.b 5 1,2 11 9,0 passed
pair-lost a.b 8
gap a.b - 2,1
gap a.b 3,4 5,4
when a.b - a  ==\n\r '\\\\n'
when a.b 3,4 -
pair c 0 - - -
pair d 0 - 11 9,0
sink y
";

fn name(text: &str) -> TypeName {
    TypeName::new(text).unwrap()
}

fn full() -> Document {
    let outcomes = OutcomeCounts { stored: 7, dead: 1, skipped: 2 };
    let lane = LaneProgress {
        start: 1,
        cursor: 12,
        lost: 3,
        ahead: true,
        unconfirmed_since: Some(40),
        accept: Some(Accept { resend: true }),
        outcomes: BTreeMap::from([(name("a.b"), outcomes)]),
        ..LaneProgress::default()
    };
    let condition = |text: &str| text.parse::<crate::Condition>().unwrap();
    let terms = Terms(vec![
        Term { after: Vec::new(), when: Some(condition("a  ==\n\r '\\\\n'")) },
        Term { after: vec![3, 4], when: None },
    ]);
    let closed = Closed { until: vec![9, 0], accepted: 11, passed: true };
    let gone = Closed { passed: false, ..closed.clone() };
    let gaps = vec![Gap { after: Vec::new(), until: vec![2, 1] }, Gap { after: vec![3, 4], until: vec![5, 4] }];
    let routes = BTreeMap::from([
        (name("a.b"), RouteState { base: 5, lost: 8, from: vec![1, 2], closed: Some(closed), terms, gaps }),
        (name("c"), RouteState::default()),
        (name("d"), RouteState { closed: Some(gone), ..RouteState::default() }),
    ]);
    let lanes = vec![lane, LaneProgress { accept: Some(Accept { resend: false }), ..LaneProgress::default() }];
    let claims = vec![sink::Claim([0; 16]), sink::Claim([0xf1; 16])];
    let mark = Some(sink::Mark([0x3b; 16]));
    let sink = SinkProgress { lanes, routes, dead_up_to: 6, claims, mark, configured: false };
    let routes = crate::Routes::new().with(name("c"), []).with(name("a.b"), ["x".into(), "y".into()]);
    let routes =
        routes.when(None, "y".into(), condition("b")).when(Some(name("a.b")), "x".into(), condition("c != '-'"));
    let sinks = BTreeMap::from([("x".into(), sink), ("y".into(), SinkProgress::default())]);
    let derived = [name("c"), name("d.e")].into();
    let state = LedgerState { routes: routes.with_others(["y".into()]), sinks, derived, counted_lost: 2 };
    let filtered = vec![(FilterStep { type_name: name("c"), step: 3, operation: "dedupe".into() }, 12)];
    Document { counted_up_to: vec![12, 0], accepted: vec![(name("a.b"), 20), (name("c"), 0)], filtered, state }
}

#[test]
fn ledger_of_version_1_is_loaded() {
    assert_eq!(Document::decode(VERSION1.as_bytes()), Ok(full()));
    assert_eq!(Document::decode(b"forebay-ledger 1\ncounted -\nothers -\n"), Ok(Document::default()));
}

/// The line and the reason of the error, once `from` is `to`.
fn rejected(text: &str, from: &str, to: &str) -> (usize, String) {
    assert!(text.contains(from), "{from}");
    let error = Document::decode(text.replacen(from, to, 1).as_bytes()).unwrap_err();
    (error.line, error.reason)
}

#[test]
fn rejected_line_of_version_1_is_named() {
    for (from, to, line) in [
        ("ledger 1", "ledger 3", 1),
        ("accepted a.b 20", "accepted a.b -20", 3),
        ("accepted a.b 20", "accepted a.b 20 1", 3),
        ("accepted a.b 20", "accepted a.b", 3),
        ("accepted a.b 20", "admitted a.b 20", 3),
        ("sink x\n", "", 14),
        ("lane 1 0 0 0 -", "lane 2 0 0 0 -", 22),
        ("outcome 0 a.b", "outcome 2 a.b", 21),
        ("when a.b -", "when x.y -", 28),
    ] {
        assert_eq!(rejected(VERSION1, from, to).0, line, "{to}");
    }
}

#[test]
fn saved_ledger_has_these_lines() {
    let text = String::from_utf8(full().encode().unwrap()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    for (at, line) in [
        (0, r#"{"format":"forebay-ledger","version":2}"#),
        (1, r#"{"counted_up_to":[12,0]}"#),
        (2, r#"{"accepted":{"type":"a.b","events":20}}"#),
        (4, r#"{"filtered":{"type":"c","step":3,"operation":"dedupe","events":12}}"#),
        (5, r#"{"route":{"type":"a.b","sinks":["x","y"]}}"#),
        (7, r#"{"other_routes":["y"]}"#),
        (8, r#"{"condition":{"type":null,"sink":"y","condition":"b"}}"#),
        (10, r#"{"counted_lost":2}"#),
        (11, r#"{"derived":"c"}"#),
        (13, r#"{"sink":"x"}"#),
        (14, r#"{"dead_up_to":6}"#),
        (16, r#"{"store_id":"3b3b3b3b3b3b3b3b3b3b3b3b3b3b3b3b"}"#),
        (17, r#"{"lane":{"shard":0,"start":1,"cursor":12,"lost":3,"ahead":true}}"#),
        (18, r#"{"unconfirmed_since":{"shard":0,"end":40}}"#),
        (19, r#"{"accept":{"shard":0,"resend":true}}"#),
        (20, r#"{"outcome":{"shard":0,"type":"a.b","stored":7,"dead":1,"skipped":2}}"#),
        (23, r#"{"route_state":{"type":"a.b","base":5,"from":[1,2],"accepted":11,"until":[9,0],"passed":true}}"#),
        (24, r#"{"route_lost":{"type":"a.b","events":8}}"#),
        (26, r#"{"gap":{"type":"a.b","after":[3,4],"until":[5,4]}}"#),
        (27, r#"{"route_condition":{"type":"a.b","after":[],"condition":"a  ==\n\r '\\\\n'"}}"#),
    ] {
        assert_eq!(lines[at], line);
    }
}

#[test]
fn rejected_line_is_named() {
    let text = String::from_utf8(full().encode().unwrap()).unwrap();
    for (from, to, line, reason) in [
        (r#""version":2"#, r#""version":3"#, 1, "version 3"),
        (r#"{"accepted""#, r#"{"admitted""#, 3, "unknown variant `admitted`"),
        (r#""events":20"#, r#""events":20,"novel":1"#, 3, "unknown field `novel`"),
        (r#"{"lane":{"shard":1"#, r#"{"lane":{"shard":2"#, 22, "the line that it extends is missing"),
        ("{\"sink\":\"x\"}\n", "", 14, "the line that it extends is missing"),
    ] {
        let (at, found) = rejected(&text, from, to);
        assert!(at == line && found.contains(reason), "{to}: {at} {found}");
    }
}

fn type_name() -> impl Strategy<Value = TypeName> {
    proptest::sample::select(vec!["a", "a.b", "c-d", "e_f.0"]).prop_map(name)
}

fn sink_name() -> impl Strategy<Value = SinkName> {
    proptest::sample::select(vec!["x", "y-1"]).prop_map(SinkName::from)
}

fn condition() -> impl Strategy<Value = Condition> {
    let texts = vec!["a", "a  ==\n\r '\\\\n'", "b == \"é\u{1F600}\"", "'-' != c // {\"d\":1}"];
    proptest::sample::select(texts).prop_map(|text| text.parse().unwrap())
}

fn by_shard() -> impl Strategy<Value = Vec<u64>> {
    vec(any::<u64>(), 0..3)
}

fn outcomes() -> impl Strategy<Value = OutcomeCounts> {
    (any::<u64>(), 0..2_u64, any::<u64>()).prop_map(|(stored, dead, skipped)| OutcomeCounts { stored, dead, skipped })
}

fn lane() -> impl Strategy<Value = LaneProgress> {
    let outcomes = btree_map(type_name(), outcomes(), 0..3);
    let accept = option::of(any::<bool>().prop_map(|resend| Accept { resend }));
    (any::<[u64; 3]>(), any::<bool>(), option::of(any::<u64>()), accept, outcomes).prop_map(
        |([start, cursor, lost], ahead, unconfirmed_since, accept, outcomes)| LaneProgress {
            start,
            cursor,
            lost,
            ahead,
            unconfirmed_since,
            accept,
            outcomes,
            ..LaneProgress::default()
        },
    )
}

fn route() -> impl Strategy<Value = RouteState> {
    let closed = (by_shard(), any::<u64>(), any::<bool>());
    let closed = closed.prop_map(|(until, accepted, passed)| Closed { until, accepted, passed });
    let term = (by_shard(), option::of(condition())).prop_map(|(after, when)| Term { after, when });
    let gap = (by_shard(), by_shard()).prop_map(|(after, until)| Gap { after, until });
    (any::<[u64; 2]>(), by_shard(), option::of(closed), vec(term, 0..3), vec(gap, 0..3)).prop_map(
        |([base, lost], from, closed, terms, gaps)| RouteState { base, lost, from, closed, terms: Terms(terms), gaps },
    )
}

fn sink() -> impl Strategy<Value = SinkProgress> {
    let claims = vec(any::<[u8; 16]>().prop_map(sink::Claim), 0..3);
    let mark = option::of(any::<[u8; 16]>().prop_map(sink::Mark));
    (vec(lane(), 0..3), btree_map(type_name(), route(), 0..3), any::<u64>(), claims, mark).prop_map(
        |(lanes, routes, dead_up_to, claims, mark)| SinkProgress {
            lanes,
            routes,
            dead_up_to,
            claims,
            mark,
            configured: false,
        },
    )
}

fn routes() -> impl Strategy<Value = crate::Routes> {
    let sinks = || btree_set(sink_name(), 0..3);
    let conditions = vec((option::of(type_name()), sink_name(), condition()), 0..3);
    (btree_map(type_name(), sinks(), 0..3), sinks(), conditions).prop_map(|(named, others, conditions)| {
        let routes = named.into_iter().fold(crate::Routes::new(), |routes, (name, sinks)| routes.with(name, sinks));
        let when = |routes: crate::Routes, (of, sink, condition)| routes.when(of, sink, condition);
        conditions.into_iter().fold(routes.with_others(others), when)
    })
}

fn document() -> impl Strategy<Value = Document> {
    let step = (type_name(), any::<usize>(), any::<u64>())
        .prop_map(|(type_name, step, events)| (FilterStep { type_name, step, operation: "sample".into() }, events));
    let state = (routes(), btree_map(sink_name(), sink(), 0..3), btree_set(type_name(), 0..3), any::<u64>())
        .prop_map(|(routes, sinks, derived, counted_lost)| LedgerState { routes, sinks, derived, counted_lost });
    (by_shard(), vec((type_name(), any::<u64>()), 0..4), vec(step, 0..3), state)
        .prop_map(|(counted_up_to, accepted, filtered, state)| Document { counted_up_to, accepted, filtered, state })
}

proptest! {
    #[test]
    fn saved_ledger_is_loaded(document in document()) {
        prop_assert_eq!(Document::decode(&document.encode().unwrap()), Ok(document));
    }
}
