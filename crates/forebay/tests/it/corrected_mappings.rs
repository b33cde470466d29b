//! A thousand dead letters because of a wrong mapping of the store: the mapping is corrected, and a replay with a filter stores the dead letters
//! that it selects, each once and under its id, and leaves the others.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::support::{Folder, Server, forebay};
use testkit::opensearch::OpenSearch;
use testkit::postgres::PostgresServer;

const EVENTS: usize = 1_000;
/// Those whose kind is `even`, which are replayed first.
const CHOSEN: usize = EVENTS / 2;
const TYPE: &str = "access";
const SINK: &str = "store";

/// A server with one sink.
struct Fixture {
    /// Killed before its directory is removed.
    server: Server,
    folder: Folder,
}

impl Fixture {
    fn new(folder: Folder, sink: &str) -> Self {
        let configuration = format!("[types.\"*\"]\nroutes = [\"{SINK}\"]\n[sinks.{SINK}]\n{sink}\n");
        let configuration = folder.write("forebay.toml", configuration);
        let server = Server::start_configured(&folder.data(), Path::new(&configuration), &folder.path("log"));
        Self { server, folder }
    }

    fn dead(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let mut command = forebay();
        command.arg("dead").args(arguments).args(["--admin", &self.server.admin.to_string(), "--data"]);
        let output = command.arg(self.folder.data()).output().unwrap();
        (output.status.code(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
    }

    /// The ids of the dead letters, with the number in each payload.
    fn letters(&self) -> BTreeMap<String, i64> {
        let (code, text) = self.dead(&["list", "--limit", "10000", "--json"]);
        assert_eq!(code, Some(0), "{text}");
        let ids =
            text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].as_str().unwrap().to_owned());
        ids.map(|id| (id.clone(), self.number_of(&id))).collect()
    }

    fn number_of(&self, id: &str) -> i64 {
        let request =
            format!("GET /api/dead/{id} HTTP/1.1\r\nHost: {0}\r\nConnection: close\r\n\r\n", self.server.admin);
        let (status, body) = crate::support::exchange(self.server.admin, &request);
        assert_eq!(status, 200, "{body}");
        let answer: Value = serde_json::from_str(&body).unwrap();
        answer["letters"][0]["payload"]["number"].as_i64().unwrap_or_else(|| panic!("{body}"))
    }

    /// Posts the events, which the store rejects with this message, and returns the id of each.
    fn refused(&self, words: &str) -> BTreeMap<String, i64> {
        let line = |number: usize| {
            let kind = if number.is_multiple_of(2) { "even" } else { "odd" };
            format!("{{\"number\": {number}, \"kind\": \"{kind}\", \"status\": \"late {number}\"}}\n")
        };
        let body: String = (0..EVENTS).map(line).collect();
        assert_eq!(self.server.post(&format!("/ingest/batch/{TYPE}"), &body).0, 200);
        self.server.wait_delivered();
        assert_eq!(self.count("dead_total"), EVENTS as u64);
        let (_, listed) = self.dead(&["list", "--limit", "10000", "--reason", words]);
        assert_eq!(listed.lines().count(), 1 + EVENTS, "{listed:.1000}");
        // Replayed before the mapping was corrected.
        let summary = format!("{SINK}: 0 stored, 1 rejected again, 0 dropped, 0 left for later\n");
        assert_eq!(self.dead(&["replay", "--limit", "1"]), (Some(1), summary));
        let letters = self.letters();
        assert_eq!(letters.len(), EVENTS);
        letters
    }

    fn count(&self, name: &str) -> u64 {
        self.server.metric(&format!("forebay_events_{name}{{type=\"{TYPE}\",sink=\"{SINK}\""))
    }

    /// Replays half of them with a filter, again, and then the rest; after each the `stored` payloads are the expected ones.
    fn replay_by_halves(&self, letters: &BTreeMap<String, i64>, stored: impl Fn() -> Vec<(String, i64)>) {
        let expect = |is_there: &dyn Fn(i64) -> bool| {
            let mut found = stored();
            found.sort();
            let expected: Vec<_> = letters.iter().filter(|(_, number)| is_there(**number)).collect();
            let expected: Vec<(String, i64)> = expected.into_iter().map(|(id, number)| (id.clone(), *number)).collect();
            assert_eq!(found.len(), expected.len());
            assert_eq!(found, expected);
        };
        let chosen = ["replay", "--sink", SINK, "--where", "kind == \"even\""];
        for replayed in [CHOSEN, 0] {
            let summary = format!("{SINK}: {replayed} stored, 0 rejected again, 0 dropped, 0 left for later\n");
            assert_eq!(self.dead(&chosen), (Some(0), summary));
            expect(&|number| number % 2 == 0);
            assert_eq!((self.count("stored_total"), self.count("dead_total")), (CHOSEN as u64, CHOSEN as u64));
        }
        let (code, summary) = self.dead(&["replay", "--type", TYPE]);
        assert!(code == Some(0) && summary.starts_with(&format!("{SINK}: {CHOSEN} stored, 0 rejected")), "{summary}");
        expect(&|_| true);
        assert_eq!((self.count("stored_total"), self.count("dead_total")), (EVENTS as u64, 0));
        assert_eq!(self.dead(&["list"]), (Some(0), "no dead letters\n".to_owned()));
        // Later events are stored immediately.
        assert_eq!(
            self.server.post(&format!("/ingest/event/{TYPE}"), "{\"number\": -1, \"status\": \"late -1\"}").0,
            200
        );
        self.server.wait_delivered();
        assert_eq!(stored().len(), EVENTS + 1);
    }
}

#[test]
fn rows_are_stored_after_column_type_correction() {
    let Some(postgres) = PostgresServer::shared() else { return };
    postgres.psql(
        "create table events (id uuid primary key, received_at timestamptz, number integer, status integer, payload jsonb)",
    );
    let columns = "columns = { number = \"/number\", status = \"/status\" }\npayload = true";
    let fixture = Fixture::new(Folder::new(), &format!("kind = \"postgres\"\nurl = \"{}\"\n{columns}", postgres.url()));
    let letters = fixture.refused("column status is integer");
    postgres.psql("alter table events alter column status type text using status::text");
    fixture.replay_by_halves(&letters, || {
        let rows = postgres.psql("select id, number from events where status = 'late ' || number");
        let row = |line: &str| line.split_once('|').map(|(id, number)| (id.to_owned(), number.parse().unwrap()));
        rows.lines().map(|line| row(line).unwrap()).collect()
    });
}

#[test]
fn documents_are_stored_after_mapping_correction() {
    let Some(store) = OpenSearch::shared() else { return };
    let index = |status: &str| {
        let fields = format!(
            r#"{{"number": {{"type": "long"}}, "kind": {{"type": "keyword"}}, "status": {{"type": "{status}"}}}}"#
        );
        let settings = r#"{"number_of_shards": 1, "number_of_replicas": 0}"#;
        store.done("PUT", "/mapped", &format!(r#"{{"settings": {settings}, "mappings": {{"properties": {fields}}}}}"#));
    };
    index("integer");
    let sink = format!("kind = \"elasticsearch\"\nurl = \"http://{}\"\nindex = \"mapped\"", store.address());
    let fixture = Fixture::new(Folder::new(), &sink);
    let letters = fixture.refused("failed to parse field [status]");
    // A field keeps its type for as long as its index is there.
    store.done("DELETE", "/mapped", "");
    index("keyword");
    fixture.replay_by_halves(&letters, || {
        store.done("POST", "/mapped/_refresh", "");
        let found: Value = serde_json::from_str(&store.get("/mapped/_search?size=10000")).unwrap();
        let document = |hit: &Value| {
            let number = hit["_source"]["number"].as_i64().unwrap();
            assert_eq!(hit["_source"]["status"], format!("late {number}"));
            (hit["_id"].as_str().unwrap().to_owned(), number)
        };
        found["hits"]["hits"].as_array().unwrap().iter().map(document).collect()
    });
}
