//! Access to posting, and the sources of events.

use std::sync::Arc;

use access::{Demand, Name, NewToken, Scope, Token, TokenSet, Tokens, TypePatterns};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use event::{KeyedIds, TypeName};
use gateway::{ErrorCode, GatewayOptions};

use crate::fixture::{Answer, Fixture, open_types};

/// Microseconds since 1970, long ago.
const LONG_AGO: i64 = 1;

/// A token with this number, and the line with which it is shown.
pub(crate) fn token(number: u8, name: &str, source: &str, scopes: &[Scope], expires: Option<i64>) -> (Token, String) {
    let secret = NewToken::of_random([number; 32]);
    let [name, source] = [name, source].map(|text| text.parse::<Name>().unwrap());
    let scopes = scopes.iter().copied().collect();
    let token = Token {
        name,
        digest: secret.digest(),
        scopes,
        source,
        origin: None,
        partial: None,
        types: None,
        created: 0,
        expires,
    };
    (token, format!("Authorization: Bearer {}\r\n", secret.expose()))
}

fn fixture(tokens: &Arc<Tokens>, demand: Demand) -> Fixture {
    Fixture::with(open_types(), GatewayOptions { tokens: tokens.clone(), demand, ..GatewayOptions::default() })
}

fn assert_refused(answer: &Answer, code: ErrorCode) {
    assert_eq!((answer.status, answer.code().as_str()), (code.status().as_u16(), code.as_str()), "{answer:?}");
    assert_eq!(answer.header("www-authenticate"), (code == ErrorCode::Unauthorized).then_some("Bearer"));
}

#[test]
fn posting_needs_a_valid_token_with_scope() {
    let (good, shows_good) = token(1, "web", "web", &[Scope::Ingest], None);
    let (reader, shows_reader) = token(2, "reader", "reader", &[Scope::Read, Scope::Admin], None);
    let (expired, shows_expired) = token(3, "old", "old", &[Scope::Ingest], Some(LONG_AGO));
    let (_, shows_unknown) = token(4, "unknown", "unknown", &[Scope::Ingest], None);
    let tokens = Arc::new(Tokens::new(TokenSet::new(vec![good, reader, expired])));
    let fixture = fixture(&tokens, Demand::Always);
    for path in ["/ingest/event", "/ingest/batch"] {
        for (headers, refused) in [
            ("", Some(ErrorCode::Unauthorized)),
            ("Authorization: Basic eDp5\r\n", Some(ErrorCode::Unauthorized)),
            (&*shows_unknown, Some(ErrorCode::Unauthorized)),
            (&*shows_expired, Some(ErrorCode::Unauthorized)),
            (&*shows_reader, Some(ErrorCode::Forbidden)),
            (&*shows_good, None),
        ] {
            let answer = fixture.post(path, headers, "1");
            match refused {
                Some(code) => assert_refused(&answer, code),
                None => assert_eq!(answer.status, 200, "{answer:?}"),
            }
        }
    }
    assert_refused(&fixture.post("/elsewhere", "", ""), ErrorCode::Unauthorized);
    assert_refused(&fixture.post("/elsewhere", &shows_reader, ""), ErrorCode::NotFound);
    assert_refused(&fixture.post("/ingest/event", &shows_good.repeat(2), "1"), ErrorCode::BadRequest);
    assert_eq!(fixture.payloads(), ["1", "1"]);
}

#[test]
fn liveness_needs_no_token() {
    let fixture = fixture(&Arc::default(), Demand::Always);
    let mut client = fixture.connect();
    for request in ["GET /healthz", "GET /readyz", "HEAD /healthz"] {
        client.send(format!("{request} HTTP/1.1\r\nHost: x\r\n\r\n"));
        assert_eq!(client.answer().status, 200, "{request}");
    }
    client.send("OPTIONS /ingest/event HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(client.answer().status, 204);
    client.post("/ingest/event", "", b"1");
    assert_refused(&client.answer(), ErrorCode::Unauthorized);
}

/// The client waits for a go-ahead, and never gets one.
#[test]
fn unauthorized_request_is_rejected_before_body() {
    let fixture = fixture(&Arc::default(), Demand::Always);
    let mut client = fixture.connect();
    let length = "Content-Length: 30000000\r\nExpect: 100-continue\r\n";
    client.send(format!("POST /ingest/batch HTTP/1.1\r\nHost: x\r\n{length}\r\n"));
    assert_refused(&client.answer(), ErrorCode::Unauthorized);
    assert!(client.read_to_close());
}

#[test]
fn token_changes_apply_to_open_connections() {
    let (first, shows_first) = token(1, "first", "first", &[Scope::Ingest], None);
    let (second, shows_second) = token(2, "second", "second", &[Scope::Ingest], None);
    let tokens = Arc::new(Tokens::default());
    let fixture = fixture(&tokens, Demand::WithTokens);
    let mut client = fixture.connect();
    let mut status = |headers: &str| {
        client.post("/ingest/event", headers, b"1");
        client.answer().status
    };
    assert_eq!([status(""), status(&shows_first)], [200, 200], "no token was ever created");
    tokens.publish(TokenSet::new(vec![first.clone()]));
    assert_eq!([status(""), status(&shows_first), status(&shows_second)], [401, 200, 401]);
    tokens.publish(TokenSet::new(vec![first, second]));
    assert_eq!([status(""), status(&shows_first), status(&shows_second)], [401, 200, 200]);
    tokens.publish(TokenSet::new(Vec::new()));
    assert_eq!([status(""), status(&shows_first), status(&shows_second)], [401, 401, 401]);
}

#[test]
fn anonymous_port_still_rejects_wrong_tokens() {
    let (good, shows_good) = token(1, "web", "web", &[Scope::Ingest], None);
    let (_, shows_unknown) = token(2, "unknown", "unknown", &[Scope::Ingest], None);
    let fixture = fixture(&Arc::new(Tokens::new(TokenSet::new(vec![good]))), Demand::Never);
    for (headers, status) in
        [("", 200), ("Authorization: Basic eDp5\r\n", 200), (&*shows_good, 200), (&*shows_unknown, 401)]
    {
        assert_eq!(fixture.post("/ingest/event", headers, "1").status, status, "{headers}");
    }
    let sources: Vec<String> = fixture.stored().into_iter().map(|event| event.source).collect();
    assert_eq!(sources, ["", "", "web"]);
}

/// The line that shows a token as the password of this user.
fn basic(user: &str, secret: &NewToken) -> String {
    format!("Authorization: Basic {}\r\n", STANDARD.encode(format!("{user}:{}", secret.expose())))
}

/// The line that shows a token as the user, with an empty password.
fn basic_user(secret: &NewToken) -> String {
    format!("Authorization: Basic {}\r\n", STANDARD.encode(format!("{}:", secret.expose())))
}

#[test]
fn token_may_be_password_user_or_api_key() {
    let (good, shows_good) = token(1, "web", "web", &[Scope::Ingest], None);
    let [secret, unknown] = [1, 2].map(|number| NewToken::of_random([number; 32]));
    let key = |secret: &NewToken| format!("x-aPI-key: {}\r\n", secret.expose());
    let tokens = Arc::new(Tokens::new(TokenSet::new(vec![good])));
    for demand in [Demand::Always, Demand::Never] {
        let fixture = fixture(&tokens, demand);
        for headers in [basic("anybody", &secret), basic("", &secret), basic_user(&secret), key(&secret)] {
            assert_eq!(fixture.post("/ingest/event", &headers, "1").status, 200, "{headers}");
        }
        assert!(fixture.stored().iter().all(|event| event.source == "web"));
        for headers in [basic("web", &unknown), basic_user(&unknown), key(&unknown), "X-Api-Key: fb_\r\n".to_owned()] {
            assert_refused(&fixture.post("/ingest/event", &headers, "1"), ErrorCode::Unauthorized);
        }
        for (headers, says) in [
            (shows_good.clone() + &key(&secret), "both Authorization and X-Api-Key"),
            (basic("", &secret) + &key(&secret), "both Authorization and X-Api-Key"),
            (shows_good.clone() + &basic("", &secret), "more than one Authorization"),
            (key(&secret).repeat(2), "more than one X-Api-Key"),
        ] {
            let refused = fixture.post("/ingest/event", &headers, "1");
            assert_refused(&refused, ErrorCode::BadRequest);
            assert!(refused.json()["detail"].as_str().unwrap().contains(says), "{refused:?}");
        }
        let missing = fixture.post("/ingest/event", "X-Api-Key: for-a-proxy\r\n", "1");
        assert_eq!(missing.status, if demand == Demand::Always { 401 } else { 200 });
    }
}

/// A browser that has a password for this host sends it with what a page of another host posts.
#[test]
fn password_does_not_allow_cross_origin_pages() {
    let (good, shows_good) = token(1, "web", "web", &[Scope::Ingest], None);
    let tokens = Arc::new(Tokens::new(TokenSet::new(vec![good])));
    let cors_origins = vec!["https://known.example".to_owned()];
    let allowed_hosts = Some(Vec::new());
    let options =
        GatewayOptions { tokens, demand: Demand::Always, cors_origins, allowed_hosts, ..GatewayOptions::default() };
    let fixture = Fixture::with(open_types(), options);
    let user = basic_user(&NewToken::of_random([1; 32]));
    let basic = basic("", &NewToken::of_random([1; 32]));
    for (shows, origin, status) in [
        (&user, "", 200),
        (&user, "Origin: https://unknown.example\r\n", 403),
        (&basic, "", 200),
        (&basic, "Origin: http://x\r\n", 200),
        (&basic, "Origin: https://known.example\r\n", 200),
        (&basic, "Origin: https://unknown.example\r\n", 403),
        (&basic, "Origin: null\r\n", 403),
        (&shows_good, "Origin: https://unknown.example\r\n", 200),
    ] {
        let answer = fixture.post("/ingest/event", &(shows.clone() + origin), "1");
        assert_eq!(answer.status, status, "{shows}{origin}{answer:?}");
    }
}

#[test]
fn equal_keys_of_different_sources_are_separate() {
    let (one, shows_one) = token(1, "one", "shop", &[Scope::Ingest], None);
    let (same, shows_same) = token(2, "same", "shop", &[Scope::Ingest], None);
    let (other, shows_other) = token(3, "other", "other", &[Scope::Ingest], None);
    let fixture = fixture(&Arc::new(Tokens::new(TokenSet::new(vec![one, same, other]))), Demand::Always);
    for (path, body) in [("/ingest/event", "1"), ("/ingest/batch", "2\n3\n")] {
        let post = |shows: &str| {
            let headers = format!("{shows}Idempotency-Key: k\r\nAccept: application/json\r\n");
            let answer = fixture.post(path, &headers, body);
            assert_eq!(answer.status, 200, "{answer:?}");
            let duplicates = &answer.json();
            duplicates["duplicate"].as_bool().unwrap_or_else(|| duplicates["duplicates"] == 2)
        };
        assert_eq!([&shows_one, &shows_same, &shows_other].map(|shows| post(shows)), [false, true, false], "{path}");
    }
    let name = TypeName::new("event").unwrap();
    let expected = [("shop", 0), ("other", 0), ("shop", 1), ("shop", 2), ("other", 1), ("other", 2)];
    let expected =
        expected.map(|(source, number)| (source.to_owned(), KeyedIds::new(source, &name, b"k").id(number).to_string()));
    let stored: Vec<_> = fixture.stored().into_iter().map(|event| (event.source, event.id)).collect();
    assert_eq!(stored, expected);
}

/// Ids within payloads are the source's too.
#[test]
fn payload_ids_are_scoped_by_source() {
    let (one, shows_one) = token(1, "one", "one", &[Scope::Ingest], None);
    let (other, shows_other) = token(2, "other", "other", &[Scope::Ingest], None);
    let tokens = Arc::new(Tokens::new(TokenSet::new(vec![one, other])));
    let types = crate::fixture::named_types(&[("a", Some("/id"))]);
    let fixture = Fixture::with(types, GatewayOptions { tokens, demand: Demand::Always, ..GatewayOptions::default() });
    for shows in [&shows_one, &shows_other, &shows_one] {
        assert_eq!(fixture.post("/ingest/event/a", shows, r#"{"id":7}"#).status, 200);
        assert_eq!(fixture.post("/ingest/batch/a", shows, "{\"id\":8}\n").status, 200);
    }
    assert_eq!(fixture.stored().len(), 4);
}

#[test]
fn limited_token_posts_only_its_types() {
    let (mut limited, shows) = token(1, "web", "web", &[Scope::Ingest], None);
    limited.types = TypePatterns::new(vec!["page.*".parse().unwrap(), "click".parse().unwrap()]).map(Arc::new);
    let tokens = Arc::new(Tokens::new(TokenSet::new(vec![limited])));
    let fixture = fixture(&tokens, Demand::Always);
    for (name, status) in [("page.view", 200), ("click", 200), ("clicks", 403), ("order", 403)] {
        assert_eq!(fixture.post(&format!("/ingest/event/{name}"), &shows, "1").status, status, "{name}");
    }
    let batch = fixture.post("/ingest/batch/order", &shows, "1\n2");
    assert_eq!((batch.status, &batch.json()["refused"][1]["code"]), (422, &"forbidden".into()));
    assert_eq!(fixture.stored().len(), 2);
}
