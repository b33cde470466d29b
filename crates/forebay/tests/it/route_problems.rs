//! Problems after the intake are in the log and with the routes: dead letters, and stores that are down.

use crate::support::{Folder, Server, forebay, wait_until};

const STORE: &str = "create table events (id blob not null unique, type text, source text, received_at integer, payload text);
    create trigger refuse before insert on events when new.payload like '%bad%' begin select raise(abort, 'no bad ones'); end";

#[test]
fn routes_show_last_dead_letter_and_wait_reason() {
    let folder = Folder::new();
    std::fs::create_dir(folder.data()).unwrap();
    rusqlite::Connection::open(folder.data().join("events.db")).unwrap().execute_batch(STORE).unwrap();
    // No server listens on port 1.
    let configuration = "[types.access]\nroutes = [\"local\", \"away\"]\n[sinks.local]\nkind = \"sqlite\"\n[sinks.away]\n\
                         kind = \"postgres\"\nurl = \"postgres://writer:sesame@127.0.0.1:1/events\"\ntable = \"events\"\n";
    folder.write("forebay.toml", configuration);
    let log = folder.path("log");
    let server = Server::start_configured(&folder.data(), &folder.path("forebay.toml"), &log);
    assert_eq!(server.post("/ingest/event/access", "{\"bad\":1}").0, 200);
    let mut routes = String::new();
    let list = |more: &[&str]| {
        let admin = server.admin.to_string();
        let output = forebay().args(["route", "list", "--admin", &admin]).args(more).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let is_shown = wait_until(|| {
        routes = list(&[]);
        routes.contains("  waiting  ") && routes.contains("  last dead letter: ")
    });
    assert!(is_shown, "{routes}");
    let of = |sink: &str| routes.lines().find(|line| line.contains(sink)).unwrap();
    assert!(of("away").contains(" (since 20") && of("away").ends_with("Z)"), "{routes}");
    assert!(
        of("local").starts_with("access  local  active  ")
            && of("local").contains("no bad ones (the table rejects the event) (20"),
        "{routes}"
    );
    let json = list(&["--output", "json"]);
    assert!(json.contains("\"last_dead\":{\"at\":\"20") && json.contains("\"since\":\"20"), "{json}");
    let mut text = String::new();
    let is_logged = wait_until(|| {
        text = std::fs::read_to_string(&log).unwrap();
        text.contains("1 new dead letter, ") && text.contains("lane=0/away sink=away")
    });
    assert!(is_logged, "{text}");
    assert!(!text.contains("no bad ones"), "a store's words may quote the event: {text}");
    assert!([&text, &routes, &json].iter().all(|said| !said.contains("sesame")), "{text}{routes}{json}");
}
