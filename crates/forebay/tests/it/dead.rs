//! Dead letters as users see them: a store that rejects events, `forebay dead`, and the admin API.

use std::path::Path;

use crate::support::{Folder, Server, exchange, forebay, payloads};

const TABLE: &str = "create table events (id blob not null unique, type text, source text, received_at integer, \
                     payload text)";
/// Rejects rows as a constraint of the table would, until it is dropped.
const REFUSE: &str = "create trigger refuse before insert on events when new.payload like '%bad%' \
                      begin select raise(abort, 'no bad ones'); end";

/// A data directory whose store refuses payloads with `bad` in them, and the server on it.
pub(crate) struct DeadFixture {
    /// Killed before its directory is removed.
    server: Option<Server>,
    pub(crate) folder: Folder,
}

impl DeadFixture {
    pub(crate) fn new() -> Self {
        let mut fixture = Self { server: None, folder: Folder::new() };
        std::fs::create_dir(fixture.folder.data()).unwrap();
        fixture.sql(TABLE);
        fixture.sql(REFUSE);
        fixture.start();
        fixture
    }

    pub(crate) fn sql(&self, text: &str) {
        let store = rusqlite::Connection::open(self.folder.data().join("events.db")).unwrap();
        store.execute_batch(text).unwrap();
    }

    fn start(&mut self) {
        self.server = Some(Server::start(&self.folder.data()));
    }

    fn stop(&mut self, signal: &str) {
        self.server.take().unwrap().stop(signal);
    }

    pub(crate) fn server(&self) -> &Server {
        self.server.as_ref().unwrap()
    }

    fn post(&self, type_name: &str, body: &str) {
        assert_eq!(self.server().post(&format!("/ingest/event/{type_name}"), body).0, 200);
    }

    /// Three events, of which the store refuses two, each another type.
    fn post_three(&self) {
        self.post("good", "{\"n\":1}");
        self.post("access", "{\"bad\" : 2}");
        self.post("job", "{\"bad\":\n3}");
        for type_name in ["good", "access", "job"] {
            self.wait("forebay_events_pending", type_name, 0);
        }
    }

    pub(crate) fn api(&self, method: &str, target: &str, headers: &str) -> (u16, String) {
        let admin = self.server().admin;
        let host = if headers.contains("Host:") { String::new() } else { format!("Host: {admin}\r\n") };
        exchange(admin, &format!("{method} {target} HTTP/1.1\r\n{host}{headers}Connection: close\r\n\r\n"))
    }

    fn metric(&self, name: &str, labels: &str) -> u64 {
        self.server().metric(&format!("{name}{labels}"))
    }

    fn of_type(&self, name: &str, type_name: &str) -> u64 {
        self.server().metric(&series(name, type_name))
    }

    fn wait(&self, name: &str, type_name: &str, value: u64) {
        self.server().wait(&series(name, type_name), |now| now == value);
    }

    fn command(&self, arguments: &[&str]) -> (i32, String, String) {
        let mut command = forebay();
        command.arg("dead").args(arguments).arg("--data").arg(self.folder.data());
        let output = command.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
    }

    /// Asks the running server.
    pub(crate) fn dead(&self, arguments: &[&str]) -> (i32, String) {
        let admin = self.server().admin.to_string();
        let arguments = [arguments, &["--admin", &admin]].concat();
        let (code, output, error) = self.command(&arguments);
        assert_eq!(error, "", "{arguments:?}");
        (code, output)
    }

    fn id_of(&self, type_name: &str) -> String {
        let (_, table) = self.dead(&["list", "--type", type_name]);
        let line = table.lines().nth(1).unwrap_or_else(|| panic!("{table}"));
        line.split_whitespace().nth(3).unwrap_or_else(|| panic!("{table}")).to_owned()
    }
}

fn series(name: &str, type_name: &str) -> String {
    format!("{name}{{type=\"{type_name}\"")
}

#[test]
fn dead_letters_are_listed_and_shown() {
    let fixture = DeadFixture::new();
    fixture.post_three();
    let (code, text) = fixture.dead(&["list"]);
    let lines: Vec<&str> = text.lines().collect();
    assert!(code == 0 && lines.len() == 3, "{text}");
    let words = |line: &'_ str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(lines[0]), ["RECEIVED", "SINK", "TYPE", "ID", "REASON"]);
    let letter = words(lines[1]);
    assert!(letter[0].ends_with('Z') && letter[1..3] == ["local", "access"] && letter[3].len() == 36, "{text}");
    assert!(lines[1].contains("no bad ones") && lines[1].find("local") == lines[2].find("local"), "{text}");
    for filter in [["--type", "job"], ["--limit", "2"], ["--sink", "local"], ["--since", "2001-01-01T00:00:00Z"]] {
        let expected = if filter[0] == "--type" { 2 } else { 3 };
        assert_eq!(fixture.dead(&["list", filter[0], filter[1]]).1.lines().count(), expected, "{filter:?}");
    }
    let unknown = "00000000-0000-0000-0000-000000000000";
    for filter in [["--until", "2001-01-01T00:00:00+01:00"], ["--id", unknown]] {
        assert_eq!(fixture.dead(&["list", filter[0], filter[1]]).1, "no dead letters\n", "{filter:?}");
        assert_eq!(fixture.dead(&["list", "--output", "json", filter[0], filter[1]]).1, "", "{filter:?}");
    }
    let id = fixture.id_of("job");
    let (code, text) = fixture.dead(&["show", &id]);
    assert!(code == 0 && text.contains(&format!("id          {id}\ntype        job\n")), "{text}");
    assert!(text.contains("client      127.0.0.1\n") && text.ends_with("payload\n{\"bad\":\n3}\n"), "{text}");
    let json = fixture.dead(&["show", &id, "--json"]).1;
    assert!(json.lines().count() == 1 && json.contains("\"payload\":{\"bad\": 3}"), "{json}");
    let json = fixture.dead(&["list", "--output", "json"]).1;
    assert_eq!(json, fixture.dead(&["list", "--json"]).1);
    assert!(json.lines().all(|line| line.starts_with("{\"sink\":\"local\"") && !line.contains("payload\":")), "{json}");
    assert_eq!(fixture.of_type("forebay_dead_letters", "job"), 1);
    assert_eq!(fixture.of_type("forebay_dead_letters", "good"), 0);
}

#[test]
fn replay_stores_once_and_drop_stays_dead() {
    let mut fixture = DeadFixture::new();
    fixture.post_three();
    let (code, text) = fixture.dead(&["replay"]);
    assert_eq!((code, &*text), (1, "local: 0 stored, 2 rejected again, 0 dropped, 0 left for later\n"));
    fixture.sql("drop trigger refuse");
    let id = fixture.id_of("job");
    let (code, text) = fixture.dead(&["drop", "--id", &id]);
    assert_eq!((code, &*text), (0, "local: 0 stored, 0 rejected again, 1 dropped, 0 left for later\n"));
    for expected in ["local: 1 stored", "local: 0 stored"] {
        let (code, text) = fixture.dead(&["replay", "--sink", "local"]);
        assert!(code == 0 && text.starts_with(expected), "{text}");
    }
    for (name, value) in [("replayed", 1), ("dropped", 1), ("refused_again", 2)] {
        assert_eq!(fixture.metric(&format!("forebay_dead_{name}_total"), "{sink=\"local\"}"), value, "{name}");
    }
    for signal in ["-KILL", "-TERM", "-KILL"] {
        fixture.stop(signal);
        fixture.start();
        fixture.wait("forebay_events_stored_total", "access", 1);
        for (type_name, stored, dead) in [("good", 1, 0), ("access", 1, 0), ("job", 0, 1)] {
            let counts = ["stored_total", "dead_total", "accepted_total", "pending", "skipped_total"]
                .map(|name| fixture.of_type(&format!("forebay_events_{name}"), type_name));
            assert_eq!(counts, [stored, dead, 1, 0, 0], "{type_name} after {signal}");
            assert_eq!(fixture.of_type("forebay_dead_letters", type_name), 0);
        }
        assert_eq!(fixture.dead(&["list"]).1, "no dead letters\n");
    }
    assert_eq!(fixture.metric("forebay_ledger_errors_total", ""), 0);
    assert_eq!(payloads(&fixture.folder.data()), ["{\"bad\" : 2}", "{\"n\":1}"]);
}

#[test]
fn stopped_server_only_allows_list_and_show() {
    let mut fixture = DeadFixture::new();
    fixture.post_three();
    let id = fixture.id_of("access");
    let online = [fixture.dead(&["list"]).1, fixture.dead(&["show", &id]).1];
    for signal in ["-KILL", "-TERM"] {
        fixture.stop(signal);
        let offline = [fixture.command(&["list"]).1, fixture.command(&["show", &id]).1];
        assert_eq!(offline, online, "after {signal}");
        for action in [&["replay"] as &[_], &["drop"], &["edit", &id, "--payload", "/dev/null"]] {
            let (code, _, error) = fixture.command(action);
            assert!(code == 1 && error.contains("no Forebay is running on") && error.contains("start it"), "{error}");
        }
        fixture.start();
    }
    let (code, _, error) = fixture.command(&["show", "00000000-0000-0000-0000-000000000000"]);
    assert!(code == 1 && error.contains("127.0.0.1:9000"), "the directory is in use: {error}");
    let missing = Path::new("missing").display().to_string();
    let output = forebay().args(["dead", "list", "--data", &missing]).output();
    let error = String::from_utf8(output.unwrap().stderr).unwrap();
    assert!(error.contains("--data") && error.contains("--admin"), "{error}");
}

#[test]
fn unknown_sink_is_reported() {
    let mut fixture = DeadFixture::new();
    fixture.post_three();
    let admin = fixture.server().admin.to_string();
    let expect_unknown_sink = |(code, output, error): (i32, String, String)| {
        assert_eq!((code, &*output), (1, ""));
        assert!(error.contains("there is no sink other"), "{error}");
    };
    expect_unknown_sink(fixture.command(&["list", "--sink", "other", "--admin", &admin]));
    fixture.stop("-TERM");
    expect_unknown_sink(fixture.command(&["list", "--sink", "other"]));
    let (code, _, error) = fixture.command(&["list", "--sink", "local", "--type", "other"]);
    assert_eq!((code, &*error), (0, ""), "a sink without dead letters of the type exists");
}

#[test]
fn configuration_says_where_the_admin_port_is() {
    let fixture = DeadFixture::new();
    fixture.post_three();
    let path = fixture.folder.data().join("forebay.toml");
    std::fs::write(&path, format!("[gateway]\nadmin = \"{}\"\n", fixture.server().admin)).unwrap();
    let path = path.display().to_string();
    let (code, text, error) = fixture.command(&["list", "--config", &path]);
    assert_eq!((code, text.lines().count(), &*error), (0, 3, ""));
    let routes = forebay().args(["route", "list", "--config", &path, "--data"]).arg(fixture.folder.data()).output();
    let routes = routes.unwrap();
    assert!(routes.status.success() && !routes.stdout.is_empty(), "{routes:?}");
    let (code, _, error) = fixture.command(&["list", "--config", "absent.toml"]);
    assert!(code == 1 && error.contains("absent.toml"), "{error}");
}

/// The command may run as another user than the server, without access to its secrets.
#[test]
fn commands_need_no_secrets_of_the_configuration() {
    let fixture = DeadFixture::new();
    fixture.post_three();
    let absent = fixture.folder.text("absent");
    let text = format!(
        "[gateway]\nadmin = \"{}\"\ntoken_file = \"{absent}/tokens.json\"\n[types.access]\nroutes = [\"away\"]\nschema = \"{absent}/schema.json\"\n\
         [sinks.away]\nkind = \"postgres\"\nurl = \"postgres://u:${{PASSWORD}}@127.0.0.1:1/events\"\ntable = \"events\"\n",
        fixture.server().admin
    );
    let path = fixture.folder.write("secret.toml", text);
    for words in [&["dead", "list"][..], &["dead", "replay", "--type", "other"], &["route", "list"]] {
        let mut command = forebay();
        command.env("FOREBAY_SINKS_AWAY_URL_FILE", &absent).args(words);
        let output = command.args(["--config", &path, "--data"]).arg(fixture.folder.data()).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{words:?}: {output:?}");
    }
}

#[test]
fn api_rejects_invalid_requests() {
    let fixture = DeadFixture::new();
    fixture.post_three();
    let code = |method, target, headers| {
        let (status, body) = fixture.api(method, target, headers);
        let code = body.split("\"code\":\"").nth(1).and_then(|rest| rest.split('"').next());
        (status, code.unwrap_or_default().to_owned())
    };
    let refused = |status, name: &str| (status, name.to_owned());
    let unknown = "/api/dead/00000000-0000-0000-0000-000000000000";
    assert_eq!(code("GET", unknown, ""), refused(404, "letter"));
    assert_eq!(code("GET", "/api/dead/x", ""), refused(404, "id"));
    assert_eq!(code("GET", "/api/dead?what=1", ""), refused(400, "query"));
    assert_eq!(code("GET", "/api/dead?sink=other", ""), refused(404, "sink"));
    assert_eq!(code("POST", "/api/dead", ""), refused(405, "method"));
    assert_eq!(code("PUT", "/api/dead", ""), refused(405, "method"));
    assert_eq!(code("PUT", unknown, ""), refused(422, "json"));
    assert_eq!(
        code("PUT", unknown, "Content-Length: 40000000\r\nContent-Encoding: gzip\r\n"),
        refused(415, "content_encoding")
    );
    assert_eq!(code("GET", "/api/dead/drop", ""), refused(405, "method"));
    assert_eq!(code("POST", "/api/dead/drop", ""), refused(400, "all"));
    assert_eq!(code("POST", "/api/dead/drop?sink=other", ""), refused(404, "sink"));
    assert_eq!(code("POST", "/api/dead/drop?all=true&origin=00", ""), refused(409, "origin"));
    assert_eq!(
        code("POST", "/api/dead/drop?all=true", "Origin: http://evil.example\r\n"),
        refused(403, "cross_origin")
    );
    assert_eq!(code("GET", "/api/dead", "Host: evil.example\r\n"), refused(403, "cross_origin"));
    assert_eq!(fixture.of_type("forebay_dead_letters", "job"), 1, "nothing was dropped");
    let (status, body) = fixture.api("POST", "/api/dead/drop?all=true", "");
    assert!(status == 200 && body.contains("\"dropped\":2"), "{body}");
    assert_eq!(
        fixture.api("GET", "/api/dead", ""),
        (200, "{\"letters\":[],\"more\":false,\"lost\":0,\"next\":null}\n".to_owned())
    );
}

#[test]
fn edited_dead_letter_is_stored() {
    let fixture = DeadFixture::new();
    fixture.post_three();
    let id = fixture.id_of("job");
    let file = fixture.folder.data().join("corrected.json");
    std::fs::write(&file, "not JSON").unwrap();
    let admin = fixture.server().admin.to_string();
    let edit = |arguments: &[&str]| fixture.command(&[&["edit", &id, "--admin", &admin], arguments].concat());
    let path = file.display().to_string();
    let (code, _, error) = edit(&["--payload", &path]);
    assert!(code == 1 && error.contains("the payload is not a valid event"), "{error}");
    std::fs::write(&file, " {\"corrected\": 3}\n").unwrap();
    let (code, text, error) = edit(&["--payload", &path, "--sink", "other"]);
    assert_eq!((code, &*text), (1, ""));
    assert!(error.contains("there is no sink other"), "{error}");
    assert_eq!(edit(&["--payload", &path]), (0, "local: 1 edited\n".to_owned(), String::new()));
    let (code, text) = fixture.dead(&["replay", "--where", "corrected == 3", "--reason", "no bad"]);
    assert_eq!((code, &*text), (0, "local: 1 stored, 0 rejected again, 0 dropped, 0 left for later\n"));
    assert_eq!(payloads(&fixture.folder.data()), ["{\"corrected\": 3}", "{\"n\":1}"]);
    assert_eq!(edit(&["--payload", &path]).0, 1, "it is no longer a dead letter");
    let (code, _, error) = fixture.command(&["list", "--where", "corrected ="]);
    assert!(code == 2 && error.contains("corrected ="), "{error}");
}

#[test]
fn editor_changes_the_payload() {
    let fixture = DeadFixture::new();
    fixture.post_three();
    let id = fixture.id_of("access");
    let admin = fixture.server().admin.to_string();
    let edit = |editor: &str| {
        let mut command = forebay();
        command.args(["dead", "edit", &id, "--admin", &admin]).env_remove("VISUAL").env("EDITOR", editor);
        let output = command.arg("--data").arg(fixture.folder.data()).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    for (editor, wanted) in [("true", "is unchanged"), ("false", "nothing was saved"), ("", "--payload FILE")] {
        let (code, error) = edit(editor);
        assert!(code == 1 && error.contains(wanted), "{editor}: {error}");
    }
    assert_eq!(edit("sed -i s/bad/good/"), (0, String::new()));
    assert!(fixture.dead(&["replay", "--type", "access"]).1.starts_with("local: 1 stored"));
    assert_eq!(payloads(&fixture.folder.data()), ["{\"good\" : 2}", "{\"n\":1}"]);
}
