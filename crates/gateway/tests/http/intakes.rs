//! Intakes, with a protocol of these tests: each line of a body is a type, an id and a payload. It has what the real protocols need of the
//! gateway; `protocols.rs` tests those.

use std::borrow::Cow;
use std::net::TcpListener;
use std::sync::Arc;

use access::{Demand, Scope, TokenSet, Tokens, TypePatterns};
use event::TypeName;
use gateway::{GatewayOptions, GatewayTypes, IntakeListener, IntakeRule, TypeRules};
use intake::{
    Intake, IntakeCall, IntakeHead, IntakeRecord, IntakeRoute, Problem, RecordPayload, RecordVerdict, Records, Reply,
    Stop, Verdicts,
};
use limits::{BATCH_RECORDS_MAX, OPEN_TYPES_MAX};
use schema::{Documents, Schema, SchemaOptions};

use crate::fixture::{Answer, Client, Fixture, named_types, open_types};
use crate::tokens::token;

/// The protocol. `/lines` is posted to, `/atomic` all or nothing, `/keyed` with a token in the first line; `/hello` needs a token, `/free`
/// none.
#[derive(Debug)]
struct Lines {
    is_signed: bool,
}

struct LinesCall {
    is_atomic: bool,
    is_keyed: bool,
    is_signed: bool,
}

impl Intake for Lines {
    fn route(&self, head: &IntakeHead<'_>) -> IntakeRoute {
        let call = |is_atomic, is_keyed| {
            IntakeRoute::Ingest(Box::new(LinesCall { is_atomic, is_keyed, is_signed: self.is_signed }))
        };
        match head.path {
            "/lines" if head.method != "POST" => IntakeRoute::Methods("OPTIONS, POST"),
            "/lines" | "" => call(false, false),
            "/atomic" => call(true, false),
            "/keyed" => call(false, true),
            "/hello" => IntakeRoute::Fixed(Reply::text(200, "hello")),
            "/free" => IntakeRoute::Free(Reply::text(200, "free")),
            _ => IntakeRoute::Unknown,
        }
    }

    fn refusal(&self, problem: &Problem) -> Reply {
        Reply::text(problem.status(), format!("no {}", problem.code)).of_problem(problem)
    }

    fn is_signed(&self) -> bool {
        self.is_signed
    }
}

impl IntakeCall for LinesCall {
    fn may_have_token(&self) -> bool {
        self.is_keyed
    }

    fn token<'b>(&self, body: &'b [u8]) -> Option<Cow<'b, str>> {
        str::from_utf8(body).ok()?.lines().next().map(Cow::Borrowed)
    }

    fn decode(&mut self, body: &[u8], records: &mut Records<'_>) -> Result<(), Stop> {
        if self.is_signed && !body.starts_with(b"signed\n") {
            return Err(Problem::signature("no signature").into());
        }
        for line in body.split(|byte| *byte == b'\n').skip(usize::from(self.is_keyed || self.is_signed)) {
            let mut parts = line.splitn(3, |byte| *byte == b' ');
            let (Some(name), Some(id), Some(sent)) = (parts.next(), parts.next(), parts.next()) else { continue };
            let payload = match sent {
                b"wrong" => RecordPayload::Rejected { sent, detail: "wrong".into() },
                b"end" => return Err(Problem::invalid("it ends here").into()),
                sent => RecordPayload::Sent(sent),
            };
            let id = Some(id).filter(|id| *id != b"-");
            records.take(IntakeRecord { type_name: str::from_utf8(name).unwrap_or_default(), id, payload })?;
        }
        Ok(())
    }

    fn is_atomic(&self) -> bool {
        self.is_atomic
    }

    fn response(&self, verdicts: &Verdicts) -> Reply {
        let letter = |verdict: &RecordVerdict| match verdict {
            RecordVerdict::Accepted => 'a',
            RecordVerdict::IdReused => 'i',
            RecordVerdict::Rejected => 'r',
        };
        let letters: String = verdicts.all().iter().map(letter).collect();
        let first = verdicts.first_rejected().and_then(|(_, detail)| detail);
        Reply::text(200, letters + first.map_or("", |detail| detail.code)).with_header("x-lines", "1")
    }

    fn refusal(&self, problem: &Problem) -> Reply {
        Reply::text(problem.status(), format!("call {}", problem.code)).of_problem(problem)
    }
}

fn rule(name: &str, is_signed: bool) -> IntakeRule {
    IntakeRule {
        name: name.into(),
        path: format!("/{name}").into(),
        dedupes: true,
        type_name: Some(TypeName::new("unnamed").unwrap()),
        intake: Arc::new(Lines { is_signed }),
    }
}

fn options() -> GatewayOptions {
    GatewayOptions { intakes: vec![rule("test", false), rule("signed", true)], ..GatewayOptions::default() }
}

/// Types `good`, `unnamed` and `strict`, whose events have a member `n`.
fn types() -> GatewayTypes {
    let documents = Documents::new();
    let options = SchemaOptions { documents: &documents, formats: false };
    let schema = Schema::compile("strict.json", r#"{"required": ["n"]}"#, &options).unwrap();
    let strict = TypeRules { schema: Some(Arc::new(schema)), ..TypeRules::default() };
    let mut types = named_types(&[("good", None), ("unnamed", None), ("own", Some("/id"))]);
    types.named.insert(TypeName::new("strict").unwrap(), strict);
    types
}

fn text(answer: &Answer) -> (u16, String) {
    (answer.status, String::from_utf8(answer.body.clone()).unwrap())
}

fn get(fixture: &Fixture, path: &str) -> Answer {
    let mut client = fixture.connect();
    client.send(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n"));
    client.answer()
}

fn post(fixture: &Fixture, body: &str) -> (u16, String) {
    text(&fixture.post("/test/lines", "", body))
}

#[test]
fn each_record_gets_its_verdict() {
    let fixture = Fixture::with(types(), options());
    let body = "good 1 {\"a\": 1}\nstrict 2 {}\ngood 3 no JSON\nnone 4 {}\ngood 5 wrong\n- - 6\nstrict 7 {\"n\":1}";
    let answer = fixture.post("/test/lines?q=1", "", body.replacen("- -", " -", 1));
    assert_eq!(text(&answer), (200, "arrrraaschema".into()));
    assert_eq!(answer.header("x-lines"), Some("1"));
    let stored: Vec<_> = fixture.stored().into_iter().map(|event| (event.type_name, event.payload)).collect();
    let expected = [("good", "{\"a\": 1}"), ("unnamed", "6"), ("strict", "{\"n\":1}")];
    assert_eq!(stored, expected.map(|(name, payload)| (name.to_owned(), payload.to_owned())));
    let counters = fixture.counters().intakes().all();
    let (_, counters) = counters.iter().find(|(name, _)| **name == *"test").unwrap();
    assert_eq!((counters.accepted(), counters.rejected()), (3, 4));
    assert_eq!(counters.requests().next(), Some(("2xx", 1)));
}

#[test]
fn ids_of_protocols_deduplicate_by_bytes() {
    let fixture = Fixture::with(types(), options());
    assert_eq!(post(&fixture, "good 1 {}\nown x {\"id\":1}").1, "aa");
    // The same again, other bytes, and the payload's own id under another id of the protocol.
    assert_eq!(post(&fixture, "good 1 {}\ngood 1 {\"b\":1}\nown y {\"id\":1}\nunnamed 1 {}").1, "aiaaid_reused");
    assert_eq!(fixture.payloads(), ["{}", "{\"id\":1}", "{}"]);
}

#[test]
fn body_digest_numbers_records_without_ids() {
    let fixture = Fixture::with(types(), options());
    let body = "good - 1\ngood - 1\nstrict - {}\ngood x 2";
    for _ in 0..3 {
        assert_eq!(post(&fixture, body).1, "aaraschema");
    }
    assert_eq!(fixture.payloads(), ["1", "1", "2"], "two equal records of one body are two events");
    assert_eq!(post(&fixture, "good - 1\ngood - 1\nstrict - {}\ngood x 2\n").1, "aaraschema");
    assert_eq!(fixture.payloads().len(), 5, "another body has other records");
    assert_eq!(text(&fixture.post("/test/lines?index=2", "", body)).1, "aaraschema");
    assert_eq!(fixture.payloads().len(), 7, "so has the same body at another target");
}

#[test]
fn empty_id_is_none() {
    let fixture = Fixture::with(types(), options());
    assert_eq!(post(&fixture, "good  1\ngood  2").1, "aa");
    assert_eq!(post(&fixture, "good  1\ngood  2").1, "aa");
    assert_eq!(fixture.payloads(), ["1", "2"]);
}

#[test]
fn request_that_never_fits_is_rejected_permanently() {
    let options = GatewayOptions { in_flight_bytes_max: 1024 * 1024, ..options() };
    let fixture = Fixture::with(types(), options);
    let body: String = (0..6_000).map(|number| format!("good {number} \"{}\"\n", "x".repeat(80))).collect();
    assert_eq!(post(&fixture, &body), (413, "call too_large".into()));
    assert!(fixture.stored().is_empty());
    let half: String = body.lines().take(1_000).map(|line| format!("{line}\n")).collect();
    assert_eq!(post(&fixture, &half).0, 200);
}

#[test]
fn invented_types_leave_room_for_those_of_intakes() {
    let fixture = Fixture::with(open_types(), options());
    let invalid: String = (0..OPEN_TYPES_MAX).map(|number| format!("made{number} - no JSON\n")).collect();
    assert_eq!(post(&fixture, &invalid).0, 200);
    assert_eq!(post(&fixture, "other - 1").1, "a", "rejected records open no type");
    let valid = invalid.replace("no JSON", "1");
    assert!(post(&fixture, &valid).1.ends_with("rtoo_many_types"));
    assert_eq!(post(&fixture, " - 2").1, "a", "the intake's type has its place");
}

#[test]
fn atomic_call_stores_all_or_nothing() {
    let fixture = Fixture::with(types(), options());
    assert_eq!(text(&fixture.post("/test/atomic", "", "good 1 {}\nstrict 2 {}")).1, "arschema");
    assert!(fixture.stored().is_empty());
    assert_eq!(text(&fixture.post("/test/atomic", "", "good 1 {}\nstrict 2 {\"n\":1}")).1, "aa");
    assert_eq!(fixture.stored().len(), 2);
}

#[test]
fn rejected_requests_keep_their_protocol() {
    let fixture = Fixture::with(types(), options());
    assert_eq!(post(&fixture, "good 1 {}\ngood 2 end"), (400, "call record".into()));
    assert_eq!(text(&get(&fixture, "/test/hello")), (200, "hello".into()));
    assert_eq!(text(&get(&fixture, "/test/other")), (404, "no not_found".into()));
    let wrong = get(&fixture, "/test/lines");
    assert_eq!((text(&wrong).0, wrong.header("allow")), (405, Some("OPTIONS, POST")));
    assert_eq!(
        text(&fixture.post("/test/lines", "Content-Encoding: br\r\n", "")),
        (415, "call content_encoding".into())
    );
    assert_eq!(fixture.post("/tests", "", "").status, 404);
    assert!(fixture.stored().is_empty());
}

#[test]
fn full_backlog_rejects_the_whole_request() {
    let fixture = Fixture::with(types(), options());
    assert_eq!(post(&fixture, "good 1 1\nunnamed 1 1").0, 200);
    let gate = crate::trouble::gate(&fixture, "unnamed");
    gate.set_closed(true);
    let answer = fixture.post("/test/lines", "", "good 2 2\nunnamed 2 2");
    assert_eq!(text(&answer), (503, "call backlog_full".into()));
    assert_eq!(answer.header("retry-after"), Some("1"));
    assert_eq!(fixture.stored().len(), 2);
    gate.set_closed(false);
    assert_eq!(post(&fixture, "good 2 2\nunnamed 2 2").1, "aa");
    assert_eq!(fixture.stored().len(), 4);
}

#[test]
fn tokens_are_checked_in_head_and_body() {
    let (good, shows) = token(1, "web", "shop", &[Scope::Ingest], None);
    let tokens = Arc::new(Tokens::new(TokenSet::new(vec![good])));
    let fixture = Fixture::with(types(), GatewayOptions { tokens, demand: Demand::Always, ..options() });
    let secret = shows.trim_end().rsplit(' ').next().unwrap();
    assert_eq!(post(&fixture, "good 1 1"), (401, "call unauthorized".into()));
    assert_eq!(text(&get(&fixture, "/test/hello")), (401, "no unauthorized".into()));
    assert_eq!(text(&get(&fixture, "/test/free")), (200, "free".into()));
    assert_eq!(text(&fixture.post("/test/lines", &shows, "good 1 1")).1, "a");
    for (number, (headers, first, expected)) in [
        ("", secret, "a"),
        ("", "", "call unauthorized"),
        ("", "fb_x", "call unauthorized"),
        (shows.as_str(), "no token", "a"),
        // A page of another origin that shows a token is allowed.
        ("Origin: https://shop.example\r\n", secret, "a"),
    ]
    .into_iter()
    .enumerate()
    {
        let answer = fixture.post("/test/keyed", headers, format!("{first}\ngood key{number} 2"));
        assert_eq!(text(&answer).1, expected, "{headers} {first}");
    }
    assert!(fixture.stored().iter().all(|event| event.source == "shop"));
}

#[test]
fn limited_token_rejects_the_whole_request() {
    let (mut limited, shows) = token(1, "web", "shop", &[Scope::Ingest], None);
    limited.types = TypePatterns::new(vec!["good".parse().unwrap()]).map(Arc::new);
    let tokens = Arc::new(Tokens::new(TokenSet::new(vec![limited])));
    let fixture = Fixture::with(types(), GatewayOptions { tokens, demand: Demand::Always, ..options() });
    let answer = fixture.post("/test/lines", &shows, "good 1 1\nunnamed 2 2");
    assert_eq!(text(&answer), (403, "call forbidden".into()));
    assert_eq!(text(&fixture.post("/test/lines", &shows, "good 1 1")).1, "a");
    assert_eq!(fixture.stored().len(), 1);
}

#[test]
fn signed_requests_need_no_token() {
    let tokens = Arc::new(Tokens::new(TokenSet::new(Vec::new())));
    let fixture = Fixture::with(types(), GatewayOptions { tokens, demand: Demand::Always, ..options() });
    assert_eq!(text(&fixture.post("/signed", "", "signed\ngood 1 1")), (200, "a".into()));
    assert_eq!(text(&fixture.post("/signed", "", "forged\ngood 2 2")), (401, "call signature".into()));
    assert_eq!(fixture.stored().iter().map(|event| event.source.as_str()).collect::<Vec<_>>(), ["signed"]);
    let counters = fixture.counters().intakes().all();
    assert_eq!(counters.iter().map(|(_, counters)| counters.signature_failures()).sum::<u64>(), 1);
}

#[test]
fn own_port_has_the_intake_at_its_root() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let own = vec![IntakeListener { intake: "test".into(), listener }];
    let fixture = Fixture::with_intakes(types(), options(), own);
    let mut client = Client::connect(address);
    client.post("/lines", "", b"good 1 1");
    assert_eq!(text(&client.answer()).1, "a");
    client.post("/ingest/event/good", "", b"2");
    assert_eq!(text(&client.answer()), (404, "no not_found".into()));
    client.send("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(text(&client.answer()).1, "hello");
    assert_eq!(fixture.payloads(), ["1"]);
    fixture.gateway().control().configure(&types(), &GatewayOptions::default());
    client.post("/lines", "", b"good 1 1");
    assert_eq!(client.answer().status, 404, "its intake was removed");
}

#[test]
fn large_requests_are_decoded_in_pieces() {
    let fixture = Fixture::with(open_types(), options());
    // The records take several times the body: it is decoded again with more room.
    let body: String = (0..BATCH_RECORDS_MAX).map(|number| format!("good {number} {number}\n")).collect();
    let letters = post(&fixture, &body).1;
    assert_eq!((letters.len(), letters.replace('a', "")), (BATCH_RECORDS_MAX, String::new()));
    assert_eq!(fixture.payloads(), (0..BATCH_RECORDS_MAX).map(|number| number.to_string()).collect::<Vec<_>>());
    assert_eq!(post(&fixture, &format!("{body}good x x\n")), (413, "call too_many_records".into()));
    let large = format!("good 1 \"{}\"\n", "x".repeat(limits::EVENT_BYTES_MAX));
    assert_eq!(post(&fixture, &large).1, "rtoo_large");
    let too_large = "x".repeat(limits::BATCH_BYTES_MAX + 1);
    assert_eq!(post(&fixture, &too_large), (413, "call too_large".into()));
    fixture.wait("all memory is free", |counters| counters.bytes_in_flight() == 0);
}
