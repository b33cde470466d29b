//! Bridges, with a real NATS server and services on it.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use access::Scope;
use gateway::{BridgeAccess, BridgeRule, GatewayOptions, Methods};
use limits::memory::Budgets;
use nats::{Bus, BusError, ConnectOptions, Message};
use testkit::nats::NatsServer;
use tokio::runtime::{Builder, LocalOptions};

use crate::fixture::{Answer, Client, Fixture, open_types};

/// Headers and payload of an answer.
type Reply = (String, Vec<u8>);

/// A service on a subject, which answers each request with what a closure returns: none, one or several answers.
struct Service {
    ends: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Service {
    fn start(
        server: &NatsServer,
        subject: &str,
        queue: Option<&'static str>,
        answer: impl FnMut(&Message) -> Vec<Reply> + Send + 'static,
    ) -> Self {
        let (options, subject, mut answer) = (options(server, "service"), subject.parse().unwrap(), answer);
        let (ends, ended) = tokio::sync::oneshot::channel::<()>();
        let (ready, is_ready) = channel();
        let thread = thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default()).unwrap();
            runtime.block_on(async move {
                let bus = Bus::start(options);
                let mut subscription = bus.subscribe(&subject, queue);
                bus.connected().await;
                // The server has the subscription before it answers a request of the same connection.
                let nothing = nats::Outgoing { subject: &"nothing".parse().unwrap(), headers: b"", payload: b"" };
                let _ = bus.request(&nothing, Duration::from_secs(9)).await;
                ready.send(()).unwrap();
                let serve = async {
                    while let Some(message) = subscription.next().await {
                        for (headers, payload) in answer(&message) {
                            let to = message.reply().unwrap();
                            while let Err(error) = bus.publish(to, headers.as_bytes(), &payload) {
                                assert!(matches!(error, BusError::Unavailable(_)), "{error}");
                                tokio::task::yield_now().await;
                            }
                        }
                    }
                };
                tokio::select! { () = serve => {} _ = ended => {} }
                bus.close().await;
            });
        });
        is_ready.recv().unwrap();
        Self { ends: Some(ends), thread: Some(thread) }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        drop(self.ends.take());
        let ended = self.thread.take().unwrap().join();
        assert!(ended.is_ok() || thread::panicking());
    }
}

fn options(server: &NatsServer, name: &'static str) -> ConnectOptions {
    options_of(&server.address().to_string(), name)
}

fn options_of(address: &str, name: &'static str) -> ConnectOptions {
    ConnectOptions { servers: format!("nats://{address}").parse().unwrap(), credentials: None, ca: None, name }
}

fn rule(path: &str, subject: &str) -> BridgeRule {
    BridgeRule {
        path: path.parse().unwrap(),
        subject: subject.parse().unwrap(),
        access: BridgeAccess::Free,
        timeout: Duration::from_secs(20),
        methods: Methods::GET_AND_POST,
        pass: Vec::new(),
        max_waiting: 1024,
    }
}

/// A gateway that is connected to the bus.
fn gateway(bus: ConnectOptions, bridges: Vec<BridgeRule>) -> Fixture {
    gateway_with(GatewayOptions { bus: Some(bus), bridges, ..GatewayOptions::default() })
}

/// The same with other options too.
fn gateway_with(options: GatewayOptions) -> Fixture {
    let fixture = Fixture::with(open_types(), GatewayOptions { tick: Duration::from_millis(10), ..options });
    fixture.wait("the shard connects", |counters| {
        counters.bus_connections().all(|is| is) && counters.bus_connections().count() == 1
    });
    fixture
}

fn request(fixture: &Fixture, method: &str, target: &str, headers: &str) -> Answer {
    let mut client = fixture.connect();
    client.send(format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n"));
    if method == "HEAD" { client.answer_to_head() } else { client.answer() }
}

fn get(fixture: &Fixture, target: &str) -> Answer {
    request(fixture, "GET", target, "")
}

/// The requests of a bridge that wait for an answer.
fn waiting(fixture: &Fixture) -> usize {
    fixture.counters().bridges().all().iter().map(|(_, counters)| counters.waiting()).sum()
}

fn reply(headers: &str, payload: &str) -> Vec<Reply> {
    vec![(headers.to_owned(), payload.as_bytes().to_vec())]
}

/// A service that passes on what it gets, and what it is to answer.
fn scripted(server: &NatsServer, subject: &str) -> (Service, Receiver<Message>, Sender<Vec<Reply>>) {
    let ((got, gets), (script, scripts)) = (channel(), channel::<Vec<Reply>>());
    let service = Service::start(server, subject, None, move |message| {
        got.send(message.clone()).unwrap();
        scripts.recv().unwrap_or_default()
    });
    (service, gets, script)
}

#[test]
fn service_gets_path_headers_and_body() {
    let Some(server) = NatsServer::start() else { return };
    let (_service, gets, script) = scripted(&server, "shop.lines");
    let pass = vec!["accept-language".into()];
    let bridge = BridgeRule { pass, ..rule("/orders/{id}/lines/{line}", "shop.lines") };
    let fixture = gateway(options(&server, "bridge"), vec![bridge]);
    script.send(reply("", "ok")).unwrap();
    let traced = "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n";
    let headers = format!(
        "Accept-Language: de\tx\r\nContent-Encoding: gzip\r\nContent-Encoding: br\r\nCookie: a=b\r\nAuthorization: Bearer x\r\nForebay-Source: me\r\nContent-Type: text/x\r\n{traced}"
    );
    let mut client = fixture.connect();
    client.post("/orders/a%2F%0d%0ab/lines/7?q=%20x&y", &headers, b"body");
    let answer = client.answer();
    assert_eq!((answer.status, &answer.body[..]), (200, &b"ok"[..]));
    let message = gets.recv().unwrap();
    assert_eq!(message.payload(), b"body");
    let headers = message.headers().unwrap();
    let header = |name| headers.get(name).map(|value| String::from_utf8(value.to_vec()).unwrap());
    for (name, value) in [
        ("Forebay-Method", "POST"),
        ("Forebay-Path", "/orders/a%2F%0d%0ab/lines/7"),
        ("Forebay-Query", "q=%20x&y"),
        ("Forebay-Param-id", "a%2F%0d%0ab"),
        ("Forebay-Param-line", "7"),
        ("Forebay-Client", "127.0.0.1"),
        ("Forebay-Source", ""),
        ("Forebay-Deadline", "20000"),
        ("Content-Type", "text/x"),
        ("accept-language", "de\tx"),
        ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
    ] {
        assert_eq!(header(name).as_deref(), Some(value), "{name}");
    }
    assert!(header("Forebay-Request-Id").is_some_and(|id| id.len() == 36));
    assert_eq!([header("Cookie"), header("Authorization")], [None, None]);
    let codings = headers.iter().filter(|(name, _)| *name == b"Content-Encoding").map(|(_, value)| value);
    assert_eq!(codings.collect::<Vec<_>>(), [&b"gzip"[..], b"br"]);
    assert_eq!(headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case(b"forebay-source")).count(), 1);
}

#[test]
fn answer_of_the_service_is_the_response() {
    let Some(server) = NatsServer::start() else { return };
    let (_service, _gets, script) = scripted(&server, "a");
    let fixture = gateway(options(&server, "bridge"), vec![rule("/a", "a")]);
    let ask = |method: &str, headers: &str, payload: &str| {
        script.send(reply(headers, payload)).unwrap();
        let answer = request(&fixture, method, "/a", "");
        let text = String::from_utf8(answer.body.clone()).unwrap();
        (answer.status, text, answer)
    };
    let lines = "Forebay-Status: 201\r\nContent-Type: text/x\r\nETag: \"7\"\r\nLocation: /b\r\nCache-Control: no-store\r\nContent-Encoding: br\r\nVary: accept\r\nSet-Cookie: a\r\nForebay-Method: GET\r\n";
    let (status, text, answer) = ask("GET", lines, "made");
    assert_eq!((status, &*text), (201, "made"));
    for (name, value) in [
        ("content-type", Some("text/x")),
        ("etag", Some("\"7\"")),
        ("location", Some("/b")),
        ("cache-control", Some("no-store")),
        ("content-encoding", Some("br")),
        ("vary", Some("accept")),
        ("set-cookie", None),
        ("forebay-method", None),
    ] {
        assert_eq!(answer.header(name), value, "{name}");
    }
    let (status, text, answer) = ask("GET", "Forebay-Status: 204\r\n", "ignored");
    assert_eq!((status, &*text, answer.header("content-length")), (204, "", None));
    let (status, text, answer) = ask("GET", "Forebay-Status: 205\r\n", "ignored");
    assert_eq!((status, &*text, answer.header("content-length")), (205, "", Some("0")));
    let (status, _, answer) = ask("HEAD", "", "12345");
    assert_eq!((status, answer.header("content-length")), (200, Some("5")));
    // NATS micro services.
    let (status, text, _) = ask("GET", "Nats-Service-Error-Code: 404\r\nNats-Service-Error: no order\r\n", "");
    assert_eq!((status, &*text), (404, "no order"));
    let (status, text, _) = ask("GET", "Nats-Service-Error: no\r\nNats-Service-Error-Code: 500\r\n", "{\"why\":1}");
    assert_eq!((status, &*text), (500, "{\"why\":1}"));
    for wrong in [
        "Forebay-Status: 99\r\n",
        "Forebay-Status: 199\r\n",
        "Forebay-Status: 600\r\n",
        "Forebay-Status: ok\r\n",
        "Forebay-Status:\r\n",
        "Nats-Service-Error-Code: 200\r\n",
        "Nats-Service-Error-Code: 12345\r\n",
        "ETag: \u{fc}\r\n",
        "Location: a\u{7}b\r\n",
        "no colon\r\n",
    ] {
        let (status, _, answer) = ask("GET", wrong, "x");
        assert_eq!((status, answer.code()), (502, "bad_reply".to_owned()), "{wrong}");
    }
    assert_eq!(waiting(&fixture), 0);
}

#[test]
fn failures_have_their_codes() {
    let Some(server) = NatsServer::start() else { return };
    let silent = Service::start(&server, "silent", None, |_| Vec::new());
    let short = BridgeRule { timeout: Duration::from_millis(150), ..rule("/silent", "silent") };
    let one = BridgeRule { max_waiting: 1, ..rule("/one", "silent") };
    let fixture = gateway(options(&server, "bridge"), vec![rule("/nobody", "nobody"), one, short]);
    let answer = get(&fixture, "/nobody");
    assert_eq!((answer.status, answer.code()), (503, "no_worker".to_owned()));
    assert!(answer.header("retry-after").is_some());
    let begun = Instant::now();
    let answer = get(&fixture, "/silent");
    assert_eq!((answer.status, answer.code()), (504, "bridge_timeout".to_owned()));
    assert!(begun.elapsed() >= Duration::from_millis(150));
    let mut client = fixture.connect();
    client.send("GET /one HTTP/1.1\r\nHost: localhost\r\n\r\n");
    fixture.wait("the first request waits", |_| waiting(&fixture) == 1);
    let answer = get(&fixture, "/one");
    assert_eq!((answer.status, answer.code()), (503, "bridge_busy".to_owned()));
    assert!(answer.header("retry-after").is_some());
    let large = vec![b'x'; 2_200_000];
    assert_eq!(fixture.post("/nobody", "", large).code(), "too_large");
    drop(silent);
    server.kill();
    let answer = client.answer();
    assert_eq!((answer.status, answer.code()), (502, "bus_lost".to_owned()));
    let answer = get(&fixture, "/silent");
    assert_eq!((answer.status, answer.code()), (503, "bus_unavailable".to_owned()));
    assert!(answer.header("retry-after").is_some());
    server.run();
    let _again = Service::start(&server, "nobody", None, |_| reply("", "here"));
    fixture.wait("the bridge reconnects", |_| get(&fixture, "/nobody").status == 200);
    assert_eq!(waiting(&fixture), 0);
    let counted: u64 = fixture
        .counters()
        .bridges()
        .all()
        .iter()
        .flat_map(|(_, counters)| counters.answers().collect::<Vec<_>>())
        .map(|(_, count)| count)
        .sum();
    assert!(counted >= 7, "{counted}");
}

#[test]
fn slow_upload_takes_no_place() {
    let Some(server) = NatsServer::start() else { return };
    let _service = Service::start(&server, "a", None, |message| vec![(String::new(), message.payload().to_vec())]);
    let fixture = gateway(options(&server, "bridge"), vec![BridgeRule { max_waiting: 1, ..rule("/a", "a") }]);
    let mut uploads = [(); 4].map(|()| fixture.connect());
    for upload in &mut uploads {
        upload.send("POST /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n");
        assert_eq!(upload.answer().status, 100);
        upload.send("a");
    }
    assert_eq!((waiting(&fixture), get(&fixture, "/a").status), (0, 200));
    for upload in &mut uploads {
        upload.send("bc");
        assert_eq!(upload.answer().body, b"abc");
    }
}

/// A request is either not sent, or its response isn't one that promises so.
#[test]
fn answers_that_find_no_memory_are_dropped() {
    let Some(server) = NatsServer::start_with("max_payload: 8MB\n") else { return };
    let asked = Arc::new(AtomicUsize::new(0));
    let counts = asked.clone();
    let size = |message: &Message| match message.headers().unwrap().get("Forebay-Param-size").unwrap() {
        b"large" => 5_000_000,
        _ => 500,
    };
    let _service = Service::start(&server, "a", None, move |message| {
        counts.fetch_add(1, Ordering::Relaxed);
        vec![(String::new(), vec![b'x'; size(message)])]
    });
    let bus = Some(options(&server, "bridge"));
    let bridges = vec![rule("/a/{size}", "a")];
    // The memory of reads is 4 MiB and 64 KiB.
    let fixture = gateway_with(GatewayOptions { bus, bridges, memory: Budgets::LEAST, ..GatewayOptions::default() });
    let answer = get(&fixture, "/a/large");
    assert_eq!((answer.status, answer.code()), (502, "reply_dropped".to_owned()));
    assert_eq!(answer.header("retry-after"), None);
    // Four at a time are 20 MB: most are expected to be too large, after the first ones.
    let address = fixture.address();
    let refused: usize = thread::scope(|scope| {
        let all = [(); 4].map(|()| {
            scope.spawn(move || {
                let mut refused = 0;
                for _ in 0..20 {
                    let mut client = Client::connect(address);
                    client.send("GET /a/large HTTP/1.1\r\nHost: localhost\r\n\r\n");
                    let answer = client.answer();
                    match (answer.status, answer.code().as_str()) {
                        (502, "reply_dropped") => {}
                        (503, "overload") => {
                            assert!(answer.header("retry-after").is_some());
                            refused += 1;
                        }
                        other => panic!("{other:?}"),
                    }
                }
                refused
            })
        });
        all.into_iter().map(|one| one.join().unwrap()).sum()
    });
    assert_eq!(asked.load(Ordering::Relaxed), 1 + 80 - refused, "503 means that nothing was sent");
    for _ in 0..3 {
        assert_eq!(get(&fixture, "/a/small").body.len(), 500);
    }
    assert_eq!(waiting(&fixture), 0);
}

/// The first answers may be of any size, so these requests wait for each other. A service that is slow doesn't make them fail.
#[test]
fn first_requests_are_all_sent_to_a_slow_service() {
    const COUNT: usize = 20;
    let Some(server) = NatsServer::start() else { return };
    let asked = Arc::new(AtomicUsize::new(0));
    let counts = asked.clone();
    let silent = Service::start(&server, "silent", None, move |_| {
        counts.fetch_add(1, Ordering::Relaxed);
        Vec::new()
    });
    let (bus, bridges) = (Some(options(&server, "bridge")), vec![rule("/a", "silent")]);
    let fixture = gateway_with(GatewayOptions { bus, bridges, memory: Budgets::LEAST, ..GatewayOptions::default() });
    let mut all = [(); COUNT].map(|()| fixture.connect());
    all.iter_mut().for_each(|one| one.send("GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    fixture.wait("all are sent", |_| asked.load(Ordering::Relaxed) == COUNT);
    drop(silent);
    server.kill();
    for one in &mut all {
        assert_eq!(one.answer().code(), "bus_lost");
    }
}

#[test]
fn scripts_of_allowed_origins_may_send_passed_headers() {
    let Some(server) = NatsServer::start() else { return };
    let _service = Service::start(&server, "a", None, |_| reply("ETag: \"7\"\r\n", ""));
    let bridge = BridgeRule { pass: vec!["x-shop".into()], ..rule("/a", "a") };
    let (bus, cors_origins) = (Some(options(&server, "bridge")), vec!["http://shop".to_owned()]);
    let fixture =
        gateway_with(GatewayOptions { bus, cors_origins, bridges: vec![bridge], ..GatewayOptions::default() });
    let preflight = "Origin: http://shop\r\nAccess-Control-Request-Method: POST\r\n";
    let answer = request(&fixture, "OPTIONS", "/a", preflight);
    let allowed = answer.header("access-control-allow-headers").unwrap();
    assert!(["x-shop", "traceparent"].iter().all(|name| allowed.split(", ").any(|one| one == *name)), "{allowed}");
    let answer = request(&fixture, "GET", "/a", "Origin: http://shop\r\n");
    let exposed = answer.header("access-control-expose-headers").unwrap();
    assert!(exposed.split(", ").any(|name| name == "etag"), "{exposed}");
}

#[test]
fn free_bridge_advises_no_token() {
    let bridges = vec![rule("/a", "a"), BridgeRule { access: BridgeAccess::Scope(Scope::Ingest), ..rule("/b", "a") }];
    let allowed_hosts = Some(Vec::new());
    let fixture = Fixture::with(open_types(), GatewayOptions { bridges, allowed_hosts, ..GatewayOptions::default() });
    for (path, advises) in [("/a", false), ("/b", true)] {
        for line in ["Host: evil.example\r\n", "Host: localhost\r\nOrigin: http://evil.example\r\n"] {
            let mut client = fixture.connect();
            client.send(format!("GET {path} HTTP/1.1\r\n{line}\r\n"));
            let answer = client.answer();
            let text = String::from_utf8(answer.body.clone()).unwrap();
            assert_eq!((answer.code().as_str(), text.contains("token")), ("cross_origin", advises), "{text}");
        }
    }
}

#[test]
fn forbidden_subject_is_reported() {
    let permissions = "publish: [\"ok\", \"_INBOX.>\"], subscribe: [\"_INBOX.>\", \"ok\"]";
    let users = format!(
        "jetstream: false\nauthorization {{ users [ {{ user: ann, password: x, permissions: {{ {permissions} }} }} ] }}\n"
    );
    let Some(server) = NatsServer::start_with(&users) else { return };
    let address = server.address();
    let bus = options_of(&format!("ann:x@{address}"), "bridge");
    let fixture = gateway(bus, vec![rule("/no", "no")]);
    let answer = get(&fixture, "/no");
    assert_eq!((answer.status, answer.code()), (502, "bus_refused".to_owned()));
}

#[test]
fn place_of_a_client_that_has_gone_is_free_after_the_timeout() {
    let Some(server) = NatsServer::start() else { return };
    let _silent = Service::start(&server, "silent", None, |_| Vec::new());
    let bridge = BridgeRule { timeout: Duration::from_millis(500), ..rule("/silent", "silent") };
    let fixture = gateway(options(&server, "bridge"), vec![bridge]);
    let mut client = fixture.connect();
    client.send("GET /silent HTTP/1.1\r\nHost: localhost\r\n\r\n");
    fixture.wait("the request waits", |_| waiting(&fixture) == 1);
    drop(client);
    fixture.wait("nothing waits", |_| waiting(&fixture) == 0);
}

#[test]
fn paths_methods_and_pages_are_checked() {
    let Some(server) = NatsServer::start() else { return };
    let _service = Service::start(&server, "a", None, |_| reply("", "a"));
    let delete = BridgeRule { methods: "DELETE".parse().unwrap(), ..rule("/a/{x}", "a") };
    let fixture = gateway(options(&server, "bridge"), vec![rule("/a/{x}", "a"), delete]);
    assert_eq!(get(&fixture, "/a/1").status, 200);
    assert_eq!(request(&fixture, "DELETE", "/a/1", "").status, 200);
    let answer = request(&fixture, "PUT", "/a/1", "");
    assert_eq!((answer.status, answer.code()), (405, "method_not_allowed".to_owned()));
    assert_eq!(answer.header("allow"), Some("DELETE, GET, HEAD, OPTIONS, POST"));
    assert_eq!(request(&fixture, "OPTIONS", "/a/1", "").status, 204);
    for path in ["/a", "/a/", "/a/1/2", "/b"] {
        assert_eq!(get(&fixture, path).status, 404, "{path}");
    }
    assert_eq!(get(&fixture, "/ip").status, 200);
    // A foreign page's script isn't let in, although the bridge needs no token.
    let answer = request(&fixture, "GET", "/a/1", "Origin: http://evil.example\r\n");
    assert_eq!((answer.status, answer.code()), (403, "cross_origin".to_owned()));
    let mut client = fixture.connect();
    client.send("GET /a/\u{1} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(client.answer().status, 400);
}

#[test]
fn each_request_gets_its_own_answer_once() {
    let Some(server) = NatsServer::start() else { return };
    // Two answers to each, and those of the queue group's members are mixed.
    let echo = |message: &Message| {
        let headers = message.headers().unwrap();
        let id = headers.get("Forebay-Param-id").unwrap().to_vec();
        vec![(String::new(), id), (String::new(), b"the second answer".to_vec())]
    };
    let _services = [(); 3].map(|()| Service::start(&server, "echo", Some("group"), echo));
    let fixture = gateway(options(&server, "bridge"), vec![rule("/echo/{id}", "echo")]);
    let address = fixture.address();
    thread::scope(|scope| {
        for number in 0..32 {
            scope.spawn(move || {
                let mut client = Client::connect(address);
                let mut seen = HashSet::new();
                for turn in 0..40 {
                    let id = format!("{number}-{turn}");
                    client.send(format!("GET /echo/{id} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
                    let answer = client.answer();
                    assert_eq!((answer.status, String::from_utf8(answer.body).unwrap()), (200, id.clone()));
                    assert!(seen.insert(id));
                }
            });
        }
    });
    assert_eq!(waiting(&fixture), 0);
}
