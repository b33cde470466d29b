//! Any bytes as the signature headers and the body of a request. Nothing that isn't signed is accepted.

use testkit::fuzz::{Corpus, run};

use super::{Request, intake};

const SAMPLES: &[&[u8]] = &[
    b"sha256=ae958d6f00b134dd32b95a9a76bedaaeb068c0949769358355023f7d1a0c580b\n{\"object\":\"page\"}",
    b"t=1795867200,v1=2e7b17e6d09f8fdafb27a8ef58847ffb8a15c50725071fe4c3b9e4c63134f8c9\n{\"id\":\"evt_1\"}",
    b"v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=\n{\"test\": 2432232314}",
    b"jUFYPnUw2GlcYLZD+q8IJ6q0uCY=\nBody=Hello&a=%7B%22&payload=%7B%7D",
    b"1795867200\npayload=%7B%22a%22%3A%5B1%5D%7D",
];
const TOKENS: &[&[u8]] = &[b"t=", b"v1=", b",", b"payload=", b"&", b"%", b"\"id\":", b"\xff", b"1795867200", b" "];
const PROVIDERS: &[(&str, &str, &str)] = &[
    ("github", "X-Hub-Signature-256", "app-secret"),
    ("stripe", "Stripe-Signature", "whsec_a"),
    ("slack", "X-Slack-Signature", "s"),
    ("twilio", "X-Twilio-Signature", "12345"),
    ("standard", "webhook-signature", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
];

#[test]
fn fuzz_webhook() {
    let signed: Vec<_> = PROVIDERS
        .iter()
        .map(|(name, header, secret)| (intake(&format!("provider = \"{name}\"\nsecrets = [\"{secret}\"]")), *header))
        .collect();
    let open = intake("");
    run("webhook", Corpus { samples: SAMPLES, tokens: TOKENS }, |input| {
        let end = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
        let (value, body) = input.split_at(end);
        let body = body.get(1..).unwrap_or_default();
        let value: String =
            String::from_utf8_lossy(value).chars().filter(|character| !character.is_control()).collect();
        let form = ("content-type", "application/x-www-form-urlencoded");
        let mut outcomes = Vec::new();
        for (intake, header) in &signed {
            let headers = [
                (*header, value.as_str()),
                ("X-Slack-Request-Timestamp", &value),
                ("webhook-id", &value),
                ("webhook-timestamp", &value),
                form,
            ];
            let outcome = Request { body, ..Request::new(&headers, "") }.post_to(intake, &[]);
            let is_sample = SAMPLES
                .iter()
                .any(|sample| sample.ends_with(body) || sample.split(|byte| *byte == b'\n').any(|part| body == part));
            assert!(outcome.is_err() || is_sample, "accepted");
            outcomes.push(outcome.map(|(_, reply)| reply.status).map_err(|reply| reply.status));
        }
        let stored = Request { body, ..Request::new(&[form], "") }.post_to(&open, &[]);
        outcomes.push(stored.map(|(_, reply)| reply.status).map_err(|reply| reply.status));
        outcomes
    });
}
