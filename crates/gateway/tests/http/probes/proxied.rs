//! The same probes through real proxies: regardless of what they forward, no client gets the response to another client's request, and
//! every processed request gets a response.

use std::io::{ErrorKind, Read};
use std::time::Duration;

use super::probe::{self, Probe};
use super::proxy::{Kind, Proxy};
use super::{answered, odd, refused};
use crate::fixture::{Client, Fixture};

/// A client that has received nothing for so long closes its sending side: a proxy may wait for the rest of what it understood as a body.
/// It does no harm if the client does so too early.
const QUIET: Duration = Duration::from_millis(300);

/// Everything that comes over a connection until it ends.
fn all_answers(client: &mut Client) -> String {
    let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
    client.reader.get_ref().set_read_timeout(Some(QUIET)).unwrap();
    loop {
        match client.reader.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => bytes.extend_from_slice(&piece[..read]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                client.reader.get_ref().set_read_timeout(None).unwrap();
                client.finish_sending();
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
            Err(error) => panic!("{error}"),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Posts a marker on a new connection; returns the error if the response isn't the one to it.
fn post_marker(fixture: &Fixture, proxy: &Proxy, marker: &str) -> Option<String> {
    let mut client = Client::connect(proxy.address);
    client.post("/ingest/event", "Accept: application/json\r\nConnection: close\r\n", marker.as_bytes());
    let answer = client.answer();
    if answer.status != 200 {
        return Some(format!("another client got {answer:?}"));
    }
    let id = answer.json()["id"].as_str().unwrap().to_owned();
    let payload = fixture.stored().into_iter().find(|event| event.id == id).map(|event| event.payload);
    (payload.as_deref() != Some(marker)).then(|| format!("another client got the answer to {payload:?}"))
}

fn failure(fixture: &Fixture, proxy: &Proxy, probe: &Probe, number: usize) -> Option<String> {
    let before = fixture.stored().len();
    let mut client = Client::connect(proxy.address);
    let _ = client.try_send([probe.bytes.as_slice(), &probe::last_post(&format!("\"marker {number}\""))].concat());
    let answers = all_answers(&mut client);
    let done = answers.matches("HTTP/1.1 200 ").count();
    let stored = fixture.payloads().split_off(before);
    let fault = if stored.len() == done {
        post_marker(fixture, proxy, &format!("\"other {number}\""))
    } else {
        Some(format!("{done} answers for {stored:?}"))
    };
    fault.map(|fault| format!("{probe:?}: {fault}; {answers}"))
}

fn check(kind: Kind) {
    let fixture = Fixture::open();
    let Some(proxy) = kind.start(fixture.address()) else { return };
    for number in 0..10 {
        assert_eq!(post_marker(&fixture, &proxy, &format!("\"first {number}\"")), None);
    }
    assert_eq!(fixture.counters().connections_accepted(), 1, "clients share a connection to the gateway");
    let probes: Vec<_> = [refused(), answered(), odd::last()].into_iter().flatten().collect();
    let failures: Vec<_> =
        probes.iter().enumerate().filter_map(|(number, probe)| failure(&fixture, &proxy, probe, number)).collect();
    assert!(failures.is_empty(), "{} probes:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn nginx_never_mixes_up_responses() {
    check(Kind::Nginx);
}

#[test]
fn haproxy_never_mixes_up_responses() {
    check(Kind::Haproxy);
}

#[test]
fn lenient_haproxy_never_mixes_up_responses() {
    check(Kind::LenientHaproxy);
}
