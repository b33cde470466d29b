//! Requests of the bulk API: records, statuses and memory.

use limits::{BATCH_RECORDS_MAX, KEY_BYTES_MAX};

use super::{PRODUCT, intake, text};
use crate::testing::{Taken, call, decode, post};
use crate::{Detail, JSON, RecordVerdict, Reply, Verdicts};

const BEATS: &str = "/_bulk?filter_path=errors,items.*.error,items.*.status";

fn bulk(target: &str, body: &str, rejected: &[usize]) -> Result<(Vec<Taken>, Reply), Reply> {
    post(&mut *call(&intake(), "POST", target, &[]), body.as_bytes(), rejected)
}

fn taken(type_name: &str, id: Option<&str>, payload: Result<&str, &str>) -> Taken {
    Taken {
        type_name: type_name.to_owned(),
        id: id.map(|id| id.as_bytes().to_vec()),
        payload: payload.map(str::to_owned).map_err(str::to_owned),
    }
}

#[test]
fn bulk_request_becomes_records() {
    let body = concat!(
        "{\"create\":{\"_index\":\"orders\",\"_id\":\"1\"}}\n{ \"a\": 1.0 }\n",
        "\n",
        "{\"index\":{\"_index\":\".ds-logs-app-default-2026.11.28-000001\"}}\r\n{\"b\":2}\r\n",
        "{\"create\":{}}\nnot checked here"
    );
    let (records, reply) = bulk("/of-path-2026.11.28/_bulk", body, &[]).unwrap();
    let expected = [
        taken("orders", Some("orders\u{1f}1"), Ok("{ \"a\": 1.0 }")),
        taken("logs-app-default", None, Ok("{\"b\":2}")),
        taken("of-path", None, Ok("not checked here")),
    ];
    assert_eq!(records, expected);
    let prefix = super::super::generated_id::prefix(body.as_bytes());
    let expected = format!(
        concat!(
            r#"{{"took":0,"errors":false,"items":["#,
            r#"{{"create":{{"_index":"orders","_id":"1","_version":1,"result":"created","status":201}}}},"#,
            r#"{{"index":{{"_index":".ds-logs-app-default-2026.11.28-000001","_id":"{0}-1","_version":1,"#,
            r#""result":"created","status":201}}}},"#,
            r#"{{"create":{{"_index":"of-path-2026.11.28","_id":"{0}-2","_version":1,"result":"created","status":201}}}}]}}"#
        ),
        prefix
    );
    assert_eq!((reply.status, reply.content_type, text(&reply)), (200, Some(JSON), expected.as_str()));
    assert_eq!(reply.lines, PRODUCT);
}

#[test]
fn bulk_paths_are_known() {
    for (method, path) in [
        ("POST", "/_bulk"),
        ("PUT", "/_bulk/"),
        ("POST", "/a/_bulk?pipeline=x"),
        ("PUT", "/a/_doc/_bulk"),
        ("POST", "/%61/_bulk"),
    ] {
        let mut call = call(&intake(), method, path, &[("content-type", "application/x-www-form-urlencoded")]);
        let body = b"{\"index\":{\"_index\":\"a\"}}\n{}\n";
        assert_eq!(decode(&mut *call, body).unwrap(), [taken("a", None, Ok("{}"))], "{path}");
    }
}

#[test]
fn updates_and_deletes_are_rejected_alone() {
    let body = concat!(
        "{\"update\":{\"_index\":\"a\",\"_id\":\"1\"}}\n{\"doc\":{}}\n",
        "{\"delete\":{\"_index\":\"a\",\"_id\":\"2\"}}\n",
        "{\"index\":{\"_index\":\"a\",\"_id\":\"3\"}}\n{}\n"
    );
    let (records, reply) = bulk(BEATS, body, &[]).unwrap();
    let rejected: Vec<bool> = records.iter().map(|record| record.payload.is_err()).collect();
    assert_eq!((rejected, records[2].id.as_deref()), (vec![true, true, false], Some(&b"a\x1f3"[..])));
    let error = concat!(
        r#""error":{"type":"illegal_argument_exception","reason":"schema: Forebay accepts `create` and `index`, "#,
        r#"and no `update` or `delete`: send each change as an event"}"#
    );
    let expected = format!(
        r#"{{"errors":true,"items":[{{"update":{{"status":400,{error}}}}},{{"delete":{{"status":400,{error}}}}},{{"index":{{"status":201}}}}]}}"#
    );
    assert_eq!(text(&reply), expected);
}

#[test]
fn names_that_cannot_be_formed_reject_items() {
    let long = "i".repeat(65);
    let id = "d".repeat(KEY_BYTES_MAX + 1);
    let body = format!(
        "{{\"index\":{{\"_index\":\"{long}\"}}}}\n1\n{{\"index\":{{\"_index\":\"a\",\"_id\":\"{id}\"}}}}\n2\n{{\"index\":{{\"_index\":\"a\",\"_id\":\"\"}}}}\n3\n{{\"index\":{{\"_index\":\"a\",\"_id\":\"{}\"}}}}\n4\n",
        &id[1..]
    );
    let (records, reply) = bulk("/_bulk", &body, &[]).unwrap();
    let details: Vec<String> = records.into_iter().filter_map(|record| record.payload.err()).collect();
    assert_eq!(details.len(), 3);
    assert!(
        details[0].contains("has 65 bytes") && details[1].contains("has 257 bytes") && details[2].contains("empty")
    );
    assert_eq!(text(&reply).matches("\"status\":400").count(), 3);
}

#[test]
fn invalid_actions_reject_the_request() {
    for (body, expected) in [
        ("x\n{}\n", "line 1 is invalid: it is not JSON"),
        ("{\"index\":{\"_index\":\"a\"}}\n{}\n\n{\"index\":{}}\n{}\n", "line 4 is invalid: the action has no `_index`"),
        ("{\"index\":{\"_index\":\"\"}}\n{}\n", "the action has no `_index`"),
        ("{\"insert\":{\"_index\":\"a\"}}\n{}\n", "`insert` is not one of"),
        ("{\"index\":{\"_index\":\"a\"}}\n", "no document follows"),
    ] {
        let reply = bulk("/_bulk", body, &[]).unwrap_err();
        let error: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
        assert_eq!((reply.status, &error["error"]["type"]), (400, &"illegal_argument_exception".into()), "{body}");
        assert!(error["error"]["root_cause"][0]["reason"].as_str().unwrap().contains(expected), "{error}");
        assert_eq!(reply.lines, PRODUCT);
    }
    for body in ["", "\n \n"] {
        let reply = bulk("/_bulk", body, &[]).unwrap_err();
        assert!(reply.status == 400 && text(&reply).contains("parse_exception"), "{}", text(&reply));
    }
}

#[test]
fn verdicts_become_statuses() {
    let body = "{\"create\":{\"_index\":\"a\\\"\",\"_id\":\"x\\\"\\n\"}}\n{}\n".repeat(5);
    let mut call = call(&intake(), "POST", "/_bulk", &[]);
    decode(&mut *call, body.as_bytes()).unwrap();
    let mut verdicts = Verdicts::accepted(5);
    verdicts.set(1, RecordVerdict::Accepted);
    verdicts.reject(2, RecordVerdict::IdReused, || Detail { code: "id_reused", detail: "not shown".into() });
    verdicts.reject(3, RecordVerdict::Rejected, || Detail { code: "schema", detail: "no \"a\"".into() });
    verdicts.set(4, RecordVerdict::IdReused);
    let reply = call.response(&verdicts);
    let response: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
    assert!(text(&reply).contains("\"errors\":true"));
    let items: Vec<_> = response["items"].as_array().unwrap().iter().map(|item| item["create"].clone()).collect();
    assert!(items.iter().all(|item| item["_index"] == "a\"" && item["_id"] == "x\"\n"));
    let statuses: Vec<_> = items.iter().map(|item| item["status"].as_u64().unwrap()).collect();
    assert_eq!(statuses, [201, 201, 409, 400, 409]);
    let errors: Vec<_> = items.iter().map(|item| item["error"].to_string()).collect();
    assert_eq!(errors[0], "null");
    assert!(errors[2].contains(r#""type":"version_conflict_engine_exception""#));
    assert!(errors[2].contains("another document with this `_id` is stored"));
    assert_eq!(errors[3], r#"{"reason":"schema: no \"a\"","type":"document_parsing_exception"}"#);
    assert_eq!(errors[4], errors[2]);
    assert!(items[2]["result"].is_null() && items[2]["_version"].is_null());
}

#[test]
fn filter_leaves_members_out() {
    let body = "{\"create\":{\"_index\":\"a\",\"_id\":\"1\"}}\n{}\n{\"index\":{\"_index\":\"a\",\"_id\":\"2\"}}\n{}\n";
    for (filter, rejected, expected) in [
        (
            "errors,items.*.status",
            &[][..],
            r#"{"errors":false,"items":[{"create":{"status":201}},{"index":{"status":201}}]}"#,
        ),
        ("errors,items.*.error", &[], r#"{"errors":false}"#),
        ("items.*.error", &[], "{}"),
        (
            "took,items.*.error.type",
            &[1],
            r#"{"took":0,"items":[{"index":{"error":{"type":"document_parsing_exception"}}}]}"#,
        ),
        ("items.create._id", &[], r#"{"items":[{"create":{"_id":"1"}}]}"#),
        (
            "items.*.error.reason",
            &[0],
            r#"{"items":[{"create":{"error":{"reason":"schema: the schema of the type"}}}]}"#,
        ),
    ] {
        let (_, reply) = bulk(&format!("/_bulk?filter_path={filter}"), body, rejected).unwrap();
        assert_eq!(text(&reply), expected, "{filter}");
    }
}

#[test]
fn media_type_is_that_of_the_request() {
    let accept = [("accept", "application/vnd.elasticsearch+json; compatible-with=9")];
    let mut call = call(&intake(), "PUT", "/a/_bulk", &accept);
    let expected = Some("application/vnd.elasticsearch+json;compatible-with=9");
    assert_eq!(post(&mut *call, b"{\"index\":{}}\n{}", &[]).unwrap().1.content_type, expected);
    assert_eq!(post(&mut *call, b"", &[]).unwrap_err().content_type, expected);
}

#[test]
fn memory_of_a_request_is_counted() {
    let line = "{\"create\":{\"_index\":\"logs\",\"_id\":\"0123456789\"}}\n{}\n";
    let body = line.repeat(BATCH_RECORDS_MAX);
    for target in ["/_bulk", BEATS] {
        let mut call = call(&intake(), "POST", target, &[]);
        let needed = call.needed_bytes(body.as_bytes());
        decode(&mut *call, body.as_bytes()).unwrap();
        let kept = call.kept_bytes();
        let ids = if target == BEATS { 0 } else { 10 * BATCH_RECORDS_MAX };
        assert!(kept >= ids + 8 * BATCH_RECORDS_MAX && kept < 4 * 1024 * 1024, "{kept}");
        assert!(needed >= 8 * BATCH_RECORDS_MAX && needed < body.len(), "{needed}");
    }
    let one_more = body + line;
    let reply = post(&mut *call(&intake(), "POST", "/_bulk", &[]), one_more.as_bytes(), &[]).unwrap_err();
    assert!(reply.status == 413 && text(&reply).contains("too_many_records"));
}
