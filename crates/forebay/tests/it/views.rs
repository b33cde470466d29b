//! What the admin port says about the state of a process, for the console.

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::support::{Folder, Server, exchange, wait_until};
use crate::two_services::{BackEnd, gateway};

/// An answer of the admin port.
fn get(server: &Server, path: &str) -> Value {
    let (status, body) = ask(server, "GET", path);
    assert_eq!(status, 200, "{path}: {body}");
    body
}

fn ask(server: &Server, method: &str, path: &str) -> (u16, Value) {
    ask_at(server.admin, method, path)
}

fn ask_at(admin: SocketAddr, method: &str, path: &str) -> (u16, Value) {
    let request =
        format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    let (status, body) = exchange(admin, &request);
    (status, serde_json::from_str(&body).unwrap_or(Value::Null))
}

/// Asks until the answer is as wanted.
fn wait_for(server: &Server, path: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
    let mut answer = Value::Null;
    assert!(
        wait_until(|| {
            answer = get(server, path);
            is_wanted(&answer)
        }),
        "{path}: {answer}"
    );
    answer
}

fn start(folder: &Folder, configuration: &str) -> Server {
    folder.write("forebay.toml", configuration);
    Server::start_configured(&folder.data(), &folder.path("forebay.toml"), &folder.path("log"))
}

const REJECTING: &str = r#"
[types.orders]
schema = "orders.json"
refused_to = "rejected"
routes = ["local"]
[types.rejected]
routes = ["local"]
[sinks.local]
kind = "sqlite"
"#;

#[test]
fn last_rejections_are_listed_without_values() {
    let folder = Folder::new();
    folder.write("orders.json", r#"{"properties": {"n": {"type": "integer"}}}"#);
    let server = start(&folder, REJECTING);
    assert_eq!(get(&server, "/api/refused"), json!({"refused": [], "counts": [], "left_out": 0}));
    assert_eq!(server.post("/ingest/event/orders", "{\"n\":\"sesame\"}").0, 422);
    assert_eq!(server.post("/ingest/event/nothing", "{}").0, 404);
    let all = wait_for(&server, "/api/refused", |answer| answer["refused"].as_array().unwrap().len() == 2);
    let [unknown, order] = [0, 1].map(|at| all["refused"][at].clone());
    assert_eq!(
        (&unknown["code"], &unknown["type"], &unknown["refused_to"]),
        (&json!("unknown_type"), &json!("other"), &Value::Null)
    );
    assert_eq!(
        (&order["code"], &order["pointer"], &order["refused_to"]),
        (&json!("schema"), &json!("/n"), &json!("rejected"))
    );
    assert!(order["help"].as_str().unwrap().starts_with("Correct the payload at"), "{order}");
    assert!(!all.to_string().contains("sesame"), "{all}");
    let some = get(&server, "/api/refused?code=schema");
    assert_eq!(some["refused"], json!([order]));
    assert_eq!(some["counts"], json!([{"code": "schema", "type": "orders", "source": "", "count": 1}]));
    assert_eq!(get(&server, "/api/refused?type=orders"), some);
    assert_eq!(get(&server, "/api/refused?source=shop")["refused"], json!([]));
    assert_eq!(ask(&server, "GET", "/api/refused?sink=a").0, 400);
    assert_eq!(ask(&server, "POST", "/api/refused").0, 405);

    // More than the log shows in a second.
    let batch = "{\"n\":1}\n".to_owned() + &"{\"n\":\"a\"}\n".repeat(1_000);
    assert_eq!(server.post("/ingest/batch/orders", &batch).0, 207);
    let many = wait_for(&server, "/api/refused", |answer| answer["left_out"].as_u64().unwrap() > 0);
    assert_eq!(many["left_out"].as_u64().unwrap() + many["refused"].as_array().unwrap().len() as u64, 1_002);
    assert_eq!(many["counts"][0]["count"], 1_001);
}

/// No server listens on port 1.
const TROUBLED: &str = r#"
[types.access]
routes = ["local", "away"]
[sinks.local]
kind = "sqlite"
[sinks.away]
kind = "postgres"
url = "postgres://writer:sesame@127.0.0.1:1/events"
table = "events"
"#;

#[test]
fn history_has_a_point_each_step() {
    let folder = Folder::new();
    let server = start(&folder, TROUBLED);
    assert_eq!(server.post("/ingest/event/access", "1").0, 200);
    let history = wait_for(&server, "/api/history?for=10s", |history| {
        history["totals"]["pending"] == json!([1.0, 1.0]) && !history["totals"]["accepted_per_s"][1].is_null()
    });
    assert_eq!((&history["step_s"], &history["types"][0]["type"]), (&json!(5), &json!("access")));
    let sinks = history["sinks"].as_array().unwrap();
    let away = sinks.iter().find(|sink| sink["sink"] == "away").unwrap();
    assert_eq!((&away["pending"], &away["dead"]), (&json!([1.0, 1.0]), &json!([0.0, 0.0])));
    assert_eq!(get(&server, "/api/history")["totals"]["dead"].as_array().unwrap().len(), 720);
    assert_eq!(ask(&server, "GET", "/api/history?for=2h").0, 400);
    let memory = get(&server, "/debug/memory");
    let owner = memory["owners"].as_array().unwrap().iter().find(|owner| owner["owner"] == "history").unwrap().clone();
    assert!(owner["bytes"].as_u64().unwrap() > 0 && owner["max_bytes"].as_u64().unwrap() <= 256 << 10, "{owner}");
}

#[test]
fn overview_and_status_have_the_same_problems() {
    let folder = Folder::new();
    let server = start(&folder, TROUBLED);
    assert_eq!(server.post("/ingest/event/access", "1").0, 200);
    let overview =
        wait_for(&server, "/api/overview", |overview| overview["problems"][0]["code"].as_str() == Some("sink_waiting"));
    let problem = &overview["problems"][0];
    assert_eq!((&problem["level"], &problem["page"]), (&json!("error"), &json!("sinks/away")));
    assert!(problem["since"].as_str().unwrap().starts_with("20"), "{problem}");
    assert_eq!(overview["problems"].as_array().unwrap().len(), 1, "{overview}");
    assert_eq!(get(&server, "/api/status")["problems"], json!([problem["text"]]));
}

#[test]
fn sinks_have_settings_lanes_and_failures() {
    let folder = Folder::new();
    let server = start(&folder, TROUBLED);
    assert_eq!(server.post("/ingest/event/access", "1").0, 200);
    server.wait("forebay_events_stored_total{type=\"access\",sink=\"local\"", |stored| stored == 1);
    let away = wait_for(&server, "/api/sinks/away", |sink| {
        sink["state"] == "waiting" && sink["failures"][0]["tries"].as_u64().is_some_and(|tries| tries > 0)
    });
    assert_eq!(away["kind"], "postgres");
    let url = json!({"name": "url", "value": "\"postgres://writer:******@127.0.0.1:1/events\""});
    assert!(away["settings"].as_array().unwrap().contains(&url), "{away}");
    assert!(!away.to_string().contains("sesame"), "{away}");
    let lane = &away["lanes"][0];
    assert_eq!((&lane["state"], &lane["shard"]), (&json!("waiting"), &json!(0)));
    assert!(lane["reason"].as_str().unwrap().contains("refused"), "{lane}");
    let sinks = get(&server, "/api/sinks")["sinks"].clone();
    let names: Vec<&str> = sinks.as_array().unwrap().iter().map(|sink| sink["sink"].as_str().unwrap()).collect();
    assert_eq!(names, ["away", "local"]);
    assert_eq!((&sinks[1]["failures"], &sinks[1]["calls"]), (&json!([]), &Value::Null));
    assert_eq!(ask(&server, "GET", "/api/sinks/gone").0, 404);

    let (status, works) = ask(&server, "POST", "/api/sinks/local/test");
    assert_eq!((status, &works["ok"], &works["reason"]), (200, &json!(true), &Value::Null));
    let (status, fails) = ask(&server, "POST", "/api/sinks/away/test");
    assert_eq!((status, &fails["ok"]), (200, &json!(false)));
    assert!(fails["reason"].as_str().unwrap().contains("refused"), "{fails}");
    assert_eq!(ask(&server, "GET", "/api/sinks/local/test").0, 405);
}

const AGGREGATING: &str = r#"
[types.access]
routes = ["local"]
[types.access.aggregate.hits]
window = "5m every 1m"
time = "received"
early = "1s"
group_by = ["/path"]
measures = { n = "count" }
routes = ["local"]
[sinks.local]
kind = "sqlite"
"#;

#[test]
fn aggregate_has_its_state() {
    let folder = Folder::new();
    let server = start(&folder, AGGREGATING);
    assert_eq!(server.post("/ingest/event/access", r#"{"path":"/"}"#).0, 200);
    // The store has no table before.
    server.wait("forebay_events_stored_total{type=\"access\"", |stored| stored == 1);
    let answer = wait_for(&server, "/api/aggregates", |answer| answer["aggregates"][0]["groups"] != 0);
    let aggregate = &answer["aggregates"][0];
    assert_eq!((&aggregate["name"], &aggregate["of"]), (&json!("access.hits"), &json!("access")));
    assert_eq!(
        (&aggregate["window_s"], &aggregate["by"], &aggregate["late"]),
        (&json!(300), &json!(["/path"]), &json!(0))
    );
    assert!(aggregate["bytes"].as_u64() < aggregate["bytes_max"].as_u64(), "{aggregate}");
    let results =
        wait_for(&server, "/api/aggregates/access.hits/results", |answer| answer["results"][0] != Value::Null);
    assert_eq!((&results["sink"], &results["results"][0]["type"]), (&json!("local"), &json!("access.hits")));
    assert_eq!(ask(&server, "GET", "/api/aggregates/access/results").0, 404);
}

#[test]
fn configuration_shows_origins_mistakes_and_history() {
    let folder = Folder::new();
    let server = start(&folder, TROUBLED);
    let setting = |answer: &Value, name: &str| {
        let settings = answer["settings"].as_array().unwrap();
        settings.iter().find(|setting| setting["name"] == name).cloned().unwrap_or_else(|| panic!("{name}: {answer}"))
    };
    let first = get(&server, "/api/config");
    assert_eq!((&first["mistakes"], &first["changed"]), (&json!([]), &json!(false)));
    let routes = setting(&first, "types.access.routes");
    assert_eq!(
        (&routes["from"], &routes["line"], &routes["value"]),
        (&json!("file"), &json!(3), &json!(r#"["local", "away"]"#))
    );
    assert_eq!(setting(&first, "gateway.listen")["from"], "flag");
    assert_eq!(setting(&first, "log.level")["from"], "default");
    assert!(!first.to_string().contains("sesame"), "{first}");

    folder.write("forebay.toml", TROUBLED.replace("routes = ", "rotes = "));
    let wrong = get(&server, "/api/config");
    assert_eq!((&wrong["changed"], setting(&wrong, "types.access.routes")), (&json!(true), routes));
    // The first one is that the type has no routes.
    let mistake = &wrong["mistakes"][1];
    assert_eq!((&mistake["line"], &mistake["column"]), (&json!(3), &json!(1)), "{wrong}");
    assert!(mistake["title"].as_str().unwrap().contains("types.access.rotes"), "{mistake}");

    folder.write("forebay.toml", TROUBLED.replace(r#"["local", "away"]"#, r#"["local"]"#));
    assert_eq!(ask(&server, "POST", "/api/reload").0, 200);
    let later = get(&server, "/api/config");
    assert_eq!(
        (&later["changed"], &setting(&later, "types.access.routes")["value"]),
        (&json!(false), &json!(r#"["local"]"#))
    );
    assert!(later["loaded"].as_str() > first["loaded"].as_str(), "{later}");
    let history = get(&server, "/api/config/history")["history"].clone();
    assert_eq!(
        (&history[0]["by"], &history[0]["changes"]),
        (&json!("loopback without token"), &json!(["type access has changed"]))
    );
    assert_eq!(
        (&history[1]["by"], &history[1]["changes"], history.as_array().unwrap().len()),
        (&json!("start"), &json!(["started"]), 2)
    );
}

#[test]
fn writer_shows_calls_and_gateway_its_writers() {
    let folder = Folder::new();
    let writer = BackEnd::start_on(&folder.path("writer"), "127.0.0.1:0", &[]);
    let server = gateway(&folder.data(), &["--writer", &writer.url()], &folder.path("log"));
    assert_eq!(server.post("/ingest/event", "1").0, 200);
    server.wait_delivered();
    let of_gateway = get(&server, "/api/sinks/local");
    assert_eq!(of_gateway["servers"][0]["state"], "available", "{of_gateway}");
    let (status, sink) = ask_at(writer.admin, "GET", "/api/sinks/local");
    assert_eq!((status, &sink["lanes"], &sink["servers"]), (200, &json!([]), &json!([])));
    let origin = get(&server, "/api/status")["gateway_id"].clone();
    assert_eq!((&sink["calls"]["failed"], &sink["calls"]["gateways"][0]["name"]), (&json!(0), &origin), "{sink}");
    assert!(sink["calls"]["calls"].as_u64().unwrap() > 0, "{sink}");
    assert_eq!(ask_at(writer.admin, "POST", "/api/sinks/local/test").1["ok"], true);
    let (status, history) = ask_at(writer.admin, "GET", "/api/history?for=5s");
    assert_eq!((status, &history["totals"]["pending"]), (200, &json!([null])));
    assert_eq!(ask_at(writer.admin, "GET", "/api/config").1["mistakes"], json!([]));
    assert_eq!(ask_at(writer.admin, "GET", "/api/refused").0, 404);
}
