//! What the admin port says about the state of a process, for the console.

use serde_json::{Value, json};

use crate::support::{Folder, Server, exchange, wait_until};

/// An answer of the admin port.
fn get(server: &Server, path: &str) -> Value {
    let (status, body) = ask(server, "GET", path);
    assert_eq!(status, 200, "{path}: {body}");
    body
}

fn ask(server: &Server, method: &str, path: &str) -> (u16, Value) {
    let request =
        format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    let (status, body) = exchange(server.admin, &request);
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
    let some = get(&server, "/api/refused?code=schema&type=orders");
    assert_eq!(some["refused"], json!([order]));
    assert_eq!(some["counts"], json!([{"code": "schema", "type": "orders", "source": "", "count": 1}]));
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
