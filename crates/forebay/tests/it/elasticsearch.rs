//! The real program with an OpenSearch server, over Elasticsearch's protocol: from a request to a document, with both processes killed.

mod over_tls;
mod pipelines;

use std::path::Path;

use serde_json::Value;

use crate::support::{Folder, Server, exchange, forebay};
use testkit::opensearch::OpenSearch;
use testkit::proxy::Proxy;

const TEMPLATE: &str = r#"{
    "index_patterns": ["access-*"],
    "template": {
        "settings": {"number_of_shards": 1, "number_of_replicas": 0},
        "mappings": {"properties": {"@timestamp": {"type": "date"}, "number": {"type": "long"}}}
    }
}"#;

fn start(folder: &Folder, url: &str, settings: &str) -> Server {
    folder.write("access.json", TEMPLATE);
    let configuration = format!(
        "[types.\"*\"]\nroutes = [\"search\"]\n[sinks.search]\nkind = \"elasticsearch\"\nurl = \"{url}\"\n\
         template = \"access.json\"\n{settings}"
    );
    let configuration = folder.write("forebay.toml", configuration);
    Server::start_configured(&folder.data(), Path::new(&configuration), &folder.path("log"))
}

/// Posts an event whose key is its number.
fn post(server: &Server, number: usize) -> u16 {
    server.post_with_key(&format!("k{number}"), &format!("{{\"number\":\n{number}}}"))
}

/// The documents of all days, without their times.
fn documents(store: &OpenSearch) -> Vec<Value> {
    store.done("POST", "/access-*/_refresh", "");
    let found: Value = serde_json::from_str(&store.get("/access-*/_search?size=10000")).unwrap();
    let hits = found["hits"]["hits"].as_array().unwrap();
    let document = |hit: &Value| {
        let mut document = hit["_source"].clone();
        let time = document.as_object_mut().unwrap().remove("@timestamp").unwrap();
        assert_eq!(hit["_index"].as_str().unwrap(), format!("access-{}", &time.as_str().unwrap()[..10]));
        document
    };
    hits.iter().map(document).collect()
}

#[test]
fn acknowledged_events_are_stored_once_through_kills() {
    let Some(store) = OpenSearch::start() else { return };
    let proxy = Proxy::to(store.address());
    let url = format!("http://{}", proxy.address());
    let folder = Folder::new();
    let mut server = start(&folder, &url, "request_bytes = \"16KiB\"\n");
    let mut number = 0;
    for _ in 0..2 {
        for _ in 0..200 {
            assert_eq!(post(&server, number), 200);
            number += 1;
        }
        // Events in flight now are stored or not: their outcome is unknown.
        store.kill();
        for _ in 0..10 {
            assert_eq!(post(&server, number), 200, "events are accepted while the store is down");
            number += 1;
        }
        drop(server);
        store.run();
        server = start(&folder, &url, "");
        // Some are resent, as by a client that got no answer.
        for again in (0..number).step_by(7) {
            assert_eq!(post(&server, again), 200);
        }
    }
    server.wait_delivered();
    let mut numbers: Vec<u64> = documents(&store).iter().map(|document| document["number"].as_u64().unwrap()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..number as u64).collect::<Vec<_>>());
    assert_eq!(server.metric("forebay_events_stored_total{"), number as u64);
    assert_eq!(server.metric("forebay_events_dead_total{"), 0);
    let log = std::fs::read_to_string(folder.path("log")).unwrap();
    assert!(!log.contains("panicked"), "{log}");

    // A document that the store rejects is a dead letter; an event that it always rejects is rejected before the 200.
    let body = "{\"number\": \"none\"}\n{\"number\": 100000}\n{\"number\": 1, \"number\": 2}\n";
    let (status, answer) = server.post("/ingest/batch/access", body);
    assert!(status == 207 && answer.contains("\"line\":3"), "{status} {answer}");
    server.wait_delivered();
    assert_eq!(server.metric("forebay_events_dead_total{"), 1);
    assert_eq!(documents(&store).len(), number + 1);
    let mut list = forebay();
    let list = list.args(["dead", "list", "--admin", &server.admin.to_string(), "--data"]).arg(folder.data());
    let listed = String::from_utf8(list.output().unwrap().stdout).unwrap();
    assert!(listed.contains("failed to parse field [number]"), "{listed}");
}

const ENVELOPES: &str = r#"{
    "index_patterns": ["access-*"],
    "template": {
        "settings": {"number_of_shards": 1, "number_of_replicas": 0},
        "mappings": {"dynamic": false, "properties": {
            "@timestamp": {"type": "date"}, "id": {"type": "keyword"}, "type": {"type": "keyword"},
            "received_at": {"type": "keyword"}
        }}
    }
}"#;

fn get(server: &Server, target: &str) -> (u16, String) {
    exchange(server.intake, &format!("GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"))
}

/// The numbers in the payloads of an answer, in its order.
fn numbers(answer: &str) -> Vec<u64> {
    let page: Value = serde_json::from_str(answer).unwrap();
    page["events"].as_array().unwrap().iter().map(|event| event["payload"]["number"].as_u64().unwrap()).collect()
}

#[test]
fn stored_events_are_readable_and_others_pending() {
    let Some(store) = OpenSearch::start() else { return };
    let folder = Folder::new();
    store.done("PUT", "/_index_template/access", ENVELOPES);
    let server = start(&folder, &format!("http://{}", store.address()), "envelope = true\ntimeout = \"5s\"\n");
    let (status, nothing) = get(&server, "/events");
    assert!(status == 200 && numbers(&nothing).is_empty(), "{status} {nothing}");
    for number in 0..25 {
        assert_eq!(post(&server, number), 200);
    }
    server.wait_delivered();
    let (status, first) = get(&server, "/events?type=access&limit=10");
    assert_eq!((status, numbers(&first)), (200, (0..10).collect()), "{first}");
    let next = serde_json::from_str::<Value>(&first).unwrap()["next"].as_str().unwrap().to_owned();
    assert_eq!(post(&server, 25), 200);
    server.wait_delivered();
    let (_, rest) = get(&server, &format!("/events?type=access&limit=1000&cursor={next}"));
    assert_eq!(numbers(&rest), (10..26).collect::<Vec<_>>(), "{rest}");
    let (_, one) = get(&server, "/events?type=access&key=k7");
    assert_eq!(numbers(&one), [7]);
    let id = serde_json::from_str::<Value>(&one).unwrap()["events"][0]["id"].as_str().unwrap().to_owned();
    let (status, event) = get(&server, &format!("/events/{id}"));
    assert!(status == 200 && event.contains("{\"number\": 7}"), "{status} {event}");
    assert_eq!(get(&server, "/events/80000000-0000-0000-0000-000000000000").0, 404);
    store.kill();
    assert_eq!(get(&server, &format!("/events/{id}")).0, 503, "the outcome is unknown");
    assert_eq!(post(&server, 26), 200);
    store.run();
    server.wait_delivered();
    let (status, event) = get(&server, "/events?type=access&key=k26");
    assert_eq!((status, numbers(&event)), (200, vec![26]), "{event}");
}
