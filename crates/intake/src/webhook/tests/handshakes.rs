//! Challenges of providers, and other methods.

use crate::{IntakeRoute, Reply};

use super::{Request, intake};

#[test]
fn slack_challenge_is_returned() {
    let slack = intake("provider = \"slack\"\nsecrets = [\"slack-secret\"]");
    let headers = [
        ("X-Slack-Request-Timestamp", "1795867200"),
        ("X-Slack-Signature", "v0=a7428b02dbe309baf79b3c555960fbc6f993e8717c9b93b799df9ed5bade1941"),
    ];
    let body = r#"{"type":"url_verification","challenge":"3eZb\"rw"}"#;
    let expected = Reply::json(200, r#"{"challenge":"3eZb\"rw"}"#);
    assert_eq!(Request::new(&headers, body).post_to(&slack, &[]), Ok((Vec::new(), expected)));
    assert_eq!(Request::new(&headers[..1], body).post_to(&slack, &[]).unwrap_err().status, 401);
    // Other providers store it.
    let (taken, _) = Request::new(&[], body).post_to(&intake(""), &[]).unwrap();
    assert_eq!(taken[0].payload.as_deref(), Ok(body));
}

#[test]
fn meta_challenge_needs_the_token() {
    let get = |settings: &str, target: &str| match (Request { target, ..Request::new(&[], "") })
        .route(&intake(settings), "GET")
    {
        IntakeRoute::Free(reply) => (reply.status, String::from_utf8(reply.body).unwrap()),
        route => unreachable!("{route:?}"),
    };
    let settings = "provider = \"meta\"\nsecrets = [\"s\"]\nverify_token = \"t k\"";
    let target = "/hooks/a?hub.mode=subscribe&hub.challenge=11582&hub.verify_token=t+k";
    assert_eq!(get(settings, target), (200, "11582".to_owned()));
    for wrong in [
        target.replace("t+k", "t"),
        target.replace("subscribe", "x"),
        target.replace("hub.challenge", "x"),
        "?".to_owned(),
    ] {
        assert_eq!(get(settings, &wrong).0, 403, "{wrong}");
    }
    assert_eq!(get("provider = \"meta\"\nsecrets = [\"s\"]", target).0, 403);
}

#[test]
fn other_methods_are_listed() {
    let of = |settings: &str, method| format!("{:?}", Request::new(&[], "").route(&intake(settings), method));
    assert_eq!(of("", "GET"), r#"Methods("POST, OPTIONS")"#);
    assert_eq!(of("provider = \"meta\"\nsecrets = [\"s\"]", "PUT"), r#"Methods("GET, POST, OPTIONS")"#);
    let IntakeRoute::Free(reply) = Request::new(&[], "").route(&intake(""), "OPTIONS") else { panic!("not free") };
    assert_eq!((reply.status, reply.lines.as_str()), (204, "allow: POST, OPTIONS\r\n"));
}
