//! Events in the log are selected by their fields, as docs/reference/logs.md shows: all events of one sink, lane, shard, type or writer, and no others.

use std::collections::BTreeSet;
use std::fs::{File, read_to_string};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::{Folder, Server, exchange, forebay, wait_until};
use crate::two_services::BackEnd;
use testkit::ports::free_address;

/// A gateway with two shards and two sinks, `search-a` and `search-b`: one for each writer of its upstream. Its log is JSON.
struct Site {
    server: Server,
    urls: [String; 2],
    listen: [String; 2],
    folder: Folder,
}

impl Site {
    fn start() -> Self {
        let folder = Folder::new();
        let listen = [free_address(), free_address()].map(|address| address.to_string());
        let urls = listen.each_ref().map(|address| format!("http://{address}"));
        folder.write("orders.json", r#"{"required": ["number"]}"#);
        folder.write("writer.toml", "[sinks.search]\nkind = \"sqlite\"\n");
        let config = folder.write("gateway.toml", Self::text(&urls, "info"));
        let mut command = forebay();
        command.args(["gateway", "--config", &config]).stderr(File::create(folder.path("log")).unwrap());
        let server = Server::start_at(command, &folder.data(), [free_address(), free_address()]);
        Self { server, urls, listen, folder }
    }

    fn text([a, b]: &[String; 2], level: &str) -> String {
        format!(
            "[log]\nformat = \"json\"\nlevel = \"{level}\"\n[gateway]\nshards = 2\n\
             [upstreams.back]\nmode = \"all\"\nservers = {{ a = \"{a}\", b = \"{b}\" }}\n\
             [sinks.search]\nkind = \"writer\"\nupstream = \"back\"\nstore = \"sqlite\"\n\
             [types.orders]\nroutes = [\"search\"]\nschema = \"orders.json\"\n[types.\"*\"]\nroutes = [\"search\"]\n"
        )
    }

    /// Reloads with this level.
    fn reload(&self, level: &str) {
        self.folder.write("gateway.toml", Self::text(&self.urls, level));
        let admin = self.server.admin;
        let request = format!("POST /api/reload HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\n\r\n");
        assert_eq!(exchange(admin, &request).0, 200);
    }

    fn writer(&self, at: usize) -> BackEnd {
        let config = self.folder.text("writer.toml");
        BackEnd::start_on(&self.folder.path(["a", "b"][at]), &self.listen[at], &["--config", &config])
    }

    fn log(&self) -> Vec<String> {
        let text = read_to_string(self.folder.path("log")).unwrap();
        // The last line may not be complete yet.
        text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')).map(str::to_owned).collect()
    }

    /// Waits until there are this many events with this message and this value of a field.
    fn wait(&self, count: usize, message: &str, field: &str, value: &str) {
        let is_it = |line: &String| {
            let event = event(line);
            event[field] == value && event["message"].as_str().unwrap().starts_with(message)
        };
        let found = wait_until(|| self.log().iter().filter(|line| is_it(line)).count() >= count);
        assert!(found, "{count} {message} {field}={value}: {:#?}", self.log());
    }
}

fn event(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

/// Rejects one of the orders permanently.
fn reject_in_store(data: &Path) {
    std::fs::create_dir(data).unwrap();
    let store = rusqlite::Connection::open(data.join("events.db")).unwrap();
    let table =
        "create table events (id blob not null unique, type text, source text, received_at integer, payload text)";
    let reject = "create trigger reject before insert on events when new.payload like '%13%' begin select raise(abort, 'no'); end";
    store.execute_batch(&format!("{table}; {reject}")).unwrap();
}

const LANES: [&str; 4] = ["0/search-a", "1/search-a", "0/search-b", "1/search-b"];

/// Runs a gateway through outages of both writers, a dead letter, rejections, and reloads that change the level. Returns the lines of
/// its log, and how often each writer was ejected, as the metrics say.
fn eventful_run() -> (Site, Vec<String>, [u64; 2]) {
    let site = Site::start();
    reject_in_store(&site.folder.path("a"));
    LANES.iter().for_each(|lane| site.wait(1, "lane waits", "lane", lane));
    site.urls.iter().for_each(|url| site.wait(1, "writer ejected", "server", url));
    let a = site.writer(0);
    let b = site.writer(1);
    LANES.iter().for_each(|lane| site.wait(1, "lane delivers again", "lane", lane));
    site.urls.iter().for_each(|url| site.wait(1, "writer available again", "server", url));
    for number in 10..20 {
        assert_eq!(site.server.post("/ingest/event/orders", &format!("{{\"number\": {number}}}")).0, 200);
    }
    assert_eq!(site.server.post("/ingest/event/orders", "{}").0, 422);
    site.server.wait_delivered();
    site.wait(1, "1 new dead letter", "sink", "search-a");
    site.wait(1, "rejected", "type", "orders");
    site.reload("warning");
    drop(b);
    site.wait(2, "writer ejected", "server", &site.urls[1]);
    site.reload("info");
    let _b = site.writer(1);
    site.wait(2, "writer available again", "server", &site.urls[1]);
    drop(a);
    site.wait(2, "writer ejected", "server", &site.urls[0]);
    let ejections = site.urls.each_ref().map(|url| {
        site.server.metric(&format!("forebay_upstream_ejections_total{{upstream=\"back\",server=\"{url}\"}}"))
    });
    site.server.signal("-TERM");
    let mut lines = Vec::new();
    assert!(wait_until(|| {
        lines = site.log();
        lines.last().is_some_and(|line| line.contains("\"stopped\""))
    }));
    (site, lines, ejections)
}

/// A selection of docs/reference/logs.md, and which lines it must select, by their texts.
struct Selection<'a> {
    filter: String,
    selects: Box<dyn Fn(&Value) -> bool + 'a>,
    concerns: Box<dyn Fn(&str) -> bool + 'a>,
}

fn selections(url: &str) -> Vec<Selection<'_>> {
    // The startup message names everything.
    let names = |line: &str, name: &str| line.contains(name) && !line.contains("accepts events on");
    let selection = |filter: &str, selects: Box<dyn Fn(&Value) -> bool>, concerns: Box<dyn Fn(&str) -> bool>| {
        Selection { filter: filter.to_owned(), selects, concerns }
    };
    vec![
        selection(
            r#"select(.sink == "search-a")"#,
            Box::new(|event| event["sink"] == "search-a"),
            Box::new(move |line| names(line, "search-a")),
        ),
        selection(
            r#"select(.lane == "0/search-a")"#,
            Box::new(|event| event["lane"] == "0/search-a"),
            Box::new(move |line| names(line, "0/search-a")),
        ),
        selection(
            "select(.shard == 0)",
            Box::new(|event| event["shard"] == 0),
            Box::new(move |line| names(line, "0/search-")),
        ),
        selection(
            r#"select(.type == "orders")"#,
            Box::new(|event| event["type"] == "orders"),
            Box::new(move |line| names(line, "orders")),
        ),
        Selection {
            filter: format!(r#"select(.upstream == "back" and .server == "{url}")"#),
            selects: Box::new(move |event| event["upstream"] == "back" && event["server"] == url),
            concerns: Box::new(move |line| names(line, url) && line.contains("\"message\":\"writer ")),
        },
        Selection {
            filter: format!(r#"select(.lane and (.reason // "" | contains("{url}")))"#),
            selects: Box::new(move |event| {
                event["lane"].is_string() && event["reason"].as_str().is_some_and(|reason| reason.contains(url))
            }),
            concerns: Box::new(move |line| names(line, url) && line.contains("\"message\":\"lane ")),
        },
        selection(
            r#"select(.level != "info")"#,
            Box::new(|event| event["level"] != "info"),
            Box::new(|line| line.contains("\"level\":\"warning\"") || line.contains("\"level\":\"error\"")),
        ),
    ]
}

/// The filters that docs/reference/logs.md runs on a file, for this test's names.
fn documented(url: &str) -> BTreeSet<String> {
    let page = read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/logs.md")).unwrap();
    let page = page.replace("search\"", "search-a\"").replace("http://w1:8081", url);
    let filters = page.lines().filter_map(|line| line.strip_prefix("jq -c '")?.split('\'').next());
    filters.map(str::to_owned).collect()
}

fn by_jq(filter: &str, log: &Path) -> Option<Vec<String>> {
    let Ok(output) = Command::new("jq").args(["-c", filter]).arg(log).output() else {
        testkit::skipped::report("jq isn't installed");
        return None;
    };
    assert!(output.status.success(), "{output:?}");
    Some(String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect())
}

#[test]
fn fields_select_the_events_of_a_subject() {
    let (site, lines, ejections) = eventful_run();
    let events: Vec<Value> = lines.iter().map(|line| event(line)).collect();
    for (url, ejections) in site.urls.iter().zip(ejections) {
        let all = selections(url);
        assert_eq!(all.iter().map(|selection| selection.filter.clone()).collect::<BTreeSet<_>>(), documented(url));
        for Selection { filter, selects, concerns } in all {
            let expected: Vec<&String> = lines.iter().filter(|line| concerns(line)).collect();
            let found: Vec<&String> =
                lines.iter().zip(&events).filter(|(_, event)| selects(event)).map(|(line, _)| line).collect();
            assert!(!expected.is_empty(), "{filter}: {lines:#?}");
            assert_eq!(found, expected, "{filter}");
            if let Some(by_jq) = by_jq(&filter, &site.folder.path("log")) {
                assert_eq!(by_jq.iter().collect::<Vec<_>>(), expected, "{filter}");
            }
        }
        let is_ejection = |event: &&Value| {
            event["server"] == **url && event["message"].as_str().unwrap().starts_with("writer ejected")
        };
        assert_eq!(events.iter().filter(is_ejection).count() as u64, ejections, "{url}: {lines:#?}");
    }
    for lane in LANES {
        let (shard, sink) = lane.split_once('/').unwrap();
        let of_lane = events.iter().filter(|event| event["lane"] == lane);
        for event in of_lane {
            assert_eq!((event["shard"].to_string().as_str(), event["sink"].as_str()), (shard, Some(sink)));
        }
    }
    // A reload to `warning` is in use before its own end is logged, and one to `info` begins without a line.
    let count = |message: &str| events.iter().filter(|event| event["message"] == message).count();
    assert_eq!((count("reload requested"), count("the configuration was reloaded and is in use now")), (1, 1));
}
