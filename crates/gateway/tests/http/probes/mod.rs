//! Malformed and smuggling HTTP: for each probe, the number of responses, and whether a request after it is parsed as one. Each row names
//! the section of RFC 9110 or RFC 9112 that it follows.

mod answers;
mod chunks;
mod codings;
mod lengths;
mod lines;
mod odd;
mod probe;
mod proxied;
mod proxy;
mod sizes;
mod targets;

use crate::fixture::{Client, Fixture};
use answers::Answers;
use probe::{Outcome, Probe};

/// Requests that must be rejected, and their connections closed.
fn refused() -> Vec<Probe> {
    let tables =
        [lengths::refused, codings::refused, lines::refused, targets::refused, chunks::refused, sizes::refused];
    tables.into_iter().flat_map(|table| table()).collect()
}

/// Requests that look odd but have one meaning.
fn answered() -> Vec<Probe> {
    let tables = [odd::answered, chunks::answered, sizes::answered];
    tables.into_iter().flat_map(|table| table()).collect()
}

/// How a client sends its bytes.
#[derive(Clone, Copy, Debug)]
enum Pace {
    AtOnce,
    /// Each byte of a short probe separately, so every reader stops at each byte.
    InPieces,
}

impl Pace {
    fn send(self, client: &mut Client, bytes: &[u8]) {
        let piece = match self {
            Self::AtOnce => bytes.len(),
            Self::InPieces => bytes.len().div_ceil(1000),
        };
        // A server that has rejected the request may have closed before it has read all of it.
        let _ = bytes.chunks(piece).try_for_each(|piece| client.try_send(piece));
    }
}

/// Sends the probe with a valid event after it, the marker; returns what differs from the expected result.
fn failure(fixture: &Fixture, probe: &Probe, pace: Pace, number: usize) -> Option<String> {
    let marker = format!("\"marker {number}\"");
    let before = fixture.payloads().len();
    let mut client = fixture.connect();
    pace.send(&mut client, &[probe.bytes.as_slice(), &probe::last_post(&marker)].concat());
    let answers = Answers::read(&mut client);
    let stored = fixture.payloads().split_off(before);
    let markers = stored.iter().filter(|payload| **payload == marker).count();
    let fits = match probe.outcome {
        Outcome::Refused(statuses) => matches!(answers.statuses[..], [status] if statuses.contains(&status)),
        Outcome::Last(status) => answers.statuses == [status],
        Outcome::Answered(status) => answers.statuses == [status, 200],
    };
    let fits = fits
        && answers.says_that_it_closes
        && markers == usize::from(matches!(probe.outcome, Outcome::Answered(_)))
        && stored.len() == answers.statuses.iter().filter(|status| **status == 200).count();
    (!fits).then(|| format!("{pace:?} {probe:?}: {answers:?}, stored {stored:?}"))
}

fn check(probes: &[Probe], paces: &[Pace]) {
    let fixture = Fixture::open();
    let cases = paces.iter().flat_map(|pace| probes.iter().map(move |probe| (*pace, probe)));
    let failures: Vec<_> =
        cases.enumerate().filter_map(|(number, (pace, probe))| failure(&fixture, probe, pace, number)).collect();
    assert!(failures.is_empty(), "{} probes:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn rejected_probe_gets_one_response_and_ends_connection() {
    let probes = refused();
    assert!(probes.len() >= 80, "{}", probes.len());
    check(&probes, &[Pace::AtOnce, Pace::InPieces]);
}

#[test]
fn odd_probe_gets_one_response_and_next_another() {
    check(&answered(), &[Pace::AtOnce, Pace::InPieces]);
}

#[test]
fn bytes_after_last_request_are_no_request() {
    check(&odd::last(), &[Pace::AtOnce]);
}

/// RFC 9112 §8: a client that closes before a request's end has sent none. To part of a head there may be no response.
#[test]
fn truncated_request_is_no_request() {
    let fixture = Fixture::open();
    for whole in
        [probe::post("Content-Length: 5", "[1,2]"), probe::chunked("2;a=\"b\"\r\n[1\r\n3\r\n,2]\r\n0\r\nX: y\r\n\r\n")]
    {
        let head = whole.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap() + 4;
        for end in 0..whole.len() {
            let mut client = fixture.connect();
            client.send(&whole[..end]);
            client.finish_sending();
            let expected: &[u16] = if end < head { &[] } else { &[400] };
            assert_eq!(Answers::read(&mut client).statuses, expected, "{end} of {:?}", String::from_utf8_lossy(&whole));
        }
    }
    assert!(fixture.stored().is_empty());
}
