//! `GET /ip`, and the client that is stored with events.

use gateway::GatewayOptions;

use crate::fixture::{Answer, Fixture, open_types};

fn ask(fixture: &Fixture, target: &str, headers: &str) -> Answer {
    let mut client = fixture.connect();
    client.send(format!("GET {target} HTTP/1.1\r\nHost: x\r\n{headers}\r\n"));
    client.answer()
}

fn behind(networks: &[&str]) -> Fixture {
    let trusted_proxies = networks.iter().map(|network| network.parse().unwrap()).collect();
    Fixture::with(open_types(), GatewayOptions { trusted_proxies, ..GatewayOptions::default() })
}

#[test]
fn client_ip_returns_the_peer_address() {
    let fixture = Fixture::open();
    for (target, content_type, body) in [
        ("/ip", "text/plain; charset=utf-8", "127.0.0.1"),
        ("/ip?format=json", "application/json", r#"{"ip":"127.0.0.1"}"#),
        ("/ip?format=jsonp&callback=a.b", "text/javascript; charset=utf-8", r#"a.b({"ip":"127.0.0.1"});"#),
    ] {
        let answer = ask(&fixture, target, "X-Forwarded-For: 203.0.113.7\r\nForwarded: for=203.0.113.7\r\n");
        assert_eq!((answer.status, answer.header("content-type")), (200, Some(content_type)));
        assert_eq!(String::from_utf8(answer.body.clone()).unwrap(), body);
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
    }
    let answer = ask(&fixture, "/ip?format=jsonp&callback=alert(1)", "");
    assert_eq!((answer.status, answer.code().as_str()), (400, "bad_request"));
    assert_eq!(answer.json()["title"], "Invalid query");
    let answer = fixture.post("/ip", "", "");
    assert_eq!((answer.status, answer.header("allow")), (405, Some("GET, HEAD, OPTIONS")));
}

#[test]
fn trusted_proxy_supplies_the_client_address() {
    let fixture = behind(&["127.0.0.0/8", "10.0.0.0/8"]);
    let forwarded = "X-Forwarded-For: 1.1.1.1, 203.0.113.7\r\nX-Forwarded-For: 10.1.1.1\r\n";
    assert_eq!(ask(&fixture, "/ip", forwarded).body, b"203.0.113.7");
    assert_eq!(ask(&fixture, "/ip", "Forwarded: for=\"[2001:db8::7]:1\"\r\n").body, b"2001:db8::7");
    assert_eq!(ask(&fixture, "/ip", "").body, b"127.0.0.1");
    assert_eq!(fixture.post("/ingest/event", forwarded, "1").status, 200);
    assert_eq!(fixture.post("/ingest/batch", forwarded, "2\n").status, 200);
    let other = behind(&["10.0.0.0/8"]);
    assert_eq!(other.post("/ingest/event", forwarded, "1").status, 200);
    let clients = |fixture: &Fixture| fixture.stored().into_iter().map(|event| event.client).collect::<Vec<_>>();
    assert_eq!((clients(&fixture), clients(&other)), (vec!["203.0.113.7".to_owned(); 2], vec!["127.0.0.1".to_owned()]));
}
