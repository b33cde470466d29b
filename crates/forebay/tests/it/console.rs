//! The console's page and the access to the admin port: sessions, web pages of others, and streams of clients that lose their access.

mod behind_proxies;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::fixture::Fixture;
use crate::support::{Folder, HANGS, Running, forebay, wait_until};
use crate::two_services::BackEnd;
use crate::watch::Stream;

const CONFIG: &str = "[types.access]\nroutes = [\"local\"]\n[sinks.local]\nkind = \"sqlite\"\n";
/// Requests that change something, profile, or let something else happen.
const CHANGES: [&str; 9] = [
    "POST /api/reload",
    "PUT /api/log",
    "POST /api/dead/replay",
    "POST /api/dead/drop?all=true",
    "PUT /api/dead/00000000-0000-0000-0000-000000000000",
    "POST /api/routes/drop?sink=local",
    "POST /api/routes/accept?sink=local",
    "POST /debug/profile?seconds=1",
    "POST /debug/heap?seconds=1",
];

/// An answer: its status, its head, and its body.
#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    fn header(&self, name: &str) -> &str {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value).next().unwrap_or_default()
    }

    fn detail(&self) -> String {
        self.json()["detail"].as_str().unwrap_or_default().to_owned()
    }
}

/// Sends a request with these headers, `Host` among them.
fn ask(address: SocketAddr, request: &str, headers: &str) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(HANGS)).unwrap();
    write!(stream, "{request} HTTP/1.1\r\n{headers}Connection: close\r\nContent-Length: 2\r\n\r\n{{}}").unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, head, body: bytes[end + 4..].to_vec() }
}

/// The status of a request from this machine.
fn status(address: SocketAddr, request: &str, headers: &str) -> u16 {
    ask(address, request, &format!("Host: {address}\r\n{headers}")).status
}

fn token(data: &Path, arguments: &[&str]) -> String {
    let output = forebay().arg("token").args(arguments).arg("--data").arg(data).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

/// A server with tokens of an operator and a reader.
struct Access {
    fixture: Fixture,
    admin: SocketAddr,
    operator: String,
    reader: String,
}

impl Access {
    fn new(config: &str) -> Self {
        let folder = Folder::new();
        folder.write("forebay.toml", config);
        let data = folder.data();
        let operator = token(&data, &["new", "anna", "--scope", "admin"]);
        let reader = token(&data, &["new", "berta", "--scope", "read"]);
        let mut fixture = Fixture { server: None, folder };
        fixture.start();
        let admin = fixture.server().admin;
        Self { fixture, admin, operator, reader }
    }

    /// Both halves of a new session as headers.
    fn log_in(&self, token: &str) -> [String; 2] {
        let answer = ask(self.admin, "POST /api/session", &format!("Host: {}\r\n{}", self.admin, bearer(token)));
        assert_eq!(answer.status, 200, "{answer:?}");
        let cookie = answer.header("set-cookie").split(';').next().unwrap().to_owned();
        let check = answer.json()["check"].as_str().unwrap().to_owned();
        [format!("Cookie: {cookie}\r\n"), format!("Forebay-Check: {check}\r\n")]
    }

    fn revoke(&self, name: &str) {
        token(&self.fixture.folder.data(), &["revoke", name]);
    }
}

fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\n")
}

#[test]
fn every_role_serves_the_page() {
    let fixture = Fixture::new(CONFIG);
    let folder = Folder::new();
    let writer = BackEnd::start_on(&folder.path("writer"), "127.0.0.1:0", &[]);
    for admin in [fixture.server().admin, writer.admin] {
        let own = format!("Host: {admin}\r\n");
        let page = ask(admin, "GET /", &format!("{own}Accept-Encoding: gzip\r\n"));
        assert_eq!((page.status, page.header("content-type")), (200, "text/html; charset=utf-8"));
        assert_eq!((page.header("content-encoding"), page.header("cache-control")), ("gzip", "no-cache"));
        assert!(page.body.starts_with(b"\x1f\x8b"));
        let plain = ask(admin, "GET /", &own);
        assert!(plain.body.starts_with(b"<!doctype html>") && plain.header("content-encoding").is_empty(), "{plain:?}");
        let known = ask(admin, "GET /", &format!("{own}If-None-Match: {}\r\n", page.header("etag")));
        assert!(known.status == 304 && known.body.is_empty(), "{known:?}");
        for path in ["/", "/app.js", "/metrics", "/api/status", "/readyz", "/nothing"] {
            let answer = ask(admin, &format!("GET {path}"), &own);
            let policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                          base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";
            assert_eq!(answer.header("content-security-policy"), policy, "{path}");
            assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
            assert_eq!(answer.header("referrer-policy"), "no-referrer", "{path}");
            assert_eq!(answer.header("cross-origin-opener-policy"), "same-origin", "{path}");
            assert_eq!(answer.header("cross-origin-resource-policy"), "same-origin", "{path}");
        }
    }
}

#[test]
fn reload_disables_console_and_allows_hosts() {
    let fixture = Fixture::new(CONFIG);
    let admin = fixture.server().admin;
    let [own, proxy] = [format!("Host: {admin}\r\n"), "Host: console.example.com\r\n".to_owned()];
    let refused = ask(admin, "GET /", &proxy);
    assert!(refused.status == 403 && refused.detail().contains("`allowed_hosts` of [admin]"), "{refused:?}");
    assert!(refused.detail().contains("Host is `console.example.com`"), "{refused:?}");
    let with_hosts = format!("[admin]\nallowed_hosts = [\"console.example.com\"]\n{CONFIG}");
    fixture.folder.write("forebay.toml", &with_hosts);
    assert_eq!(status(admin, "POST /api/reload", ""), 200);
    assert_eq!(ask(admin, "GET /", &proxy).status, 200);
    let of_proxy = "Origin: https://console.example.com\r\nSec-Fetch-Site: same-origin\r\n";
    for host in [&own, &proxy] {
        assert_eq!(ask(admin, "GET /api/status", &format!("{host}{of_proxy}")).status, 200, "{host}");
    }
    fixture.folder.write("forebay.toml", format!("[console]\nenabled = false\n{with_hosts}"));
    assert_eq!(status(admin, "POST /api/reload", ""), 200);
    let off = ask(admin, "GET /", &own);
    assert_eq!(off.status, 404);
    assert!(String::from_utf8_lossy(&off.body).contains("the console is disabled"), "{off:?}");
    let actions = ask(admin, "GET /api/actions", &own).json();
    let newest = &actions["actions"][0];
    assert_eq!((&newest["action"], &newest["by"]), (&"reload".into(), &"loopback without token".into()));
    assert!(newest["result"].as_str().unwrap().contains("`[console]` has changed"), "{newest}");
    fixture.server().signal("-HUP");
    let by_signal = || ask(admin, "GET /api/actions", &own).json()["actions"][0]["by"] == "SIGHUP";
    assert!(wait_until(by_signal));
}

#[test]
fn session_needs_both_halves_and_ends_by_logout() {
    let access = Access::new(CONFIG);
    let admin = access.admin;
    let [cookie, check] = access.log_in(&access.operator);
    let [other_cookie, other_check] = access.log_in(&access.reader);
    let both = format!("{cookie}{check}");
    for request in ["GET /api/session", "GET /metrics", "GET /api/overview", "GET /debug/memory", "POST /api/reload"] {
        assert_eq!(status(admin, request, &both), 200, "{request}");
        let halves = [
            cookie.clone(),
            check.clone(),
            format!("{cookie}{other_check}"),
            format!("{other_cookie}{check}"),
            format!("{cookie}Forebay-Check: \r\n"),
            String::new(),
        ];
        for half in halves {
            assert_eq!(status(admin, request, &half), 401, "{request} {half}");
        }
    }
    assert_eq!(status(admin, "GET /", ""), 200, "the page itself needs no token");
    let of = |headers: &str| ask(admin, "GET /api/session", &format!("Host: {admin}\r\n{headers}")).json();
    let session = of(&both);
    assert_eq!((&session["name"], session["may"].as_array().unwrap().len()), (&"anna".into(), 2));
    assert!(session["expires"].is_string() && session["check"].is_null() && session["needs_token"] == true);
    let bearer_only = of(&bearer(&access.reader));
    assert!(bearer_only["name"] == "berta" && bearer_only["expires"].is_null(), "{bearer_only}");
    assert_eq!(bearer_only["may"], serde_json::json!(["read"]));
    // Cookies go to every port: one that another port has set is no obstacle.
    let name = cookie.strip_prefix("Cookie: ").unwrap().split('=').next().unwrap().to_owned();
    assert_eq!(name, format!("forebay_{}", admin.port()));
    let both_cookies = cookie.replace("Cookie: ", &format!("Cookie: {name}=x; a=b; "));
    assert_eq!(status(admin, "GET /api/session", &format!("{both_cookies}{check}")), 200);

    let ended = ask(admin, "DELETE /api/session", &format!("Host: {admin}\r\n{both}"));
    assert!(ended.status == 200 && ended.header("set-cookie").contains("Max-Age=0"), "{ended:?}");
    assert_eq!(status(admin, "GET /api/session", &both), 401);
    assert_eq!(status(admin, "GET /api/session", &format!("{other_cookie}{other_check}")), 200);
    let actions = ask(admin, "GET /api/actions", &format!("Host: {admin}\r\n{}", bearer(&access.reader))).json();
    assert_eq!(actions["actions"][0]["by"], "token anna");
}

#[test]
fn cookie_is_secure_with_tls() {
    let access = Access::new(&format!("[admin]\nallowed_hosts = [\"console.example.com\"]\n{CONFIG}"));
    let bearer = bearer(&access.operator);
    let cookie = |headers: &str| {
        let answer = ask(access.admin, "POST /api/session", &format!("{headers}{bearer}"));
        answer.header("set-cookie").to_owned()
    };
    let by_proxy = cookie("Host: console.example.com\r\nOrigin: https://console.example.com\r\n");
    assert!(by_proxy.ends_with("; HttpOnly; SameSite=Strict; Path=/; Secure"), "{by_proxy}");
    let direct = cookie(&format!("Host: {0}\r\nOrigin: http://{0}\r\n", access.admin));
    assert!(direct.ends_with("; HttpOnly; SameSite=Strict; Path=/"), "{direct}");
}

#[test]
fn reader_may_look_and_try_only() {
    let access = Access::new(CONFIG);
    let session = access.log_in(&access.reader).concat();
    for headers in [session, bearer(&access.reader)] {
        for request in ["GET /api/status", "GET /api/dead", "POST /api/try", "POST /api/try/access"] {
            assert_eq!(status(access.admin, request, &headers), 200, "{request}");
        }
        for request in CHANGES {
            let answer = ask(access.admin, request, &format!("Host: {}\r\n{headers}", access.admin));
            assert_eq!((answer.status, &answer.json()["code"]), (403, &"forbidden".into()), "{request}");
        }
    }
    assert_eq!(status(access.admin, "PUT /api/try", &bearer(&access.reader)), 403);
}

#[test]
fn pages_of_others_are_rejected() {
    let access = Access::new(CONFIG);
    let admin = access.admin;
    let session = access.log_in(&access.operator).concat();
    let free = Fixture::new(CONFIG);
    let (own, own_free) = (format!("Host: {admin}\r\n"), format!("Host: {}\r\n", free.server().admin));
    let all = ["GET /api/session", "GET /api/overview", "GET /metrics", "POST /api/session"].into_iter().chain(CHANGES);
    for request in all {
        for (what, headers, header) in [
            ("another port", "Sec-Fetch-Site: same-site\r\nSec-Fetch-Mode: cors\r\n", "Sec-Fetch-Site is `same-site`"),
            (
                "another host",
                "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n",
                "Sec-Fetch-Site is `cross-site`",
            ),
            (
                "a link",
                "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n",
                "cross-site",
            ),
            ("another origin", "Origin: http://127.0.0.1:3000\r\n", "Origin is `http://127.0.0.1:3000`"),
            ("a sandbox", "Origin: null\r\n", "Origin is `null`"),
        ] {
            let bearer = bearer(&access.operator);
            for (address, own, more) in [
                (admin, &own, &*session),
                (admin, &own, &*bearer),
                (admin, &own, ""),
                (free.server().admin, &own_free, ""),
            ] {
                let answer = ask(address, request, &format!("{own}{headers}{more}"));
                assert_eq!((answer.status, &answer.json()["code"]), (403, &"cross_origin".into()), "{what}: {request}");
                assert!(answer.detail().contains(header), "{}", answer.detail());
            }
        }
        // DNS rebinding: the name of an attacker resolves to this machine, and its page counts as one of this origin.
        let rebound = "Host: evil.example:9000\r\nSec-Fetch-Site: same-origin\r\n";
        for (address, more) in [(admin, &*session), (free.server().admin, "")] {
            let answer = ask(address, request, &format!("{rebound}{more}"));
            assert_eq!((answer.status, &answer.json()["code"]), (403, &"cross_origin".into()), "rebound: {request}");
        }
    }
    let by_name = format!("Host: gateway-1.internal:9000\r\n{}", bearer(&access.reader));
    assert_eq!(ask(admin, "GET /metrics", &by_name).status, 200, "a scraper may use any name");
}

#[test]
fn frames_and_parts_of_others_are_rejected() {
    let fixture = Fixture::new(CONFIG);
    let admin = fixture.server().admin;
    let from = |site: &str, mode: &str, dest: &str| {
        format!("Sec-Fetch-Site: {site}\r\nSec-Fetch-Mode: {mode}\r\nSec-Fetch-Dest: {dest}\r\n")
    };
    for (path, headers, wanted) in [
        ("/", from("cross-site", "navigate", "document"), 200),
        ("/", from("same-site", "navigate", "document"), 200),
        ("/", from("none", "navigate", "document"), 200),
        ("/", from("cross-site", "navigate", "iframe"), 403),
        ("/app.js", from("same-origin", "cors", "script"), 200),
        ("/app.js", from("same-site", "no-cors", "script"), 403),
    ] {
        assert_eq!(status(admin, &format!("GET {path}"), &headers), wanted, "{path} {headers}");
    }
    assert_eq!(ask(admin, "GET /", "Host: evil.example\r\n").status, 403);
}

#[test]
fn streams_end_soon_after_their_token() {
    const ENDS: Duration = Duration::from_secs(5);
    let access = Access::new(CONFIG);
    let session = access.log_in(&access.operator).concat();
    let of_reader = access.log_in(&access.reader).concat();
    let open = |path: &str, headers: &str| Stream::open_with(access.admin, path, headers);
    let mut streams = [
        open("/api/live", &session),
        open("/api/tap", &session),
        open("/api/live", &bearer(&access.operator)),
        open("/api/tap", &bearer(&access.operator)),
    ];
    let mut other = open("/api/live", &of_reader);
    assert!(streams.iter().chain([&other]).all(|stream| stream.status == 200));
    access.revoke("anna");
    let began = Instant::now();
    for stream in &mut streams {
        while stream.next().is_some() {}
    }
    assert!(began.elapsed() < ENDS, "{:?}", began.elapsed());
    assert_eq!(status(access.admin, "GET /api/session", &session), 401);
    other.next_with("totals");
    assert_eq!(status(access.admin, "DELETE /api/session", &of_reader), 200);
    let began = Instant::now();
    while other.next().is_some() {}
    assert!(began.elapsed() < ENDS, "after a logout: {:?}", began.elapsed());
}

#[test]
fn first_admin_token_ends_open_access() {
    let fixture = Fixture::new(CONFIG);
    let admin = fixture.server().admin;
    let free = ask(admin, "GET /api/session", &format!("Host: {admin}\r\n")).json();
    assert_eq!(
        free,
        serde_json::json!({"name": null, "may": ["read", "admin"], "needs_token": false, "expires": null})
    );
    assert_eq!(status(admin, "POST /api/session", ""), 200, "none is needed");
    let mut live = Stream::open(admin, "/api/live");
    token(&fixture.folder.data(), &["new", "anna", "--scope", "admin"]);
    while live.next().is_some() {}
    assert_eq!(status(admin, "GET /api/session", ""), 401);
}
