//! `POST /api/reload?dry_run=true`: it shows the changes of a reload, and has no effect.

use std::io::ErrorKind;
use std::net::TcpListener;

use serde_json::{Value, json};

use super::{Fixture, ONE, TWO};
use crate::support::{Folder, Server, exchange};
use crate::two_services::gateway;
use testkit::ports::free_address;

const DRY_RUN: &str = "POST /api/reload?dry_run=true";

#[test]
fn dry_run_lists_the_changes_of_a_reload() {
    let fixture = Fixture::new(TWO);
    let lock = fixture.lock();
    assert_eq!((fixture.post("b", "1"), fixture.post("b", "2")), (200, 200));
    fixture.folder.write("forebay.toml", ONE);
    let (status, answer) = fixture.ask(DRY_RUN);
    let file = fixture.folder.text("forebay.toml");
    let waits = "the route from b to two is removed: its 2 pending events stay in the journal until you restore the route, or discard them";
    let expected = json!({
        "applied": false, "file": file, "changes": ["type b is removed", "sink two is removed", waits], "warnings": null
    });
    assert_eq!((status, answer), (200, expected.clone()));
    assert_eq!(
        (fixture.post("b", "3"), fixture.server().metric("forebay_reloads_total{")),
        (200, 0),
        "nothing changed"
    );
    drop(lock);
    fixture.server().wait_delivered();
    fixture.folder.write("forebay.toml", "[types.a]\nroutes = [\"none\"]\n");
    let (status, answer) = fixture.ask(DRY_RUN);
    assert_eq!((status, &answer["code"]), (422, &"configuration".into()), "{answer}");
    assert_eq!(fixture.ask("POST /api/reload?dry=true").0, 400);
    fixture.folder.write("forebay.toml", ONE);
    let (_, answer) = fixture.ask("POST /api/reload?dry_run=false");
    assert_eq!(answer["changes"], json!(["type b is removed", "sink two is removed"]));
}

#[test]
fn dry_run_does_not_touch_stores() {
    const STORES: &str = "[sinks.one]\nkind = \"sqlite\"\n[sinks.table]\nkind = \"sqlite\"\npath = \"tables/new.db\"\n\
                          [sinks.files]\nkind = \"directory\"\npath = \"files\"\n";
    let fixture = Fixture::new(ONE);
    // Its clients can connect, and get no answer.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    silent.set_nonblocking(true).unwrap();
    let url = format!("redis://{}", silent.local_addr().unwrap());
    let reachable = format!("[types.a]\nroutes = [\"one\", \"table\", \"files\"]\n{STORES}");
    let all = reachable.replace("\"files\"]", "\"files\", \"silent\"]")
        + &format!("[sinks.silent]\nkind = \"redis\"\nurl = \"{url}\"\nmode = \"stream\"\nkey = \"k\"\n");
    let created = || ["tables", "files"].map(|name| fixture.folder.data().join(name).exists());

    fixture.folder.write("forebay.toml", all);
    let (status, answer) = fixture.ask(DRY_RUN);
    let changes = json!(["type a has changed", "sink files is new", "sink silent is new", "sink table is new"]);
    assert_eq!((status, &answer["applied"], &answer["changes"]), (200, &json!(false), &changes), "{answer}");
    assert_eq!(created(), [false, false]);
    let connection = silent.accept().map(|(_, client)| client);
    assert_eq!(connection.map_err(|error| error.kind()), Err(ErrorKind::WouldBlock));

    fixture.accepts(&reachable);
    assert_eq!(created(), [true, true], "a reload connects to the stores");
}

#[test]
fn dry_run_does_not_list_new_writers() {
    let folder = Folder::new();
    let [one, two, three] = [free_address(), free_address(), free_address()].map(|address| format!("http://{address}"));
    let config = |servers: &str, more: &str| {
        format!(
            "[upstreams.back]\nmode = \"all\"\nservers = {{ {servers} }}\n[sinks.warehouse]\nkind = \"writer\"\n\
             upstream = \"back\"\nstore = \"null\"\n[types.a]\nroutes = [\"warehouse\"]\n{more}"
        )
    };
    let path = folder.write("gateway.toml", config(&format!("a = \"{one}\""), ""));
    let server = gateway(&folder.data(), &["--config", &path], &folder.path("log"));
    assert_eq!(writers(&server), std::slice::from_ref(&one));

    let other = format!(
        "[upstreams.other]\nservers = [\"{three}\"]\n[sinks.other]\nkind = \"writer\"\nupstream = \"other\"\n\
         store = \"null\"\n[types.b]\nroutes = [\"other\"]\n"
    );
    let restart = format!("[gateway]\nshards = 7\n{other}");
    for (more, request, expected) in
        [(&other, DRY_RUN, 200), (&restart, DRY_RUN, 422), (&restart, "POST /api/reload", 422)]
    {
        folder.write("gateway.toml", config(&format!("a = \"{one}\", b = \"{two}\""), more));
        let (status, answer) = ask(&server, request);
        assert_eq!(status, expected, "{answer}");
        assert_eq!(writers(&server), std::slice::from_ref(&one), "{more}");
        let metrics = server.metrics();
        assert!(!metrics.contains(&two) && !metrics.contains(&three), "{metrics}");
    }
}

/// A request of the admin API without a body: the status and the answer.
fn ask(server: &Server, request: &str) -> (u16, Value) {
    let request = format!("{request} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", server.admin);
    let (status, body) = exchange(server.admin, &request);
    (status, serde_json::from_str(&body).unwrap())
}

/// The writers that the gateway lists.
fn writers(server: &Server) -> Vec<String> {
    let status = ask(server, "GET /api/status").1;
    status["writers"].as_array().unwrap().iter().map(|writer| writer["server"].as_str().unwrap().to_owned()).collect()
}
