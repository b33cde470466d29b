//! Traces: the context that a sender names reaches a webhook, also through a writer, and the spans of sampled requests reach a collector.

use std::path::Path;

use otlp::Message;
use otlp::attributes::AttributeValue;
use otlp::trace::{CLIENT, ExportTraces, INTERNAL, SERVER, SpanMessage};
use testkit::mock_server::MockServer;

use crate::support::{Folder, Server, exchange, wait_until};
use crate::two_services::{BackEnd, gateway};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SENDER: &str = "00f067aa0ba902b7";

fn post(server: &Server, traceparent: &str) {
    let body = "{\"n\":1}";
    let head =
        format!("Host: localhost\r\nConnection: close\r\ntraceparent: {traceparent}\r\nContent-Length: 7\r\n\r\n");
    let (status, answer) = exchange(server.intake, &format!("POST /ingest/event/access HTTP/1.1\r\n{head}{body}"));
    assert_eq!(status, 200, "{answer}");
}

fn accepting() -> MockServer {
    MockServer::start(|_| (200, Vec::new(), Vec::new()))
}

/// A collector, and the table that names it.
fn collector(more: &str) -> (MockServer, String) {
    let collector = accepting();
    let table = format!("[otlp]\nurl = \"http://{}\"\ninterval = \"1h\"\n{more}", collector.address);
    (collector, table)
}

fn hook(receiver: &MockServer) -> String {
    format!("[sinks.hook]\nkind = \"webhook\"\nurl = \"http://{}/\"\n", receiver.address)
}

/// The spans that a collector got, with the role of their process.
fn spans(collector: &MockServer) -> Vec<(String, SpanMessage)> {
    let traces = collector.asked().into_iter().filter(|asked| asked.path == "/v1/traces");
    let resources = traces.flat_map(|asked| ExportTraces::decode(&*asked.body).unwrap().resource_spans);
    let of_resource = |resource: otlp::trace::ResourceSpans| {
        let role = resource.resource.unwrap().attributes.into_iter().find(|one| one.key == "forebay.role").unwrap();
        let Some(AttributeValue::String(role)) = role.value.unwrap().value else { panic!("a text") };
        resource.scope_spans.into_iter().flat_map(|scope| scope.spans).map(move |span| (role.clone(), span))
    };
    resources.flat_map(of_resource).collect()
}

fn headers(receiver: &MockServer) -> Vec<Option<String>> {
    receiver.asked().iter().map(|asked| asked.header("traceparent").map(str::to_owned)).collect()
}

#[test]
fn context_reaches_a_webhook_unchanged_without_a_collector() {
    let (folder, receiver) = (Folder::new(), accepting());
    let configuration = format!("[types.\"*\"]\nroutes = [\"hook\"]\n{}", hook(&receiver));
    let configuration = folder.write("forebay.toml", configuration);
    let server = Server::start_configured(&folder.data(), Path::new(&configuration), &folder.path("log"));
    let valid = format!("00-{TRACE}-{SENDER}-00");
    post(&server, &valid);
    server.wait_delivered();
    // The standard ignores an invalid one, and two.
    post(&server, &valid.to_uppercase());
    post(&server, &format!("{valid}\r\ntraceparent: {valid}"));
    server.wait_delivered();
    assert_eq!(headers(&receiver), [Some(valid), None, None]);
}

#[test]
fn sampled_request_has_spans_through_the_writer() {
    let (folder, receiver, (collector, table)) = (Folder::new(), accepting(), collector(""));
    let configuration = folder.write("writer.toml", format!("{table}{}", hook(&receiver)));
    let writer = BackEnd::start_on(&folder.path("writer"), "127.0.0.1:0", &["--config", &configuration]);
    let sinks = "[types.\"*\"]\nroutes = [\"hook\"]\n[sinks.hook]\nkind = \"writer\"\nupstream = \"back\"\nstore = \"webhook\"\n";
    let upstream = format!("[upstreams.back]\nservers = [\"{}\"]\n", writer.url());
    let configuration = folder.write("forebay.toml", format!("{table}{sinks}{upstream}"));
    let server = gateway(&folder.data(), &["--config", &configuration], &folder.path("log"));
    post(&server, &format!("00-{TRACE}-{SENDER}-00"));
    post(&server, &format!("00-{TRACE}-{SENDER}-01"));
    server.wait_delivered();
    assert!(wait_until(|| spans(&collector).len() >= 5), "{:?}", spans(&collector));
    let all = spans(&collector);
    let of = |role: &str, name: &str| {
        let mut found = all.iter().filter(|(of, span)| of == role && span.name == name).map(|(_, span)| span);
        let span = found.next().unwrap_or_else(|| panic!("no {name} of {role} in {all:?}"));
        assert!(found.next().is_none(), "one request is sampled: {all:?}");
        assert_eq!(span.trace_id, text(TRACE));
        assert!(span.start_time_unix_nano <= span.end_time_unix_nano && span.start_time_unix_nano > 1 << 60);
        span
    };
    let request = of("gateway", "POST /ingest/event");
    assert_eq!((&request.parent_span_id, request.kind), (&text(SENDER), SERVER));
    for (role, name, kind) in [
        ("gateway", "ingest", INTERNAL),
        ("gateway", "commit", INTERNAL),
        ("gateway", "write hook", CLIENT),
        ("writer", "write hook", CLIENT),
    ] {
        let span = of(role, name);
        assert_eq!((&span.parent_span_id, span.kind), (&request.span_id, kind), "{role} {name}");
        assert!(span.span_id != request.span_id && span.span_id.len() == 8);
    }
    let own = text::hex::encode(&request.span_id);
    let sent = [format!("00-{TRACE}-{SENDER}-00"), format!("00-{TRACE}-{own}-01")];
    assert_eq!(headers(&receiver), sent.map(Some));
}

fn text(hex: &str) -> Vec<u8> {
    text::hex::decode(hex).unwrap()
}

#[test]
fn one_in_n_posts_is_sampled_and_unsampled_ones_have_no_span() {
    let (folder, (collector, table)) = (Folder::new(), collector("sample = 5\n"));
    let configuration = folder.write("forebay.toml", table);
    let server = Server::start_configured(&folder.data(), Path::new(&configuration), &folder.path("log"));
    (0..20).for_each(|number| assert_eq!(server.post("/ingest/event/access", &format!("{{\"n\":{number}}}")).0, 200));
    server.wait_delivered();
    let requests = || {
        let requests = spans(&collector).into_iter().map(|(_, span)| span).filter(|span| span.kind == SERVER);
        requests.collect::<Vec<_>>()
    };
    assert!(wait_until(|| requests().len() == 4), "{}", requests().len());
    assert!(requests().iter().all(|span| span.parent_span_id.is_empty() && span.trace_id.len() == 16));
}
