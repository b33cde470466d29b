//! Requests with one document.

use super::{intake, text};
use crate::testing::{call, decode, post};
use crate::{Detail, IntakeRoute, RecordVerdict, Verdicts};

#[test]
fn document_becomes_a_record() {
    for (method, target, id) in [
        ("POST", "/logs-2026.11.28/_doc", None),
        ("PUT", "/logs/_doc/a%2Fb%20c", Some("logs\u{1f}a/b c")),
        ("POST", "/logs/_create/1?refresh=true", Some("logs\u{1f}1")),
        // The index of another day has other documents.
        ("PUT", "/logs-2026.11.28/_create/1", Some("logs-2026.11.28\u{1f}1")),
    ] {
        let (records, reply) = post(&mut *call(&intake(), method, target, &[]), b"{ \"a\" : 1 }\n", &[]).unwrap();
        let [record] = records.as_slice() else { panic!("{records:?}") };
        assert_eq!((record.type_name.as_str(), record.payload.as_deref()), ("logs", Ok("{ \"a\" : 1 }\n")));
        assert_eq!(record.id.as_deref(), id.map(str::as_bytes), "{target}");
        let response: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
        assert_eq!(
            (reply.status, &response["result"], &response["_shards"]["failed"]),
            (201, &"created".into(), &0.into())
        );
        assert_eq!(id.is_none(), response["_id"].as_str().unwrap().ends_with("-0"));
    }
}

#[test]
fn document_has_the_status_of_its_verdict() {
    let mut call = call(&intake(), "PUT", "/logs/_doc/1", &[]);
    decode(&mut *call, b"{}").unwrap();
    let mut verdicts = Verdicts::accepted(1);
    verdicts.set(0, RecordVerdict::Accepted);
    assert_eq!(call.response(&verdicts).status, 201);
    verdicts.reject(0, RecordVerdict::IdReused, || Detail { code: "id_reused", detail: "stored".into() });
    let reply = call.response(&verdicts);
    assert!(reply.status == 409 && text(&reply).contains("version_conflict_engine_exception"));
    verdicts.set(0, RecordVerdict::Rejected);
    let reply = call.response(&verdicts);
    assert!(reply.status == 400 && text(&reply).contains("document_parsing_exception"), "{}", text(&reply));
}

#[test]
fn invalid_documents_are_rejected() {
    let reply = post(&mut *call(&intake(), "POST", "/a/_doc", &[]), b" \n", &[]).unwrap_err();
    assert!(reply.status == 400 && text(&reply).contains("parse_exception"));
    for target in [format!("/{}/_doc", "a".repeat(65)), format!("/a/_doc/{}", "a".repeat(257))] {
        let (records, reply) = post(&mut *call(&intake(), "POST", &target, &[]), b"{}", &[]).unwrap();
        assert!(records[0].payload.is_err() && reply.status == 400, "{target}");
    }
    let lines = crate::testing::lines(&[]);
    let target = format!("/{}/_bulk", "a".repeat(256));
    let IntakeRoute::Fixed(reply) = intake().route(&crate::testing::head("POST", &target, &lines)) else { panic!() };
    assert!(reply.status == 400 && text(&reply).contains("invalid_index_name_exception"));
}
