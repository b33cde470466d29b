//! A gateway whose types and rules are changed while it runs.

use access::Demand;
use event::TypeName;
use gateway::{GatewayOptions, GatewayTypes, TypeResolver, TypeRules};

use crate::fixture::{Answer, Fixture, named_types};

fn head(path: &str, length: usize) -> String {
    format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n")
}

#[test]
fn request_fails_if_reload_removes_its_type() {
    let fixture = Fixture::with(named_types(&[("a", None), ("b", None)]), GatewayOptions::default());
    let begun = ["/ingest/event/a", "/ingest/event/b", "/ingest/batch/a", "/ingest/batch/b"].map(|path| {
        let mut client = fixture.connect();
        client.send(head(path, 3));
        client.send("[1");
        client
    });
    fixture.wait("the parts of the bodies have come", |counters| counters.bytes_in_flight() >= 8);
    fixture.gateway().control().configure(&named_types(&[("a", None), ("c", None)]), &GatewayOptions::default());
    for (mut client, status) in begun.into_iter().zip([200, 404, 200, 404]) {
        client.send("]");
        let answer = client.answer();
        assert_eq!(answer.status, status);
        client.post("/ingest/event/c", "", b"3");
        assert_eq!(client.answer().status, 200, "the connection goes on");
        client.post("/ingest/event/b", "", b"4");
        assert_eq!(client.answer().status, 404);
    }
    assert!(fixture.stored().iter().all(|event| event.type_name != "b"));
}

#[test]
fn reload_narrows_types_and_applies_rules() {
    let fixture = Fixture::with(named_types(&[("a", None), ("b", None)]), GatewayOptions::default());
    let (before, after) = (named_types(&[("a", None), ("b", None)]), named_types(&[("b", None), ("c", None)]));
    let statuses = || ["a", "b", "c"].map(|name| fixture.post(&format!("/ingest/event/{name}"), "", "1").status);
    assert_eq!(statuses(), [200, 200, 404]);
    fixture.gateway().control().narrow(&after, &before, &GatewayOptions::default());
    assert_eq!(statuses(), [503, 200, 503], "a type that only one of them accepts may be accepted soon");
    fixture.gateway().control().configure(&after, &GatewayOptions::default());
    assert_eq!(statuses(), [404, 200, 200]);
    let strict = GatewayOptions { demand: Demand::Always, ..GatewayOptions::default() };
    fixture.gateway().control().configure(&after, &strict);
    assert_eq!(statuses(), [401, 401, 401]);
}

fn name(text: &str) -> TypeName {
    TypeName::new(text).unwrap()
}

fn assert_later(answer: &Answer, of: &str) {
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")), "{of}");
    assert_eq!(
        (answer.code().as_str(), &answer.json()["title"]),
        ("not_ready", &"Configuration reload in progress".into())
    );
}

/// Pairs of configurations, which resolve an event's type in different ways.
fn resolved_differently() -> Vec<(&'static str, [GatewayTypes; 2])> {
    let names = || named_types(&[("event", None), ("kept", None), ("order", None)]);
    let choice = |when: &str| TypeResolver::new([(name("order"), when.parse().unwrap())]);
    let pointer = |text: &str| Some(text.parse().unwrap());
    let few = || named_types(&[("event", None), ("kept", None)]);
    vec![
        ("a rule", [few(), GatewayTypes { choice: choice("n > 0"), ..names() }]),
        (
            "another rule",
            [GatewayTypes { choice: choice("n > 1"), ..names() }, GatewayTypes { choice: choice("n > 0"), ..names() }],
        ),
        ("a pointer", [names(), GatewayTypes { type_pointer: pointer("/t"), ..names() }]),
        (
            "another pointer",
            [
                GatewayTypes { type_pointer: pointer("/t"), ..names() },
                GatewayTypes { type_pointer: pointer("/u"), ..names() },
            ],
        ),
    ]
}

#[test]
fn only_named_types_pass_while_rules_change() {
    for (of, [before, after]) in resolved_differently() {
        let fixture = Fixture::with(before.clone(), GatewayOptions::default());
        let post = |path: &str| fixture.post(path, "", r#"{"n":1,"t":"kept","u":"order"}"#);
        assert_eq!(post("/ingest/event").status, 200, "{of}");
        let begun = ["/ingest/event", "/ingest/batch", "/ingest/batch/kept", "/ingest/event/kept"].map(|path| {
            let mut client = fixture.connect();
            client.send(head(path, 7));
            client.send("{\"n\":1");
            client
        });
        fixture.wait("the parts of the bodies have come", |counters| counters.bytes_in_flight() >= 24);
        fixture.gateway().control().narrow(&after, &before, &GatewayOptions::default());
        assert_later(&post("/ingest/event"), of);
        assert_later(&post("/ingest/batch"), of);
        assert_eq!([post("/ingest/event/kept").status, post("/ingest/batch/kept").status], [200, 200], "{of}");
        fixture.gateway().control().configure(&after, &GatewayOptions::default());
        assert_eq!([post("/ingest/event").status, post("/ingest/batch").status], [200, 200], "{of}");
        for (mut client, is_named) in begun.into_iter().zip([false, false, true, true]) {
            client.send("}");
            let answer = client.answer();
            if is_named { assert_eq!(answer.status, 200, "{of}") } else { assert_later(&answer, of) }
        }
    }
}

#[test]
fn type_known_to_one_configuration_gets_503() {
    let other = || Some(name("other"));
    let before = GatewayTypes { unknown: other(), ..named_types(&[("other", None), ("gone", None)]) };
    let results = [(name("a.hits"), TypeRules::default())];
    let after =
        GatewayTypes { unknown: other(), results: results.into(), ..named_types(&[("other", None), ("new", None)]) };
    let fixture = Fixture::with(before.clone(), GatewayOptions::default());
    let begun = ["/ingest/event/new", "/ingest/batch/new", "/ingest/event/other"].map(|path| {
        let mut client = fixture.connect();
        client.send(head(path, 2));
        client.send("1");
        client
    });
    fixture.wait("the parts of the bodies have come", |counters| counters.bytes_in_flight() >= 3);
    fixture.gateway().control().narrow(&after, &before, &GatewayOptions::default());
    let status = |name: &str| fixture.post(&format!("/ingest/event/{name}"), "", "1").status;
    assert_eq!(["other", "x", "gone", "new", "a.hits"].map(status), [200, 200, 503, 503, 503]);
    fixture.gateway().control().configure(&after, &GatewayOptions::default());
    assert_eq!(["other", "x", "gone", "new", "a.hits"].map(status), [200, 200, 200, 200, 404]);
    for (mut client, expected) in begun.into_iter().zip([503, 503, 200]) {
        client.send("2");
        assert_eq!(client.answer().status, expected);
    }
}

#[test]
fn rejected_configuration_changes_nothing() {
    let before = named_types(&[("a", None), ("b", None)]);
    let after = named_types(&[("a", Some("/id")), ("c", None)]);
    let fixture = Fixture::with(before.clone(), GatewayOptions::default());
    let mut client = fixture.connect();
    client.send(head("/ingest/batch/a", 2));
    client.send("1");
    fixture.wait("a part of the body has come", |counters| counters.bytes_in_flight() >= 1);
    fixture.gateway().control().narrow(&after, &before, &GatewayOptions::default());
    let status = |name: &str| fixture.post(&format!("/ingest/event/{name}"), "", "1").status;
    assert_eq!(["a", "b", "c", "d"].map(status), [503, 503, 503, 404]);
    fixture.gateway().control().configure(&before, &GatewayOptions::default());
    assert_eq!(["a", "b", "c", "d"].map(status), [200, 200, 404, 404]);
    client.send("2");
    assert_eq!(client.answer().status, 200, "its rules hold");
}

/// A request that is there when the gateway stops is answered, also on a connection that waits for one.
#[test]
fn request_received_before_stop_is_answered() {
    for _ in 0..20 {
        let mut fixture = Fixture::open();
        let mut client = fixture.connect();
        client.post("/ingest/event", "", b"1");
        assert_eq!(client.answer().status, 200);
        client.post("/ingest/event", "", b"2");
        let gateway = fixture.take_gateway();
        assert!(gateway.stop(std::time::Instant::now() + std::time::Duration::from_secs(60)));
        assert_eq!(client.answer().status, 200);
        assert_eq!(fixture.payloads(), ["1", "2"]);
    }
}
