//! Rejections, as metrics and the log show them: by type and source, with a bound on names that clients invent.

use std::sync::Arc;

use access::{Demand, Name, NewToken, Scope, Token, TokenSet, Tokens};
use event::TypeName;
use gateway::{ErrorCode, GatewayOptions, GatewayTypes, IdRule, RefusalCount, RefusalSample, TypeRules};

use crate::fixture::Fixture;

const NDJSON: &str = "Content-Type: application/x-ndjson\r\n";

fn token(number: u8, source: &str) -> (Token, String) {
    let secret = NewToken::of_random([number; 32]);
    let source = source.parse::<Name>().unwrap();
    let (name, digest, scopes) = (source.clone(), secret.digest(), [Scope::Ingest].into_iter().collect());
    let token =
        Token { name, digest, scopes, source, origin: None, partial: None, types: None, created: 0, expires: None };
    (token, format!("Authorization: Bearer {}\r\n", secret.expose()))
}

fn types() -> GatewayTypes {
    let timed = TypeRules { id: IdRule::Pointer("/id".parse().unwrap()), ..TypeRules::default() };
    GatewayTypes {
        named: [(TypeName::new("orders").unwrap(), timed)].into(),
        open: Some(TypeRules::default()),
        type_pointer: Some("/type".parse().unwrap()),
        ..GatewayTypes::default()
    }
}

fn counted(fixture: &Fixture) -> Vec<(&'static str, String, String, u64)> {
    let row = |RefusalCount { code, type_name, source, count }| {
        (code.as_str(), type_name.into_string(), source.to_string(), count)
    };
    fixture.counters().refusal_list().into_iter().map(row).collect()
}

fn rows(rows: &[(&'static str, &str, &str, u64)]) -> Vec<(&'static str, String, String, u64)> {
    rows.iter().map(|(code, of, source, count)| (*code, (*of).to_owned(), (*source).to_owned(), *count)).collect()
}

#[test]
fn rejections_are_counted_by_type_and_source() {
    let [(shop, as_shop), (web, as_web)] = [token(1, "shop"), token(2, "web")];
    let tokens = Arc::new(Tokens::new(TokenSet::new(vec![shop, web])));
    let options = GatewayOptions { tokens, demand: Demand::Always, ..GatewayOptions::default() };
    let fixture = Fixture::with(types(), options);
    assert_eq!(fixture.post("/ingest/event/orders", "", "{}").status, 401);
    assert_eq!(fixture.post("/ingest/event/orders", &as_shop, "{").status, 400);
    assert_eq!(fixture.post("/ingest/event", &as_shop, r#"{"type":"orders","id":[]}"#).status, 400);
    assert_eq!(fixture.post("/ingest/event", &as_shop, r#"{"type":"orders""#).status, 400);
    assert_eq!(fixture.post("/ingest/event/made-up", &as_web, "{").status, 400);
    let lines = "{\"type\":\"orders\",\"id\":[]}\n{\"type\":\"orders\",\"id\":1}\n{\"type\":\"No name\"}\n{\n";
    assert_eq!(fixture.post("/ingest/batch", &format!("{NDJSON}{as_web}"), lines).status, 207);
    let conflict = "{\"type\":\"orders\",\"id\":1,\"n\":2}\n{\"type\":\"orders\",\"id\":1}\n";
    assert_eq!(fixture.post("/ingest/batch", &format!("{NDJSON}{as_web}"), conflict).status, 207);
    let expected = rows(&[
        ("json", "", "shop", 1),
        ("json", "", "web", 1),
        ("json", "other", "web", 1),
        ("json", "orders", "shop", 1),
        ("unknown_type", "other", "web", 1),
        ("key", "orders", "shop", 1),
        ("key", "orders", "web", 1),
        ("id_reused", "orders", "web", 1),
        ("unauthorized", "", "", 1),
    ]);
    assert_eq!(counted(&fixture), expected);
    assert_eq!(fixture.counters().refusals(ErrorCode::Json), 4);
}

#[test]
fn unknown_names_share_one_count() {
    let fixture = Fixture::with(types(), GatewayOptions::default());
    for number in 0..300 {
        assert_eq!(fixture.post(&format!("/ingest/event/type-{number}"), "", "{").status, 400);
        assert_eq!(fixture.post(&format!("/ingest/event/Type-{number}\"}}"), "", "1").status, 400);
    }
    let lines: String = (0..2_000).map(|number| format!("{{\"type\":\"No name {number}\"}}\n")).collect();
    assert_eq!(fixture.post("/ingest/batch", NDJSON, lines).status, 422);
    assert!(counted(&fixture).len() <= 3, "{:?}", counted(&fixture));
    assert_eq!(fixture.counters().refusals(ErrorCode::UnknownType), 2_000);
}

#[tokio::test]
async fn log_has_samples_and_a_count() {
    let fixture = Fixture::with(types(), GatewayOptions::default());
    let lines: String = (0..50).map(|number| format!("{{\"type\":\"orders\",\"id\":[{number}]}}\n")).collect();
    let before = clock::unix_microseconds();
    assert_eq!(fixture.post("/ingest/event/orders", "", "{").status, 400);
    assert_eq!(fixture.post("/ingest/batch", NDJSON, lines).status, 422);
    assert_eq!(fixture.post("/elsewhere", "", "").status, 404);
    let after = clock::unix_microseconds();
    let mut news = fixture.counters().refusal_news().await;
    let times: Vec<i64> = news.samples.iter_mut().map(|sample| std::mem::take(&mut sample.at)).collect();
    assert!(times.is_sorted() && times.iter().all(|at| (before..=after).contains(at)), "{before} {times:?} {after}");
    let sample = |code, pointer: Option<&str>, line| RefusalSample {
        at: 0,
        code,
        pointer: pointer.map(Into::into),
        type_name: "orders".into(),
        source: "".into(),
        client: std::net::Ipv4Addr::LOCALHOST.into(),
        line,
    };
    let mut expected = vec![sample(ErrorCode::Json, None, None)];
    expected.extend((1..=4).map(|line| sample(ErrorCode::Key, Some("/id"), Some(line))));
    assert_eq!((news.samples, news.left_out), (expected, 46), "requests that post no events aren't logged");
}
