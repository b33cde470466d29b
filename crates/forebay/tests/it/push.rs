//! Metrics that a server pushes: what a collector and a receiver of StatsD get, and what it costs if they are away.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{TcpListener, UdpSocket};
use std::path::Path;
use std::time::Duration;

use otlp::Message;
use otlp::attributes::{AttributeValue, KeyValue};
use otlp::metrics::{Data, ExportMetrics, Number};
use testkit::mock_server::{MockRequest, MockServer};

use crate::support::{Folder, Server, wait_until};

const TOKEN: &str = "c0llector-s3cret";

fn start(folder: &Folder, tables: &str) -> Server {
    let configuration = folder.write("forebay.toml", tables);
    Server::start_configured(&folder.data(), Path::new(&configuration), &folder.path("log"))
}

fn log(folder: &Folder) -> String {
    std::fs::read_to_string(folder.path("log")).unwrap()
}

fn collector_table(address: impl std::fmt::Display) -> String {
    format!(
        "[otlp]\nurl = \"http://{address}/base\"\nheaders = [\"Authorization: Bearer {TOKEN}\"]\ninterval = \"1s\"\n"
    )
}

fn text(attribute: &KeyValue) -> (&str, &str) {
    match attribute.value.as_ref().and_then(|value| value.value.as_ref()) {
        Some(AttributeValue::String(text)) => (&attribute.key, text),
        other => panic!("{other:?}"),
    }
}

/// The series of a request as `/metrics` writes them.
fn series(request: &MockRequest) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let named = |name: &str, attributes: &[KeyValue], bound: Option<f64>| {
        let labels = attributes.iter().map(text).map(|(name, value)| format!("{name}=\"{value}\""));
        let bound =
            bound.map(|bound| if bound.is_infinite() { "le=\"+Inf\"".into() } else { format!("le=\"{bound}\"") });
        let labels: Vec<_> = labels.chain(bound).collect();
        if labels.is_empty() { name.to_owned() } else { format!("{name}{{{}}}", labels.join(",")) }
    };
    let shown = |number: Option<Number>| match number {
        Some(Number::Int(count)) => count.to_string(),
        Some(Number::Double(value)) => value.to_string(),
        None => panic!("a point without a number"),
    };
    let body = ExportMetrics::decode(&*request.body).unwrap();
    let scopes = body.resource_metrics.into_iter().flat_map(|resource| resource.scope_metrics);
    for metric in scopes.flat_map(|scope| scope.metrics) {
        let name = &metric.name;
        match metric.data.unwrap() {
            Data::Sum(otlp::metrics::Sum { data_points, .. }) | Data::Gauge(otlp::metrics::Gauge { data_points }) => {
                all.extend(data_points.iter().map(|point| (named(name, &point.attributes, None), shown(point.value))));
            }
            Data::Histogram(histogram) => {
                for point in histogram.data_points {
                    let mut so_far = 0;
                    let bounds = point.explicit_bounds.iter().chain([&f64::INFINITY]);
                    for (bound, count) in bounds.zip(&point.bucket_counts) {
                        so_far += count;
                        all.insert(
                            named(&format!("{name}_bucket"), &point.attributes, Some(*bound)),
                            so_far.to_string(),
                        );
                    }
                    all.insert(named(&format!("{name}_sum"), &point.attributes, None), point.sum.unwrap().to_string());
                    all.insert(named(&format!("{name}_count"), &point.attributes, None), point.count.to_string());
                }
            }
        }
    }
    all
}

fn lines(metrics: &str) -> BTreeSet<&str> {
    metrics.lines().filter(|line| !line.starts_with('#')).collect()
}

#[test]
fn collector_gets_the_values_of_metrics() {
    let folder = Folder::new();
    let collector = MockServer::start(|_| (200, Vec::new(), Vec::new()));
    let server = start(&folder, &collector_table(collector.address));
    (0..5).for_each(|number| assert_eq!(server.post("/ingest/event/access", &format!("{{\"n\":{number}}}")).0, 200));
    server.wait_delivered();
    let before = server.metrics();
    let known = collector.asked().len();
    assert!(wait_until(|| collector.asked().len() > known + 1), "pushes go on");
    let request = collector.asked()[known + 1].clone();
    let after = server.metrics();
    assert_eq!((&*request.method, &*request.path), ("POST", "/base/v1/metrics"));
    assert_eq!(request.header("Content-Type"), Some("application/x-protobuf"));
    assert_eq!(request.header("Authorization"), Some(&*format!("Bearer {TOKEN}")));
    let pushed = series(&request);
    let unchanged: BTreeSet<_> = lines(&before).intersection(&lines(&after)).copied().collect();
    assert!(
        unchanged.contains("forebay_events_stored_total{type=\"access\",sink=\"local\"} 5") && unchanged.len() > 300
    );
    // Connections, threads and the kernel's figures change and change back.
    let is_steady = |line: &&str| {
        ["forebay_events", "forebay_lane_b", "forebay_journal", "forebay_http_requests"]
            .iter()
            .any(|name| line.starts_with(name))
    };
    for line in unchanged.into_iter().filter(is_steady) {
        let (name, value) = line.rsplit_once(' ').unwrap();
        assert_eq!(pushed.get(name).map(String::as_str), Some(value), "{name}");
    }
    let names = |text: &str| lines(text).into_iter().map(|line| line.rsplit_once(' ').unwrap().0.to_owned()).collect();
    let names: BTreeSet<String> = names(&after);
    assert_eq!(pushed.into_keys().filter(|name| !names.contains(name)).collect::<Vec<_>>(), Vec::<String>::new());
    server.wait("forebay_otlp_exports_total{outcome=\"accepted\"}", |count| count >= 2);
    assert!(!log(&folder).contains(TOKEN));
}

#[test]
fn absent_or_silent_collector_delays_no_event_and_is_logged_once() {
    // One refuses connections, one accepts and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let (away, waiting) = (testkit::ports::free_address(), silent.local_addr().unwrap());
    for address in [away, waiting] {
        let folder = Folder::new();
        let server = start(&folder, &collector_table(address));
        assert_eq!(server.post("/ingest/event/access", "{\"n\":1}").0, 200);
        server.wait("forebay_otlp_exports_total{outcome=\"failed\"}", |count| count > 1);
        assert_eq!(server.post("/ingest/event/access", "{\"n\":2}").0, 200);
        server.wait_delivered();
        let log = log(&folder);
        assert_eq!(log.matches("OpenTelemetry collector").count(), 1, "{log}");
        assert!(log.contains(&address.to_string()) && !log.contains(TOKEN), "{log}");
        assert_eq!(server.stop("-TERM"), Some(0));
    }
}

#[test]
fn collector_that_asks_for_a_pause_gets_it() {
    let folder = Folder::new();
    let mut answers = 0;
    let collector = MockServer::start(move |_| {
        answers += 1;
        let pause = vec![("Retry-After", "4".to_owned())];
        if answers == 1 { (503, pause, Vec::new()) } else { (200, Vec::new(), Vec::new()) }
    });
    let server = start(&folder, &collector_table(collector.address));
    server.wait("forebay_otlp_exports_total{outcome=\"failed\"}", |count| count == 1);
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(collector.asked().len(), 1, "it asked for a longer pause");
    server.wait("forebay_otlp_exports_total{outcome=\"accepted\"}", |count| count >= 1);
}

#[test]
fn partial_rejection_is_counted_and_logged() {
    let folder = Folder::new();
    let body = otlp::ExportResponse {
        partial_success: Some(otlp::PartialSuccess { rejected: 3, error_message: "too old".to_owned() }),
    };
    let body = body.encode_to_vec();
    let collector = MockServer::start(move |_| (200, Vec::new(), body.clone()));
    let server = start(&folder, &collector_table(collector.address));
    server.wait("forebay_otlp_exports_total{outcome=\"rejected\"}", |count| count >= 1);
    assert!(wait_until(|| log(&folder).contains("too old")));
}

#[test]
fn statsd_receiver_gets_increases_that_add_up() {
    let folder = Folder::new();
    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    receiver.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let address = receiver.local_addr().unwrap();
    let server = start(&folder, &format!("[statsd]\naddress = \"{address}\"\nprefix = \"prod\"\ninterval = \"1s\"\n"));
    let (mut accepted, mut pending, mut posted) = (0, None, 0);
    while accepted < 30 || pending != Some(0) {
        let mut datagram = [0; 2_000];
        let length = receiver.recv(&mut datagram).unwrap();
        assert!(length <= 1_432, "{length}");
        for line in std::str::from_utf8(&datagram[..length]).unwrap().lines() {
            assert!(line.starts_with("prod."), "{line}");
            if let Some(count) = line.strip_prefix("prod.forebay_events_accepted_total.type.access:") {
                accepted += count.strip_suffix("|c").unwrap().parse::<u64>().unwrap();
            }
            if let Some(count) = line.strip_prefix("prod.forebay_events_pending.type.access.sink.local:") {
                pending = Some(count.strip_suffix("|g").unwrap().parse::<u64>().unwrap());
            }
        }
        // The first datagram shows that counting has begun.
        if posted < 30 {
            assert_eq!(server.post("/ingest/event/access", &format!("{{\"n\":{posted}}}")).0, 200);
            posted += 1;
        }
    }
    assert_eq!(accepted, 30);
    server.wait("forebay_statsd_datagrams_total{outcome=\"sent\"}", |count| count > 0);
}

#[test]
fn statsd_receiver_that_is_away_is_logged_once() {
    let folder = Folder::new();
    let table = "[statsd]\naddress = \"nowhere.invalid:8125\"\ninterval = \"1s\"\n";
    let server = start(&folder, table);
    server.wait("forebay_statsd_datagrams_total{outcome=\"failed\"}", |count| count > 50);
    assert_eq!(server.post("/ingest/event/access", "{\"n\":1}").0, 200);
    let log = log(&folder);
    assert_eq!(log.matches("StatsD receiver nowhere.invalid:8125").count(), 1, "{log}");
}
