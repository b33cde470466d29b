//! Types with a transform: events that it changes, rejects, drops and splits, as clients and the journal see them.

use std::sync::Arc;

use crate::fixture::{Fixture, named_types};
use event::{KeyedIds, TypeName};
use eventlog::LogChunk;
use gateway::{ErrorCode, GatewayOptions, GatewayTypes, IdRule, TransformHandle, TypeRules};
use journal::simulated_disk::{Operation, SimulatedDisk, SimulatedError};
use schema::{Documents, Schema, SchemaOptions};
use serde_json::json;
use transform::{StepSpec, Tables, Transform};

const ACCEPT: &str = "Accept: application/json\r\n";
const NDJSON: &str = "Content-Type: application/x-ndjson\r\n";

pub(crate) fn rules(steps: &str) -> TypeRules {
    let specs: Vec<StepSpec> = serde_json::from_str(steps).unwrap();
    let transform = Transform::compile(&specs, &Tables::default()).unwrap();
    TypeRules { steps: Some(Arc::new(TransformHandle::new(transform, 7))), ..TypeRules::default() }
}

fn types(rules: TypeRules) -> GatewayTypes {
    let named = [(TypeName::new("t").unwrap(), rules), (TypeName::new("plain").unwrap(), TypeRules::default())];
    GatewayTypes { named: named.into(), ..GatewayTypes::default() }
}

fn fixture(rules: TypeRules) -> Fixture {
    Fixture::with(types(rules), GatewayOptions::default())
}

fn id_at(pointer: &str) -> IdRule {
    IdRule::Pointer(pointer.parse().unwrap())
}

#[test]
fn transformed_payload_keeps_untouched_bytes() {
    let fixture = fixture(rules(r#"[{"drop": "/x"}, {"set": "/y", "value": 1, "when": "x != null || z != null"}]"#));
    for body in [r#" { "a" : 1.50, "b":"\u00e9" }"#, r#"{"x": 7, "a": 1.50e0}"#, r#"{"z": [ 1 ]}"#] {
        assert_eq!(fixture.post("/ingest/event/t", "", body).status, 200, "{body}");
    }
    assert_eq!(fixture.post("/ingest/batch/t", NDJSON, "{\"x\":1}\n{ \"q\" : 1 }\n").status, 200);
    assert_eq!(fixture.post("/ingest/event/plain", "", r#"{"x":7}"#).status, 200);
    assert_eq!(
        fixture.payloads(),
        [
            r#"{ "a" : 1.50, "b":"\u00e9" }"#,
            r#"{"a": 1.50e0}"#,
            r#"{"z": [ 1 ],"y":1}"#,
            "{}",
            r#"{ "q" : 1 }"#,
            r#"{"x":7}"#
        ]
    );
}

#[test]
fn failed_step_reports_number_name_and_pointer() {
    let fixture = fixture(rules(r#"[{"drop": "/x"}, {"coerce": "/n", "as": "number"}]"#));
    let answer = fixture.post("/ingest/event/t", "", r#"{"n": "many"}"#);
    assert_eq!(
        (answer.status, answer.json()),
        (
            422,
            json!({
                "type": "urn:forebay:problem:transform",
                "title": "Transform failed",
                "status": 422,
                "code": "transform",
                "detail": "step 2 (coerce /n): the string holds no number",
                "pointer": "/n",
                "step": 2,
                "operation": "coerce",
            })
        )
    );
    let answer = fixture.post("/ingest/batch/t", NDJSON, "{\"n\":\"1\"}\n{\"n\":\"x\"}\n");
    assert_eq!(answer.status, 207);
    assert_eq!(
        answer.json(),
        json!({"accepted": 1, "duplicates": 0, "refused": [
            {"line": 2, "pointer": "/n", "code": "transform", "detail": "step 2 (coerce /n): the string holds no number",
             "step": 2, "operation": "coerce"},
        ]})
    );
    let atomic = format!("{NDJSON}Forebay-Atomic: true\r\n");
    assert_eq!(fixture.post("/ingest/batch/t", &atomic, "{\"n\":\"1\"}\n{\"n\":\"x\"}\n").status, 422);
    assert_eq!(fixture.counters().refusals(ErrorCode::Transform), 3);
    assert_eq!(fixture.payloads(), [r#"{"n":1}"#]);
}

#[test]
fn schema_is_checked_before_the_steps() {
    let documents = Documents::new();
    let options = SchemaOptions { documents: &documents, formats: false };
    let schema = Schema::compile("t.json", r#"{"required": ["n"]}"#, &options).unwrap();
    let fixture = fixture(TypeRules { schema: Some(Arc::new(schema)), ..rules(r#"[{"drop": "/n"}]"#) });
    assert_eq!(fixture.post("/ingest/event/t", "", r#"{"n":1}"#).status, 200);
    assert_eq!(fixture.post("/ingest/event/t", "", "{}").code(), "schema");
    assert_eq!(fixture.payloads(), ["{}"]);
}

fn filtered(fixture: &Fixture) -> Vec<(usize, &'static str, u64)> {
    let list = fixture.counters().filtered();
    let word = |text: &str| ["filter", "sample", "dedupe", "explode"].into_iter().find(|word| *word == text).unwrap();
    list.into_iter().map(|(by, events)| (by.step, word(&by.operation), events)).collect()
}

#[test]
fn filtered_event_is_answered_200_and_counted() {
    let steps = r#"[{"filter": "n != 1"}, {"sample": 0, "when": "n == 2"}, {"dedupe": "/n", "window": "1h"}]"#;
    let fixture = fixture(rules(steps));
    assert_eq!(filtered(&fixture), [(1, "filter", 0), (2, "sample", 0), (3, "dedupe", 0)], "from the start");
    for (n, ack) in [(1, "disk"), (2, "stored"), (3, "disk"), (3, "disk"), (3, "memory")] {
        let headers = if ack == "memory" { String::new() } else { format!("Forebay-Ack: {ack}\r\n") };
        let answer = fixture.post("/ingest/event/t", &headers, format!("{{\"n\":{n}}}"));
        assert_eq!((answer.status, answer.body.as_slice()), (200, &b""[..]), "{n} {ack}");
    }
    let answer = fixture.post("/ingest/event/t", ACCEPT, "{\"n\":3}").json();
    assert_eq!(answer, json!({"filtered": {"step": 3, "operation": "dedupe"}}));
    let answer = fixture.post("/ingest/batch/t", NDJSON, "{\"n\":1}\n{\"n\":3}\n{\"n\":4}\n{\"n\":4}\n");
    assert_eq!(
        (answer.status, answer.json()),
        (200, json!({"accepted": 4, "duplicates": 0, "filtered": 3, "refused": []}))
    );
    let answer = fixture.post("/ingest/batch/t", NDJSON, "{\"n\":1}\n");
    assert_eq!(
        (answer.status, answer.json()),
        (200, json!({"accepted": 1, "duplicates": 0, "filtered": 1, "refused": []}))
    );
    assert_eq!(filtered(&fixture), [(1, "filter", 3), (2, "sample", 1), (3, "dedupe", 5)]);
    assert_eq!(fixture.payloads(), ["{\"n\":3}", "{\"n\":4}"]);
}

#[test]
fn rejected_batch_leaves_no_counts_or_values() {
    let fixture = fixture(rules(r#"[{"filter": "n != 1"}, {"dedupe": "/n", "window": "1h"}, {"lower": "/s"}]"#));
    let atomic = format!("{NDJSON}Forebay-Atomic: true\r\n");
    let body = "{\"n\":1}\n{\"n\":2}\n{\"n\":3,\"s\":7}\n";
    assert_eq!(fixture.post("/ingest/batch/t", &atomic, body).status, 422);
    assert_eq!(filtered(&fixture), [(1, "filter", 0), (2, "dedupe", 0)]);
    assert_eq!(fixture.post("/ingest/event/t", "", "{\"n\":2}").status, 200);
    assert_eq!(fixture.post("/ingest/event/t", "", "{\"n\":3}").status, 200);
    assert_eq!(fixture.payloads(), ["{\"n\":2}", "{\"n\":3}"]);
}

#[test]
fn incomplete_batch_filters_nothing_from_others() {
    let fixture = fixture(rules(r#"[{"dedupe": "/n", "window": "1h"}]"#));
    let mut slow = fixture.connect();
    let line = "{\"n\":1}\n";
    slow.send(format!("POST /ingest/batch/t HTTP/1.1\r\nHost: x\r\n{NDJSON}Content-Length: 999\r\n\r\n{line}"));
    fixture.wait("its first line has come", |counters| counters.bytes_in_flight() >= line.len());
    assert_eq!(fixture.post("/ingest/event/t", ACCEPT, "{\"n\":1}").json()["duplicate"], false);
    drop(slow);
    assert_eq!(fixture.payloads(), ["{\"n\":1}"]);
}

#[test]
fn event_rejected_by_disk_filters_nothing() {
    let disk = SimulatedDisk::new(1);
    let fixture = Fixture::on_disk_with(Arc::new(disk.clone()), types(rules(r#"[{"dedupe": "/n", "window": "1h"}]"#)));
    let body = |n: usize| format!("{{\"n\":{n},\"x\":\"{}\"}}", "x".repeat(60_000));
    assert_eq!(fixture.post("/ingest/event/t", "", body(0)).status, 200);
    disk.set_capacity(Some(disk.bytes_used()));
    let full = (1..1000).find(|n| fixture.post("/ingest/event/t", "", body(*n)).status == 507).unwrap();
    disk.set_capacity(None);
    let stored = fixture.stored().len();
    assert_eq!(fixture.post("/ingest/event/t", "", body(full)).status, 200);
    assert_eq!(fixture.stored().len(), stored + 1, "it is not a duplicate of what was never stored");
    assert_eq!(fixture.post("/ingest/event/t", "", body(full)).status, 200);
    assert_eq!(fixture.stored().len(), stored + 1);
}

#[test]
fn filtered_duplicate_waits_for_durable_original() {
    let disk = SimulatedDisk::new(1);
    let fixture = Fixture::on_disk_with(Arc::new(disk.clone()), types(rules(r#"[{"dedupe": "/n", "window": "1h"}]"#)));
    assert_eq!(fixture.post("/ingest/event/t", "", "{\"n\":1}").status, 200);
    disk.fail_from_call(Operation::Sync, 1, SimulatedError::Io);
    assert_eq!(fixture.post("/ingest/event/t", "", "{\"n\":2}").status, 500);
    for path in ["/ingest/event/t", "/ingest/batch/t"] {
        let answer = fixture.post(path, "", "{\"n\":2}");
        assert_eq!((answer.status, answer.code().as_str()), (500, "journal_failed"), "{path}");
    }
}

#[test]
fn types_with_equal_steps_keep_separate_values() {
    let open = Some(rules(r#"[{"dedupe": "/n", "window": "1h"}]"#));
    let fixture = Fixture::with(GatewayTypes { open, ..GatewayTypes::default() }, GatewayOptions::default());
    for path in ["/ingest/event/a", "/ingest/event/b", "/ingest/event/a"] {
        assert_eq!(fixture.post(path, "", "{\"n\":1}").status, 200);
    }
    let types: Vec<_> = fixture.stored().into_iter().map(|event| event.type_name).collect();
    assert_eq!(types, ["a", "b"]);
}

#[test]
fn shards_share_dedupe_windows() {
    let fixture = Fixture::with_shards_of(3, types(rules(r#"[{"dedupe": "/n", "window": "1h"}]"#)));
    let mut clients: Vec<_> = (0..6).map(|_| fixture.connect()).collect();
    for client in &mut clients {
        client.post("/ingest/event/t", "", b"{\"n\":1}");
        assert_eq!(client.answer().status, 200);
    }
    assert_eq!(fixture.stored().len(), 1);
}

const ITEMS: &str = r#"{"id":"o-1","items":[{"n":1},{"n":2},{"n":3}]}"#;

#[test]
fn explode_splits_one_event_into_several() {
    let fixture = fixture(rules(r#"[{"explode": "/items"}, {"filter": "items.n != 2"}]"#));
    let answer = fixture.post("/ingest/event/t", ACCEPT, ITEMS).json();
    let stored = fixture.stored();
    let expected = [r#"{"id":"o-1","items":{"n":1}}"#, r#"{"id":"o-1","items":{"n":3}}"#];
    assert_eq!(fixture.payloads(), expected);
    assert_eq!(answer["id"], stored[0].id);
    assert_eq!(
        (&answer["position"], &answer["events"], &answer["duplicate"]),
        (&"0:1".into(), &2.into(), &false.into())
    );
    let ends: Vec<_> = stored.iter().map(|event| (event.starts, event.ends)).collect();
    assert_eq!(ends, [(true, false), (false, true)]);
    assert!(stored[0].id < stored[1].id && stored[0].id[..24] == stored[1].id[..24], "their ids are adjacent");
    assert_eq!(filtered(&fixture), [(1, "explode", 0), (2, "filter", 1)]);
    let answer = fixture.post("/ingest/event/t", ACCEPT, r#"{"items":[]}"#).json();
    assert_eq!(answer["filtered"], json!({"step": 1, "operation": "explode"}));
    let answer = fixture.post("/ingest/event/t", ACCEPT, r#"{"items":[{"n":2}]}"#).json();
    assert_eq!(answer["filtered"], json!({"step": 2, "operation": "filter"}));
    assert_eq!(fixture.stored().len(), 2);
}

#[test]
fn exploded_events_have_derived_ids() {
    let name = TypeName::new("t").unwrap();
    let part = |of: KeyedIds, number| KeyedIds::of_event(of.id(0)).id(number).to_string();
    for (id, headers, key) in [(IdRule::Generated, "Idempotency-Key: k\r\n", "k"), (id_at("/id"), "", "o-1")] {
        let fixture = fixture(TypeRules { id, ..rules(r#"[{"explode": "/items"}]"#) });
        let headers = format!("{headers}{ACCEPT}");
        let first = fixture.post("/ingest/event/t", &headers, ITEMS).json();
        let ids: Vec<_> = fixture.stored().into_iter().map(|event| event.id).collect();
        let of = KeyedIds::new("", &name, key.as_bytes());
        assert_eq!(ids, [part(of, 0), part(of, 1), part(of, 2)]);
        let again = fixture.post("/ingest/event/t", &headers, ITEMS).json();
        let expected = json!({"id": first["id"], "position": first["position"], "duplicate": true, "events": 3});
        assert_eq!(again, expected);
        let other = fixture.post("/ingest/event/t", &headers, ITEMS.replace("{\"n\":3}", "{\"n\":4}"));
        assert_eq!((other.status, other.code().as_str()), (409, "id_reused"));
        assert_eq!((fixture.stored().len(), fixture.counters().duplicates()), (3, 1));
    }
}

#[test]
fn exploded_batch_lines_count_once() {
    let fixture = fixture(TypeRules { id: id_at("/id"), ..rules(r#"[{"explode": "/l"}]"#) });
    let body = "{\"id\":1,\"l\":[1,2]}\n{\"id\":2,\"l\":[3]}\n{\"l\":[]}\n{\"l\":[4,5,6]}\n{\"l\":7}\n";
    let answer = fixture.post("/ingest/batch/t", NDJSON, body);
    let refused = json!([{"line": 5, "pointer": "/l", "code": "transform", "step": 1, "operation": "explode",
        "detail": "step 1 (explode /l): the value is a number, but should be an array"}]);
    assert_eq!(
        (answer.status, answer.json()),
        (207, json!({"accepted": 4, "duplicates": 0, "filtered": 1, "refused": refused}))
    );
    assert_eq!(fixture.stored().len(), 6);
    let unique: std::collections::BTreeSet<_> = fixture.stored().into_iter().map(|event| event.id).collect();
    assert_eq!(unique.len(), 6);
    let answer =
        fixture.post("/ingest/batch/t", NDJSON, "{\"id\":1,\"l\":[1,2]}\n{\"id\":2,\"l\":[4]}\n{\"id\":3,\"l\":[1]}\n");
    let json = answer.json();
    assert_eq!((answer.status, &json["accepted"], &json["duplicates"]), (207, &1.into(), &1.into()));
    assert_eq!((&json["refused"][0]["line"], &json["refused"][0]["code"]), (&2.into(), &"id_reused".into()));
    assert_eq!(fixture.stored().len(), 7);
}

#[test]
fn exploded_keyed_batch_is_deduplicated_whole() {
    let fixture = fixture(rules(r#"[{"explode": "/l"}]"#));
    let headers = format!("{NDJSON}Idempotency-Key: k\r\n");
    for (accepted, duplicates) in [(2, 0), (0, 2)] {
        let answer = fixture.post("/ingest/batch/t", &headers, "{\"l\":[1,2]}\n{\"l\":[3]}\n").json();
        assert_eq!((&answer["accepted"], &answer["duplicates"]), (&accepted.into(), &duplicates.into()));
    }
    assert_eq!(fixture.stored().len(), 3);
}

#[test]
fn exploded_batch_is_limited_like_any_batch() {
    let fixture = fixture(rules(r#"[{"explode": "/l"}]"#));
    let line = format!("{{\"l\":[{}1]}}\n", "1,".repeat(9_999));
    let answer = fixture.post("/ingest/batch/t", NDJSON, line.repeat(11));
    let json = answer.json();
    assert_eq!((answer.status, &json["accepted"]), (207, &10.into()));
    assert_eq!((&json["refused"][0]["line"], &json["refused"][0]["code"]), (&11.into(), &"too_many_records".into()));
    assert_eq!(fixture.stored().len(), 100_000);
}

#[test]
fn steps_read_event_metadata() {
    let steps = r#"[{"enrich": "/from", "from": "client"}, {"enrich": "/kind", "from": "type"},
        {"enrich": "/request", "from": "header", "header": "X-Request-Id"}, {"enrich": "/at", "from": "received_time"}]"#;
    let fixture = fixture(rules(steps));
    assert_eq!(fixture.post("/ingest/event/t", "x-request-ID: r 7\r\n", "{}").status, 200);
    assert_eq!(fixture.post("/ingest/batch/t", "X-Request-Id: b\r\n", "{}").status, 200);
    assert_eq!(fixture.post("/ingest/event/t", "", "{}").status, 200);
    for (payload, request) in fixture.payloads().iter().zip([json!("r 7"), json!("b"), json!(null)]) {
        let event: serde_json::Value = serde_json::from_str(payload).unwrap();
        assert_eq!((&event["from"], &event["kind"], &event["request"]), (&"127.0.0.1".into(), &"t".into(), &request));
        assert!(event["at"].as_str().unwrap().ends_with('Z'), "{payload}");
    }
}

#[test]
fn sample_decides_alike_for_duplicates() {
    let fixture = fixture(TypeRules { id: id_at("/id"), ..rules(r#"[{"sample": 0.5}]"#) });
    let is_taken = |headers: &str, body: &str| {
        let answer = fixture.post("/ingest/event/t", &format!("{headers}{ACCEPT}"), body).json();
        answer.get("filtered").is_none()
    };
    for number in 0..20 {
        // If the first is accepted, the second has a used id.
        let [first, second] = ["0", "1"].map(|x| is_taken("", &format!("{{\"id\":{number},\"x\":{x}}}")));
        assert_eq!(first, second);
        let key = format!("Idempotency-Key: k{number}\r\n");
        assert_eq!(is_taken(&key, "{\"x\":1}"), is_taken(&key, "{\"x\":1}"));
    }
    let taken = fixture.stored().len();
    assert!((5..36).contains(&taken), "{taken} of 40");
}

#[test]
fn ids_come_from_transformed_payload() {
    let fixture = fixture(TypeRules { id: id_at("/key"), ..rules(r#"[{"rename": "/nr", "to": "key"}]"#) });
    assert_eq!(fixture.post("/ingest/event/t", "", r#"{"nr":5}"#).status, 200);
    let id = KeyedIds::new("", &TypeName::new("t").unwrap(), b"5").id(0).to_string();
    assert_eq!(fixture.stored()[0].id, id);
    assert_eq!(fixture.post("/ingest/event/t", ACCEPT, r#"{"nr":5}"#).json()["duplicate"], true);
    assert_eq!(fixture.post("/ingest/event/t", "", r#"{"nr":""}"#).code(), "key");
    let none = Fixture::with(named_types(&[("t", Some("/key"))]), GatewayOptions::default());
    assert_eq!(none.post("/ingest/event/t", "", r#"{"nr":5}"#).status, 200);
    assert_ne!(none.stored()[0].id, id);
}

#[test]
fn large_events_are_transformed_like_small_ones() {
    let fixture =
        fixture(rules(r#"[{"drop": "/x"}, {"lower": "/s"}, {"explode": "/l"}, {"dedupe": "/d", "window": "1h"}]"#));
    let large = |rest: &str| format!("{{\"pad\":\"{}\"{rest}}}", "p".repeat(300_000));
    let headers = format!("Idempotency-Key: k\r\n{ACCEPT}");
    let first = fixture.post("/ingest/event/t", &headers, large(",\"x\":1,\"s\":\"A\"")).json();
    assert_eq!((&first["duplicate"], &first["position"]), (&false.into(), &"0:1".into()));
    let again = fixture.post("/ingest/event/t", &headers, large(",\"x\":1,\"s\":\"A\"")).json();
    assert_eq!((&again["duplicate"], &again["id"]), (&true.into(), &first["id"]));
    assert_eq!(fixture.post("/ingest/event/t", &headers, large(",\"x\":2")).code(), "id_reused");
    assert_eq!(fixture.post("/ingest/event/t", "", large(",\"s\":1")).code(), "transform");
    assert_eq!(fixture.post("/ingest/event/t", "", large(",")).code(), "json");
    assert_eq!(fixture.post("/ingest/event/t", ACCEPT, large(",\"l\":[1,2]")).json()["events"], 2);
    for filtered in [false, true] {
        let answer = fixture.post("/ingest/event/t", ACCEPT, large(",\"d\":1")).json();
        assert_eq!(answer.get("filtered").is_some(), filtered);
    }
    let lines = format!("{}\n{}\n{}\n", large(",\"s\":\"B\""), large(",\"s\":7"), large(",\"d\":1"));
    let answer = fixture.post("/ingest/batch/t", NDJSON, lines);
    assert_eq!((answer.status, &answer.json()["accepted"], &answer.json()["filtered"]), (207, &2.into(), &1.into()));
    let expected = [",\"s\":\"a\"", ",\"l\":1", ",\"l\":2", ",\"d\":1", ",\"s\":\"b\""].map(large);
    assert_eq!(fixture.payloads(), expected);
}

/// A transform with too many operations is stopped on the shard and run again by the worker pool: no effect of the first run may remain.
#[test]
fn costly_small_event_is_transformed_like_others() {
    let on_each = vec![r#"{"lower": "/l/x"}"#; 90].join(",");
    let fixture = fixture(rules(&format!(
        r#"[{{"dedupe": "/d", "window": "1h"}}, {{"when": "l != null", "explode": "/l"}}, {on_each}]"#
    )));
    let event = |number: u32| format!("{{\"d\":{number},\"l\":[{}0]}}", "0,".repeat(399));
    for number in 0..3 {
        let answer = fixture.post("/ingest/event/t", ACCEPT, event(number)).json();
        assert_eq!(answer["events"], 400, "{answer}");
        assert!(fixture.post("/ingest/event/t", ACCEPT, event(number)).json().get("filtered").is_some());
        assert_eq!(fixture.post("/ingest/event/t", "", format!("{{\"small\":{number}}}")).status, 200);
    }
    let lines = format!("{}\n{}\n", event(7), event(8));
    assert_eq!(fixture.post("/ingest/batch/t", NDJSON, lines).status, 200);
    assert_eq!(fixture.payloads().len(), 5 * 400 + 3);
}

#[test]
fn event_time_comes_from_transformed_payload() {
    let time = Some("/at".parse().unwrap());
    let fixture = fixture(TypeRules { time, ..rules(r#"[{"move": "/when", "to": "/at"}, {"explode": "/items"}]"#) });
    let event = r#"{"when": "1970-01-01T00:00:01Z", "items": [1]}"#;
    assert_eq!(fixture.post("/ingest/event/t", "", event).status, 200);
    assert_eq!(fixture.post("/ingest/batch/t", NDJSON, format!("{event}\n{{\"when\": 7}}\n")).status, 200);
    let times: Vec<_> = fixture.stored().iter().map(|event| event.event_time).collect();
    assert_eq!(times, [Some(1_000_000), Some(1_000_000), None]);
}

/// If a step dropped a line as a duplicate of another request's event, the batch isn't deduplicated as a whole. That event may be lost when
/// this batch isn't, and then the resent batch must store only that line.
#[test]
fn batch_depending_on_another_request_deduplicates_by_record() {
    let of_lines = fixture(rules(r#"[{"dedupe": "/v", "window": "1h"}]"#));
    let contents = |fixture: &Fixture| {
        let mut lane = fixture.log.shards()[0].reader(0);
        let mut contents = Vec::new();
        while let Some(LogChunk::Block(block)) = lane.read().unwrap() {
            contents.extend(block.records().map(|(_, record)| record.content.is_some()));
        }
        contents
    };
    let post = |key: &str, body: &str| {
        let headers = format!("Idempotency-Key: {key}\r\n{NDJSON}");
        let answer = of_lines.post("/ingest/batch/t", &headers, body);
        assert_eq!(answer.status, 200);
        answer.json()["filtered"].as_u64().unwrap_or_default()
    };
    assert_eq!(post("whole", "{\"v\":1}\n{\"v\":2}\n"), 0);
    assert_eq!(contents(&of_lines), [false, false], "nothing else has a part in it");
    assert_eq!(post("leans", "{\"v\":1}\n{\"v\":3}\n"), 1);
    assert_eq!(contents(&of_lines), [false, false, true]);

    let of_parts = fixture(rules(r#"[{"explode": "/l"}, {"dedupe": "/l", "window": "1h"}]"#));
    for (key, body) in [("whole", "{\"l\":[1,2]}"), ("leans", "{\"l\":[2,3]}")] {
        assert_eq!(of_parts.post("/ingest/event/t", &format!("Idempotency-Key: {key}\r\n"), body).status, 200);
    }
    assert_eq!(contents(&of_parts), [false, false, true]);
}

/// A duplicate may not be durable yet: others see none of the values of its batch.
#[test]
fn batch_with_duplicates_filters_nothing() {
    let fixture = fixture(TypeRules { id: id_at("/id"), ..rules(r#"[{"dedupe": "/v", "window": "1h"}]"#) });
    let post =
        |body: &str| fixture.post("/ingest/batch/t", NDJSON, body).json()["filtered"].as_u64().unwrap_or_default();
    assert_eq!(post("{\"id\":1}\n"), 0);
    assert_eq!(post("{\"id\":1}\n{\"id\":2,\"v\":5}\n"), 0);
    assert_eq!(post("{\"id\":3,\"v\":5}\n"), 0);
    assert_eq!(post("{\"id\":4,\"v\":5}\n"), 1);
}

/// No event is dropped as a duplicate of an event that isn't stored.
#[test]
fn line_filtered_for_rejected_line_is_not_lost() {
    let dedupe = r#"[{"dedupe": "/d", "window": "10m"}]"#;
    let fixture = fixture(TypeRules { id: id_at("/id"), ..rules(dedupe) });
    let body = "{\"id\":\"P\",\"d\":7}\n{\"id\":\"P\",\"d\":8}\n{\"id\":\"Q\",\"d\":8}\n{\"id\":\"R\",\"d\":7}\n{\"id\":\"S\",\"d\":9}\n";
    let answer = fixture.post("/ingest/batch/t", NDJSON, body);
    let json = answer.json();
    assert_eq!((answer.status, &json["accepted"], &json["filtered"]), (207, &2.into(), &json!(null)), "{json}");
    let refused: Vec<_> = json["refused"].as_array().unwrap().iter().map(|one| (&one["line"], &one["code"])).collect();
    let expected = [(2, "id_reused"), (3, "overload"), (4, "overload")].map(|(line, code)| (json!(line), json!(code)));
    assert_eq!(refused, expected.iter().map(|(line, code)| (line, code)).collect::<Vec<_>>(), "{json}");
    // To fix, or to resend without those before it.
    let retries = json["refused"].as_array().unwrap().iter().map(|one| one["retry"].as_str()).collect::<Vec<_>>();
    assert_eq!((retries, &json["retry_alone"]), (vec![None, Some("alone"), Some("alone")], &json!(2)), "{json}");
    assert_eq!(json.get("retry_later"), None, "{json}");
    assert_eq!(filtered(&fixture), [(1, "dedupe", 0)]);
    let answer = fixture.post("/ingest/batch/t", NDJSON, "{\"id\":\"Q\",\"d\":8}\n").json();
    assert_eq!(answer["accepted"], 1, "{answer}");
    let payloads = fixture.payloads();
    assert_eq!(payloads, [r#"{"id":"P","d":7}"#, r#"{"id":"S","d":9}"#, r#"{"id":"Q","d":8}"#]);
}

/// A client needs to know which lines to resend alone: they are listed before all others.
#[test]
fn lines_to_resend_alone_are_listed_first() {
    let fixture = fixture(TypeRules { id: id_at("/id"), ..rules(r#"[{"dedupe": "/d", "window": "10m"}]"#) });
    assert_eq!(fixture.post("/ingest/event/t", "", r#"{"id":"P"}"#).status, 200);
    let leaning = |count: usize| "{\"d\":7}\n".repeat(count);
    for (bad, alone, listed) in [(1_200, 2, (998, 0, 2)), (1, 1_300, (0, 0, 1_000)), (600, 100, (600, 1, 100))] {
        let body = format!("{}{{\"id\":\"P\",\"d\":7}}\n{}", "no\n".repeat(bad), leaning(alone));
        let json = fixture.post("/ingest/batch/t", NDJSON, body).json();
        let refused = json["refused"].as_array().unwrap();
        let count = |code: &str| refused.iter().filter(|one| one["code"] == code).count();
        assert_eq!((count("json"), count("id_reused"), count("overload")), listed);
        assert!(refused.is_sorted_by_key(|one| one["line"].as_u64()));
        assert_eq!(json["retry_alone"], alone);
        let all = bad + 1 + alone;
        let expected = if all > 1_000 { json!(all) } else { json!(null) };
        assert_eq!(json["refused_count"], expected);
    }
}

#[test]
fn rejected_line_stores_no_exploded_event() {
    let fixture = fixture(TypeRules { id: id_at("/items/id"), ..rules(r#"[{"explode": "/items"}]"#) });
    assert_eq!(fixture.post("/ingest/event/t", "", r#"{"items":[{"id":1},{"id":2}]}"#).status, 200);
    let line = r#"{"items":[{"id":9},{"id":2,"x":1}]}"#;
    let answer = fixture.post("/ingest/batch/t", NDJSON, line);
    assert_eq!((answer.status, &answer.json()["accepted"]), (422, &0.into()), "{}", answer.json());
    assert_eq!(fixture.stored().len(), 2);
    // Its id was never stored, so an event with the same id is new.
    let body = format!("{line}\n{{\"items\":[{{\"id\":9}}]}}\n");
    let json = fixture.post("/ingest/batch/t", NDJSON, body).json();
    assert_eq!(
        (&json["accepted"], &json["duplicates"], &json["refused"][0]["line"]),
        (&1.into(), &0.into(), &1.into())
    );
    assert_eq!(fixture.stored().len(), 3);
}

#[test]
fn original_next_to_exploded_line_is_no_duplicate() {
    let fixture = fixture(TypeRules { id: id_at("/id"), ..rules(r#"[{"explode": "/l", "when": "l != null"}]"#) });
    let body = "{\"id\":1}\n{\"id\":1}\n{\"id\":2,\"l\":[1,2]}\n{\"id\":2,\"l\":[1,2]}\n";
    let json = fixture.post("/ingest/batch/t", NDJSON, body).json();
    assert_eq!((&json["accepted"], &json["duplicates"]), (&2.into(), &2.into()), "{json}");
    assert_eq!(fixture.stored().len(), 3);
}

/// Clients that send arrays repeat what was not answered together with what is new.
#[test]
fn element_with_own_id_is_stored_once() {
    for steps in [
        r#"[{"explode": "/batch", "to": ""}]"#,
        r#"[{"explode": "/batch"}, {"move": "/batch", "to": ""}, {"set": "/x", "value": 1}]"#,
    ] {
        let fixture = fixture(TypeRules { id: id_at("/id"), ..rules(steps) });
        let body = |ids: &[&str], at: u32| {
            let elements: Vec<_> = ids.iter().map(|id| format!(r#"{{"id":"{id}"}}"#)).collect();
            format!(r#"{{"batch":[{}],"sentAt":{at}}}"#, elements.join(","))
        };
        let post = |body: String| fixture.post("/ingest/event/t", ACCEPT, body);
        let ids = |fixture: &Fixture| fixture.stored().into_iter().map(|event| event.id).collect::<Vec<_>>();
        let id = |text: &str| KeyedIds::new("", &TypeName::new("t").unwrap(), text.as_bytes()).id(0).to_string();
        for (elements, at, duplicate) in [
            (&["m1", "m2"][..], 1, false),
            (&["m1", "m2", "m3"], 2, false),
            (&["m2", "m4"], 3, false),
            (&["m4", "m1"], 4, true),
        ] {
            let answer = post(body(elements, at));
            assert_eq!((answer.status, &answer.json()["duplicate"]), (200, &duplicate.into()), "{elements:?}");
        }
        assert_eq!(ids(&fixture), ["m1", "m2", "m3", "m4"].map(id));
        // One of them with other bytes: nothing is stored of the event, nor of the line.
        let changed = r#"{"batch":[{"id":"m5"},{"id":"m1","x":2}]}"#;
        assert_eq!(post(changed.to_owned()).code(), "id_reused");
        let lines = format!("{changed}\n{}\n{}\n", body(&["m1", "m6"], 5), body(&["m1", "m2"], 6));
        let answer = fixture.post("/ingest/batch/t", NDJSON, lines);
        let json = answer.json();
        assert_eq!((answer.status, &json["accepted"], &json["duplicates"]), (207, &1.into(), &1.into()), "{json}");
        assert_eq!((&json["refused"][0]["line"], &json["refused"][0]["code"]), (&1.into(), &"id_reused".into()));
        assert_eq!(ids(&fixture)[4..], [id("m6")]);
    }
}

#[test]
fn element_without_id_gets_request_id() {
    let fixture = fixture(TypeRules { id: id_at("/id"), ..rules(r#"[{"explode": "/batch", "to": ""}]"#) });
    let post = |key: &str, body: &str| fixture.post("/ingest/event/t", &format!("Idempotency-Key: {key}\r\n"), body);
    for (key, body, status, stored) in [
        ("a", r#"{"batch":[{"id":1},{"n":1}]}"#, 200, 2),
        ("a", r#"{"batch":[{"id":1},{"n":1}]}"#, 200, 2),
        ("b", r#"{"batch":[{"n":1},{"id":1}]}"#, 200, 3),
        ("b", r#"{"batch":[{"n":2},{"id":1}]}"#, 409, 3),
    ] {
        assert_eq!((post(key, body).status, fixture.stored().len()), (status, stored), "{key} {body}");
    }
}

#[test]
fn events_of_an_element_derive_its_id() {
    let steps = r#"[{"explode": "/a", "to": ""}, {"explode": "/b"}]"#;
    let fixture = fixture(TypeRules { id: id_at("/id"), ..rules(steps) });
    for (body, stored) in [
        (r#"{"a":[{"id":1,"b":[1,2]},{"id":2,"b":[3]}]}"#, 3),
        (r#"{"a":[{"id":2,"b":[3]},{"id":1,"b":[1,2]},{"id":3,"b":[4]}]}"#, 4),
    ] {
        assert_eq!(fixture.post("/ingest/event/t", "", body).status, 200);
        assert_eq!(fixture.stored().len(), stored, "{body}");
    }
    assert_eq!(fixture.post("/ingest/event/t", "", r#"{"a":[{"id":1,"b":[1]}]}"#).status, 409);
}

/// The same in the worker pool, and in a dry run.
#[test]
fn element_ids_are_equal_on_every_path() {
    let all = r#"[{"redact": "/pad", "what": ["email"], "when": "pad != null"}, {"explode": "/batch", "to": ""}]"#;
    let rules = TypeRules { id: id_at("/id"), ..rules(all) };
    let small = r#"{"batch":[{"id":"m1"},{"id":"m2"}]}"#;
    let large = format!(r#"{{"pad":"{}","batch":[{{"id":"m2"}},{{"id":"m3"}}]}}"#, "a@b.org ".repeat(60_000));
    let mut tried: Vec<_> = Vec::new();
    for body in [small, large.as_str()] {
        let around = gateway::RequestContext::default();
        let mut dry = gateway::DryRun::new(TypeName::new("t").unwrap(), rules.clone());
        tried.extend(dry.run(body.as_bytes(), &around).end.taken.into_iter().filter_map(|event| event.id));
    }
    tried.sort();
    tried.dedup();
    let fixture = fixture(rules);
    assert_eq!(fixture.post("/ingest/event/t", "", small).status, 200);
    assert_eq!(fixture.post("/ingest/event/t", "", large.as_str()).status, 200);
    assert_eq!(fixture.post("/ingest/batch/t", NDJSON, format!("{small}\n{large}\n")).status, 200);
    let mut stored: Vec<_> = fixture.stored().into_iter().map(|event| event.id).collect();
    stored.sort();
    assert_eq!(stored, tried.iter().map(ToString::to_string).collect::<Vec<_>>());
    assert_eq!(stored.len(), 3);
}
