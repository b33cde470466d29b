//! The scheme that settings describe.

use super::{Request, digest, intake};

#[test]
fn settings_describe_a_scheme() {
    let hook = intake(
        r#"provider = "hmac"
        secrets = ["k"]
        header = "X-Sign"
        algorithm = "sha512"
        encoding = "base64"
        prefix = "s="
        signed = "{id}|{timestamp}|{body}!"
        timestamp_prefix = "t="
        id_header = "X-Id""#,
    );
    let signature = "qUN9J7a7RutdDCiYC8+huTCitc8asDdxesOQzVowcFUbWp8WDkX+OlQ+lKlj5ObJzomRyUjvC0Vm4WNsJBZ5+A==";
    let body = r#"{"a":1}"#;
    for separator in [",", "; ", " "] {
        let header = format!("t=1795867200123{separator}s={signature}");
        let of = |id| Request::new(&[("x-sign", header.as_str()), ("x-id", id)], body).stored_by(&hook);
        assert_eq!(of("n1"), Ok(("n1".to_owned(), body.to_owned())));
        // The time would be a part of the id.
        assert_eq!([of("n1|1795867200123"), of(""), of("n2")], [Err(401), Err(401), Err(401)]);
    }
}

#[test]
fn defaults_sign_the_body() {
    let settings = "provider = \"hmac\"\nsecrets = [\"app-secret\"]\nheader = \"X-Sign\"";
    let headers = [("x-sign", "ae958d6f00b134dd32b95a9a76bedaaeb068c0949769358355023f7d1a0c580b")];
    let body = r#"{"object":"page"}"#;
    let of = |more: &str| Request::new(&headers, body).stored_by(&intake(&format!("{settings}\n{more}")));
    assert_eq!(of(""), Ok((digest(body), body.to_owned())));
    assert_eq!(of("id_member = \"/object\""), Ok(("page".to_owned(), body.to_owned())));
    assert_eq!(of("id_member = \"/other\""), Ok((digest(body), body.to_owned())));
}
