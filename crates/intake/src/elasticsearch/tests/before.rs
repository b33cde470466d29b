//! What senders ask before they post.

use serde_json::Value;

use super::{PRODUCT, intake, text};
use crate::testing::{fixed, head, lines};
use crate::{IntakeRoute, Problem, ProblemKind};

fn get(target: &str, headers: &[(&str, &str)]) -> Value {
    let reply = fixed(&intake(), "GET", target, headers);
    assert_eq!((reply.status, reply.lines.as_str()), (200, PRODUCT), "{target}");
    serde_json::from_slice(&reply.body).unwrap()
}

#[test]
fn root_has_the_version() {
    for target in ["", "/", "/?human=false"] {
        let root = get(target, &[]);
        assert_eq!((&root["version"]["number"], &root["tagline"]), (&"8.19.0".into(), &"You Know, for Search".into()));
        assert_eq!(root["version"]["build_flavor"], "default");
    }
    let head = fixed(&intake(), "HEAD", "/", &[]);
    assert_eq!((head.status, head.body.len(), head.lines.as_str()), (200, 0, PRODUCT));
}

#[test]
fn checks_of_senders_succeed() {
    assert_eq!(get("/_license?accept_enterprise=true", &[])["license"]["status"], "active");
    assert_eq!(get("/_xpack", &[])["features"]["ilm"]["enabled"], true);
    assert_eq!(get("/_cluster/health/logs", &[])["status"], "green");
    assert_eq!(get("/_ilm/status", &[])["operation_mode"], "RUNNING");
    let line = fixed(&intake(), "GET", "/_cat/health", &[("accept", "text/plain,application/json")]);
    assert_eq!(text(&line), "1795867200 12:00:00 forebay green 1 1 1 1 0 0 0 0 0 - 100.0%\n");
    assert_eq!(get("/_cat/health?format=json", &[])[0]["status"], "green");
    assert_eq!(get("/_cat/health", &[("accept", "application/json")])[0]["timestamp"], "12:00:00");
}

#[test]
fn only_node_has_the_address_of_the_request() {
    let address = |host: &str, has_tls: bool| {
        let lines = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let head = crate::IntakeHead { has_tls, ..head("GET", "/_nodes/_all/http", &lines) };
        let IntakeRoute::Fixed(reply) = intake().route(&head) else { panic!() };
        let body: Value = serde_json::from_slice(&reply.body).unwrap();
        body["nodes"]["forebay"]["http"]["publish_address"].as_str().unwrap().to_owned()
    };
    assert_eq!(address("10.0.0.1:9200", false), "10.0.0.1:9200");
    assert_eq!(address("es.example", false), "es.example:80");
    assert_eq!(address("[::1]", true), "[::1]:443");
    assert_eq!(address("a\"b:1", false), "a\"b:1");
    assert_eq!(get("/_nodes/ingest", &[])["nodes"]["forebay"]["ingest"]["processors"][0]["type"], "geoip");
}

#[test]
fn templates_and_policies_are_acknowledged() {
    for path in [
        "/_template/a",
        "/_index_template/a",
        "/_component_template/a",
        "/_ilm/policy/a",
        "/_ingest/pipeline/a",
        "/_data_stream/a",
        "/_alias/a",
        "/logs/_alias/a",
    ] {
        let (put, get) = (fixed(&intake(), "PUT", path, &[]), fixed(&intake(), "GET", path, &[]));
        assert_eq!((put.status, text(&put), put.lines.as_str()), (200, r#"{"acknowledged":true}"#, PRODUCT), "{path}");
        assert_eq!((get.status, get.lines.as_str()), (404, PRODUCT), "{path}");
        let head = fixed(&intake(), "HEAD", path, &[]);
        assert_eq!((head.status, head.body.len()), (404, 0), "{path}");
    }
    assert_eq!(text(&fixed(&intake(), "POST", "/_aliases", &[])), r#"{"acknowledged":true}"#);
    assert_eq!(get("/_index_template", &[])["index_templates"], serde_json::json!([]));
}

#[test]
fn indexes_exist_and_can_be_created() {
    assert_eq!(fixed(&intake(), "HEAD", "/logs", &[]).status, 200);
    assert!(get("/logs", &[])["logs"]["mappings"].is_object());
    let created = fixed(&intake(), "PUT", "/%3Clogs-%7Bnow%2Fd%7D-000001%3E", &[]);
    let expected = r#"{"acknowledged":true,"shards_acknowledged":true,"index":"<logs-{now/d}-000001>"}"#;
    assert_eq!(text(&created), expected);
    assert_eq!(text(&fixed(&intake(), "PUT", "/logs/_mapping", &[])), r#"{"acknowledged":true}"#);
    let refreshed = fixed(&intake(), "POST", "/logs/_refresh", &[]);
    assert!(text(&refreshed).contains("\"failed\":0"));
}

#[test]
fn other_requests_are_not_found() {
    let lines = lines(&[]);
    let route = |method, target| intake().route(&head(method, target, &lines));
    for target in ["/_search", "/logs/_search", "/logs/_update/1", "/_monitoring/bulk", "/a/b/c/d/e/f/g"] {
        assert!(matches!(route("POST", target), IntakeRoute::Unknown), "{target}");
    }
    for (method, target, expected) in [
        ("DELETE", "/logs", "GET, HEAD, POST, PUT"),
        ("DELETE", "/_index_template/a", "GET, HEAD, POST, PUT"),
        ("POST", "/", "GET, HEAD"),
        ("GET", "/_bulk", "POST, PUT"),
        ("GET", "/logs/_doc/1", "POST, PUT"),
        ("DELETE", "/logs/_refresh", "GET, POST"),
    ] {
        assert!(
            matches!(route(method, target), IntakeRoute::Methods(methods) if methods == expected),
            "{method} {target}"
        );
    }
    let problem = Problem { kind: ProblemKind::Unauthorized, code: "unauthorized", detail: "no token".into() };
    let reply = intake().refusal(&problem);
    assert_eq!((reply.status, reply.lines.as_str()), (401, PRODUCT));
    assert!(text(&reply).contains(r#""type":"security_exception","reason":"unauthorized: no token""#));
}
