//! Errors of settings.

use super::{configured, intake};

#[test]
fn invalid_settings_are_reported() {
    let hmac = "provider = \"hmac\"\nsecrets = [\"k\"]\nheader = \"a\"\n";
    for (settings, expected) in [
        ("provider = \"x\"".to_owned(), "invalid value for `provider`"),
        ("provider = \"github\"".to_owned(), "missing setting `secrets`"),
        ("provider = \"github\"\nsecrets = []".to_owned(), "missing setting `secrets`"),
        ("provider = \"github\"\nsecrets = [\"\"]".to_owned(), "this secret is empty"),
        ("provider = \"standard\"\nsecrets = [\"whsec_?\"]".to_owned(), "expected whsec_ and base64"),
        ("secrets = [\"a\"]".to_owned(), "unused setting `secrets` without `provider`"),
        (
            "provider = \"github\"\nsecrets = [\"a\"]\ntolerance = \"1m\"".to_owned(),
            "unused setting `tolerance` with provider",
        ),
        ("provider = \"slack\"\nsecrets = [\"a\"]\nurl = \"https://a/\"".to_owned(), "unused setting `url`"),
        ("provider = \"slack\"\nsecrets = [\"a\"]\nheader = \"x\"".to_owned(), "unused setting `header`"),
        ("provider = \"twilio\"\nsecrets = [\"a\"]\nurl = \"https://a/?b\"".to_owned(), "without a query"),
        ("provider = \"meta\"\nsecrets = [\"a\"]\nverify_token = \"\"".to_owned(), "invalid value for `verify_token`"),
        ("provider = \"hmac\"\nsecrets = [\"a\"]".to_owned(), "missing setting `header`"),
        (format!("{hmac}signed = \"{{x}}\""), "expected {body}, {timestamp} or {id}"),
        (format!("{hmac}signed = \"{{timestamp}}{{body}}\""), "missing setting `timestamp_header`"),
        (format!("{hmac}timestamp_header = \"b\""), "`signed` has no {timestamp}"),
        (format!("{hmac}id_header = \"b\""), "`signed` has no {id}"),
        (
            format!("{hmac}signed = \"{{timestamp}}.{{body}}\"\ntimestamp_header = \"b\"\ntimestamp_prefix = \"t=\""),
            "both set",
        ),
        (format!("{hmac}prefix = \"a,\""), "separate elements"),
        (format!("{hmac}id_member = \"a\""), "a JSON pointer is empty or"),
        (format!("{hmac}algorithm = \"md5\""), "expected \"sha256\""),
    ] {
        let report = configured(&settings).err().unwrap_or_default();
        assert!(report.contains(expected), "{settings}\n{report}");
    }
}

#[test]
fn debug_shows_no_secrets() {
    let shown = [
        "provider = \"meta\"\nsecrets = [\"s3cret\"]\nverify_token = \"s3cret\"",
        "provider = \"gitlab\"\nsecrets = [\"s3cret\"]",
    ];
    for settings in shown {
        let shown = format!("{:?}", intake(settings));
        assert!(!shown.contains("s3cret") && !shown.contains("115, 51"), "{shown}");
    }
}
