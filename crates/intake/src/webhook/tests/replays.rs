//! A replayed request has the id of the first one, regardless of what isn't signed; and forms.

use super::{Request, digest, intake};

const BODY: &str = r#"{"object":"page"}"#;
const SIGNATURE: (&str, &str) =
    ("X-Hub-Signature-256", "sha256=ae958d6f00b134dd32b95a9a76bedaaeb068c0949769358355023f7d1a0c580b");

#[test]
fn unsigned_headers_do_not_change_ids() {
    let github = intake("provider = \"github\"\nsecrets = [\"app-secret\"]");
    for delivery in ["1", "2"] {
        let headers =
            [SIGNATURE, ("X-GitHub-Delivery", delivery), ("content-type", "application/x-www-form-urlencoded")];
        assert_eq!(Request::new(&headers, BODY).stored_by(&github), Ok((digest(BODY), BODY.to_owned())));
    }
}

#[test]
fn moved_form_bytes_keep_the_id() {
    // The signed text of a form doesn't have the ends of names: both forms have one signature, and get one id.
    let twilio = intake("provider = \"twilio\"\nsecrets = [\"12345\"]\nurl = \"https://a.example/\"");
    let form = ("content-type", "application/x-www-form-urlencoded");
    let headers = [("X-Twilio-Signature", "ApVHjk1ku1hlDvnbt8cHb6fYnEk="), form];
    let of = |body| Request::new(&headers, body).stored_by(&twilio);
    let id = digest("https://a.example/BodyHello");
    assert_eq!(of("Body=Hello"), Ok((id.clone(), r#"{"Body":"Hello"}"#.to_owned())));
    assert_eq!(of("BodyHell=o"), Ok((id, r#"{"BodyHell":"o"}"#.to_owned())));
    assert_eq!(of("Body=hello"), Err(401));
}

#[test]
fn twilio_signs_in_several_ways() {
    let id = digest("https://a.example/BodyHello");
    for signature in
        ["ApVHjk1ku1hlDvnbt8cHb6fYnEk=", "6yGmDn6D5piwce6VYU9PJB3VIQ4=", "xg+HEyS9o/ZSk3gl8sxBHDW1gFg67bhWKo1iuOAj240="]
    {
        let twilio = intake("provider = \"twilio\"\nsecrets = [\"12345\"]\nurl = \"https://a.example/\"");
        let headers = [("X-Twilio-Signature", signature), ("content-type", "application/x-www-form-urlencoded")];
        let stored = Request::new(&headers, "Body=Hello").stored_by(&twilio);
        assert_eq!(stored.map(|(stored, _)| stored), Ok(id.clone()), "{signature}");
        assert_eq!(Request::new(&headers, "Body=hello").stored_by(&twilio), Err(401));
    }
}

#[test]
fn forms_are_stored_as_json() {
    let open = intake("");
    let form = [("content-type", "application/x-www-form-urlencoded; charset=utf-8")];
    let of = |headers, body| {
        let (mut taken, _) = Request::new(headers, body).post_to(&open, &[]).unwrap();
        (taken[0].id.is_none(), taken.remove(0).payload.unwrap())
    };
    assert_eq!(of(&form, "a=1&a=2"), (true, r#"{"a":["1","2"]}"#.to_owned()));
    assert_eq!(of(&form, "payload=%7B%22ref%22%3A1%7D"), (true, r#"{"ref":1}"#.to_owned()));
    assert_eq!(of(&form, " {\"a\": 1}"), (true, " {\"a\": 1}".to_owned()));
    assert_eq!(of(&[], "a=1"), (true, "a=1".to_owned()));
    assert_eq!(Request::new(&form, " ").post_to(&open, &[]).unwrap_err().status, 400);
    assert!(!open.is_signed());
}
