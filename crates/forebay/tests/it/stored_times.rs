//! The times from receipt to storage: each stored event is counted once, for stores of records and of objects.

use crate::support::{Folder, Server};

const STORE: &str = "create table events (id blob not null unique, type text, source text, received_at integer, payload text);
    create trigger refuse before insert on events when new.payload like '%bad%' begin select raise(abort, 'no bad ones'); end";

#[test]
fn each_stored_event_has_one_time() {
    let folder = Folder::new();
    std::fs::create_dir(folder.data()).unwrap();
    rusqlite::Connection::open(folder.data().join("events.db")).unwrap().execute_batch(STORE).unwrap();
    let archive = folder.text("archive");
    let configuration = format!(
        "[types.\"*\"]\nroutes = [\"local\", \"archive\"]\n[sinks.local]\nkind = \"sqlite\"\n[sinks.archive]\n\
         kind = \"directory\"\npath = \"{archive}\"\nmax_age = \"1s\"\n"
    );
    folder.write("forebay.toml", configuration);
    let (config, log) = (folder.path("forebay.toml"), folder.path("log"));
    let server = Server::start_configured(&folder.data(), &config, &log);
    for (type_name, bodies) in [("access", ["1", "2", "3", "4"]), ("orders", ["5", "\"bad\"", "6", "7"])] {
        for body in bodies {
            assert_eq!(server.post(&format!("/ingest/event/{type_name}"), body).0, 200);
        }
        let batch = format!("{}\n\"bad\"\n{}\n", bodies[0], bodies[3]);
        assert_eq!(server.post(&format!("/ingest/batch/{type_name}"), &batch).0, 200);
    }
    server.wait_delivered();
    let counts = |type_name: &str, sink: &str| {
        let labels = format!("{{type=\"{type_name}\",sink=\"{sink}\"}}");
        let metrics = server.metrics();
        let value = |name: &str| {
            let line = metrics.lines().find(|line| line.starts_with(&format!("{name}{labels} ")));
            line.unwrap_or_else(|| panic!("no {name}{labels} in {metrics}")).rsplit(' ').next().unwrap().to_owned()
        };
        let seconds: f64 = value("forebay_event_stored_seconds_sum").parse().unwrap();
        let pair = ["forebay_event_stored_seconds_count", "forebay_events_stored_total"].map(value);
        (pair.map(|count| count.parse::<u64>().unwrap()), seconds)
    };
    assert_eq!(counts("access", "local").0, [6, 6]);
    assert_eq!(counts("orders", "local").0, [5, 5], "dead letters aren't stored");
    let (archived, seconds) = counts("orders", "archive");
    assert_eq!(archived, [7, 7]);
    assert!(seconds > 1.0, "objects gather events for a second: {seconds}");
    let local = counts("access", "local").1;
    assert!(local > 0.0 && local < 600.0, "{local}");
    assert!(!server.metrics().contains("forebay_shard_turn_seconds_count{shard=\"0\"} 0\n"));
}
