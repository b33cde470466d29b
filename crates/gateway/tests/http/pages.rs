//! Pages of other origins, in the browser of a user who can reach the gateway, read and write nothing if no token is needed.

use std::sync::Arc;

use access::{Demand, Name, NewToken, Scope, Token, TokenSet, Tokens};
use gateway::GatewayOptions;

use crate::fixture::{Answer, Fixture, open_types};

const OWN: &str = "127.0.0.1:8080";

fn fixture(allowed_hosts: Option<&[&str]>, cors_origins: &[&str]) -> Fixture {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let options = GatewayOptions {
        allowed_hosts: allowed_hosts.map(owned),
        cors_origins: owned(cors_origins),
        ..GatewayOptions::default()
    };
    Fixture::with(open_types(), options)
}

fn ask(fixture: &Fixture, line: &str, headers: &str) -> Answer {
    let mut client = fixture.connect();
    client.send(format!("{line}\r\n{headers}Connection: close\r\nContent-Length: 1\r\n\r\n1"));
    client.answer()
}

fn is_refused(answer: &Answer) -> bool {
    if answer.status != 403 {
        return false;
    }
    assert_eq!((answer.code().as_str(), answer.header("vary")), ("cross_origin", Some("origin")));
    true
}

/// Each route, and whether it rejects pages of other origins.
const ROUTES: [(&str, bool); 11] = [
    ("POST /ingest/event", true),
    ("POST /ingest/event/a", true),
    ("POST /ingest/batch", true),
    ("GET /events", true),
    ("GET /events/2651fa94-4d60-8482-855f-ec6e00000007", true),
    ("GET /objects/a/b", true),
    ("GET /ip", true),
    ("GET /nowhere", true),
    ("GET /healthz", false),
    ("GET /readyz", false),
    ("OPTIONS /ingest/event", false),
];

#[test]
fn foreign_host_is_rejected_on_loopback() {
    let fixture = fixture(Some(&["events.example"]), &[]);
    let hosts = [OWN, "LOCALHOST:8080", "localhost.", "[::1]:8080", "events.example", "Events.Example.:80"];
    let foreign_hosts = ["evil.example:8080", "127.0.0.1.evil.example", "", "x.events.example"];
    for (request, is_guarded) in ROUTES {
        let refused =
            |host: &str| is_refused(&ask(&fixture, &format!("{request} HTTP/1.1"), &format!("Host: {host}\r\n")));
        assert!(!hosts.iter().any(|host| refused(host)), "{request}");
        assert_eq!(foreign_hosts.map(refused), [is_guarded; 4], "{request}");
        let (method, path) = request.split_once(' ').unwrap();
        let refused = |start: &str, version: &str, headers: &str| {
            is_refused(&ask(&fixture, &format!("{method} {start}{path} HTTP/{version}"), headers))
        };
        assert!(!refused("http://localhost", "1.1", "Host: localhost\r\n"), "{request}");
        assert_eq!(refused("http://evil.example", "1.1", "Host: evil.example\r\n"), is_guarded, "{request}");
        assert_eq!(refused("http://evil.example", "1.0", ""), is_guarded, "{request}");
        assert!(!refused("", "1.0", ""), "a browser sends Host: {request}");
        assert_eq!(refused("", "1.0", "Origin: http://localhost\r\n"), is_guarded, "{request}");
    }
    let stored = fixture.payloads().len();
    // Each of the six hosts, the whole URL and the request without a host post to three routes.
    assert_eq!(stored, 8 * 3);
}

#[test]
fn foreign_origin_is_always_rejected() {
    for (allowed_hosts, host) in [(Some(&[][..]), OWN), (None, "gateway:8080")] {
        let fixture = fixture(allowed_hosts, &["https://app.example"]);
        for (request, is_guarded) in ROUTES {
            let answer = |origin: &str| {
                let origin = if origin.is_empty() { String::new() } else { format!("Origin: {origin}\r\n") };
                ask(&fixture, &format!("{request} HTTP/1.1"), &format!("Host: {host}\r\n{origin}"))
            };
            for origin in ["", "https://app.example", &format!("http://{host}"), &format!("https://{host}")] {
                assert!(!is_refused(&answer(origin)), "{request} from {origin}");
                assert_eq!(answer(origin).header("vary"), Some("origin"), "{request}");
            }
            for origin in ["http://evil.example", "null", "http://127.0.0.1:3000", "http://app.example", "x"] {
                assert_eq!(is_refused(&answer(origin)), is_guarded, "{request} from {origin}");
            }
        }
    }
}

/// The client waits for a go-ahead, and never gets one.
#[test]
fn cross_origin_body_is_not_read() {
    let fixture = fixture(Some(&[]), &[]);
    let mut client = fixture.connect();
    let headers = "Host: evil.example\r\nContent-Length: 30000000\r\nExpect: 100-continue\r\n";
    client.send(format!("POST /ingest/batch HTTP/1.1\r\n{headers}\r\n"));
    assert!(is_refused(&client.answer()));
    assert!(client.read_to_close());
}

#[test]
fn cross_origin_rejection_names_the_setting() {
    let fixture = fixture(Some(&[]), &[]);
    let detail = |headers: &str| {
        let answer = ask(&fixture, "GET /ip HTTP/1.1", headers);
        answer.json()["detail"].as_str().unwrap().to_owned()
    };
    assert!(detail("Host: evil.example\r\n").contains("`allowed_hosts`"));
    assert!(detail("Host: localhost\r\nOrigin: http://evil.example\r\n").contains("`cors_origins`"));
}

#[test]
fn token_works_under_any_host_name() {
    let secret = NewToken::of_random([1; 32]);
    let name: Name = "web".parse().unwrap();
    let scopes = [Scope::Ingest].into_iter().collect();
    let digest = secret.digest();
    let token = Token {
        name: name.clone(),
        digest,
        scopes,
        source: name,
        origin: None,
        partial: None,
        types: None,
        created: 0,
        expires: None,
    };
    for demand in [Demand::WithTokens, Demand::Never] {
        let tokens = Arc::new(Tokens::new(TokenSet::new(vec![token.clone()])));
        let options = GatewayOptions { tokens, demand, allowed_hosts: Some(Vec::new()), ..GatewayOptions::default() };
        let fixture = Fixture::with(open_types(), options);
        let strange = "Host: events.example\r\nOrigin: https://evil.example\r\n";
        let with_token = format!("{strange}Authorization: Bearer {}\r\n", secret.expose());
        assert_eq!(ask(&fixture, "POST /ingest/event HTTP/1.1", &with_token).status, 200, "{demand:?}");
        let without = ask(&fixture, "POST /ingest/event HTTP/1.1", strange);
        assert_eq!(without.code(), if demand == Demand::Never { "cross_origin" } else { "unauthorized" });
    }
}
