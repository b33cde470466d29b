//! The same in the stores that are servers.

use serde_json::Value;

use super::{EVENTS, Fate, Fates, TAKES_ALL, each_meets_its_fate, payloads_of_lines};
use crate::support::{Folder, Server};
use testkit::opensearch::OpenSearch;
use testkit::postgres::PostgresServer;
use testkit::proxy::Proxy;
use testkit::redis::RedisServer;
use testkit::swift::{KEY, SwiftServer, USER};

/// Two of its types of payload, each in a table with a constraint.
fn in_postgres(payload_type: &str, rule: &str, fates: &Fates) {
    let Some(postgres) = PostgresServer::shared() else { return };
    let table = format!(
        "create table events (id uuid primary key, type text, source text, received_at timestamptz,
         payload {payload_type} check ({rule}))"
    );
    postgres.psql(&table);
    let sink = format!("kind = \"postgres\"\nurl = \"{}\"\npayload_type = \"{payload_type}\"", postgres.url());
    each_meets_its_fate(&Folder::new(), &sink, fates, || {
        postgres.psql("select payload from events").lines().map(str::to_owned).collect()
    });
}

#[test]
fn in_postgres_as_jsonb() {
    let fates = Fates { bad: Fate::Dead("check constraint"), zero: Fate::Refused("unstorable"), ..TAKES_ALL };
    in_postgres("jsonb", "payload->>'n' <> 'bad'", &fates);
}

#[test]
fn in_postgres_as_text() {
    let fates = Fates { bad: Fate::Dead("check constraint"), ..TAKES_ALL };
    in_postgres("text", "payload not like '%bad%'", &fates);
}

#[test]
fn in_a_stream_of_redis() {
    let Some(redis) = RedisServer::start() else { return };
    let proxy = Proxy::start(&redis.socket());
    let sink = format!("kind = \"redis\"\nurl = \"redis://{}\"\nmode = \"stream\"\nkey = \"events\"", proxy.address());
    each_meets_its_fate(&Folder::new(), &sink, &TAKES_ALL, || {
        let entries = redis.ask(&["XRANGE", "events", "-", "+"]).list();
        entries.into_iter().map(|entry| entry.list().remove(1).list().remove(3).text()).collect()
    });
}

#[test]
fn redis_counter_skips_only_the_non_number() {
    let Some(redis) = RedisServer::start() else { return };
    let proxy = Proxy::start(&redis.socket());
    let folder = Folder::new();
    let sink = format!("kind = \"redis\"\nurl = \"redis://{}\"\nmode = \"counter\"", proxy.address());
    let rules = "key = \"sums\"\nfield = \"/k\"\nby = \"/n\"";
    let text = format!("[types.\"*\"]\nroutes = [\"store\"]\n[sinks.store]\n{sink}\n{rules}\n");
    let configuration = folder.write("forebay.toml", text);
    let server = Server::start_configured(&folder.data(), configuration.as_ref(), &folder.path("log"));
    let line = |number| if number == 500 { "{\"k\":1,\"n\":\"bad\"}\n" } else { "{\"k\":1,\"n\":2}\n" };
    let body: String = (0..EVENTS).map(line).collect();
    assert_eq!(server.post("/ingest/batch/counted", &body).0, 200);
    server.wait_delivered();
    assert_eq!(server.metric("forebay_events_dead_total{"), 1);
    assert_eq!(redis.ask(&["HGET", "sums", "1"]).text(), (2 * (EVENTS - 1)).to_string());
}

#[test]
fn in_documents_of_opensearch() {
    let Some(store) = OpenSearch::shared() else { return };
    let folder = Folder::new();
    let template = r#"{"index_patterns": ["hard-*"], "template": {"settings": {"number_of_replicas": 0},
                       "mappings": {"properties": {"n": {"type": "long"}}}}}"#;
    folder.write("hard.json", template);
    let place = store.address();
    let sink = format!(
        "kind = \"elasticsearch\"\nurl = \"http://{place}\"\nindex = \"hard-{{type}}\"\ntemplate = \"hard.json\""
    );
    let fates = Fates {
        bad: Fate::Dead("failed to parse field [n]"),
        fields: Fate::Dead("Limit of total fields [1000]"),
        digits: Fate::Dead("out of range of long"),
        ..TAKES_ALL
    };
    each_meets_its_fate(&folder, &sink, &fates, || documents(store));
}

/// The documents of all indices as sent, without the time that the sink puts before their members.
fn documents(store: &OpenSearch) -> Vec<String> {
    store.done("POST", "/hard-*/_refresh", "");
    let found: Value = serde_json::from_str(&store.get("/hard-*/_search?size=10000&_source=false")).unwrap();
    let source = |hit: &Value| {
        let path = format!("/{}/_source/{}", hit["_index"].as_str().unwrap(), hit["_id"].as_str().unwrap());
        let source = store.get(&path);
        let (time, members) = source.split_once(',').unwrap();
        assert!(time.starts_with("{\"@timestamp\":\""), "{time}");
        format!("{{{members}")
    };
    found["hits"]["hits"].as_array().unwrap().iter().map(source).collect()
}

#[test]
fn in_objects_of_swift() {
    let Some(swift) = SwiftServer::shared() else { return };
    let place = swift.address();
    let sink = format!(
        "kind = \"swift\"\nauth = \"http://{place}/auth/v1.0\"\nuser = \"{USER}\"\nkey = \"{KEY}\"\n\
         container = \"hard-swift\"\nobject = \"\"\nmax_age = \"1s\""
    );
    in_objects(swift, "hard-swift", &sink);
}

#[test]
fn in_objects_of_s3() {
    let Some(swift) = SwiftServer::shared() else { return };
    let place = swift.address();
    let sink = format!(
        "kind = \"s3\"\nurl = \"http://{place}\"\naccess_key = \"{USER}\"\nsecret_key = \"{KEY}\"\nbucket = \"hard-s3\"\n\
         object = \"\"\nmax_age = \"1s\""
    );
    in_objects(swift, "hard-s3", &sink);
}

fn in_objects(swift: &SwiftServer, container: &str, sink: &str) {
    each_meets_its_fate(&Folder::new(), sink, &TAKES_ALL, || {
        let client = swift.client();
        let names = client.list(container).into_iter().filter(|name| !name.ends_with(".manifest.json"));
        let text = |name: String| String::from_utf8(client.get(container, &name).unwrap()).unwrap();
        names.flat_map(|name| payloads_of_lines(&text(name))).collect()
    });
}
