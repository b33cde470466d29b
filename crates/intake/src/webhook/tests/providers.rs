//! A valid request of each provider, and forged ones.

use super::{Request, digest, intake};

/// The settings of an intake, a request, and the text whose digest is the id, or the id.
struct Case<'c> {
    settings: &'c str,
    request: Request<'c>,
    id: Result<&'c str, &'c str>,
}

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");
const TWILIO_BODY: &str =
    "To=%2B18005551212&CallSid=CA1234567890ABCDE&From=%2B14158675309&Digits=1234&Caller=%2B14158675309";
const STANDARD: &str = r#"provider = "standard"
        secrets = ["whsec_AAAA", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]"#;
const STANDARD_BODY: &str = r#"{"test": 2432232314}"#;
const STANDARD_SIGNATURE: &str = "v1a,AAAA v1,AAAA v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
const STANDARD_ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";

/// GitHub's, Twilio's and Standard Webhooks' signatures are those that their documentation or libraries publish.
fn cases() -> Vec<Case<'static>> {
    [of_bodies(), of_more_than_bodies(), of_standard_webhooks()].into_iter().flatten().collect()
}

fn of_bodies() -> Vec<Case<'static>> {
    vec![
        Case {
            settings: r#"provider = "github"
                secrets = ["It's a Secret to Everybody"]"#,
            request: Request::new(
                &[("X-Hub-Signature-256", "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17")],
                "Hello, World!",
            ),
            id: Err("Hello, World!"),
        },
        Case {
            settings: r#"provider = "gitlab"
                secrets = ["other", "gl-token"]"#,
            request: Request::new(&[("X-Gitlab-Token", "gl-token")], "{}"),
            id: Err("{}"),
        },
        Case {
            settings: r#"provider = "shopify"
                secrets = ["shop-secret"]"#,
            request: Request::new(
                &[("X-Shopify-Hmac-Sha256", "plW8VGqq0nDMIEhDqaNNW99asdUCy7EIqLZVcQwtAZ0=")],
                r#"{"id":1}"#,
            ),
            id: Err(r#"{"id":1}"#),
        },
        Case {
            settings: r#"provider = "meta"
                secrets = ["app-secret"]"#,
            request: Request::new(
                &[("X-Hub-Signature-256", "sha256=ae958d6f00b134dd32b95a9a76bedaaeb068c0949769358355023f7d1a0c580b")],
                r#"{"object":"page"}"#,
            ),
            id: Err(r#"{"object":"page"}"#),
        },
    ]
}

fn of_more_than_bodies() -> Vec<Case<'static>> {
    vec![
        Case {
            settings: r#"provider = "stripe"
                secrets = ["whsec_a"]"#,
            request: Request::new(
                &[(
                    "Stripe-Signature",
                    "t=1795867200, v0=00, v1=2e7b17e6d09f8fdafb27a8ef58847ffb8a15c50725071fe4c3b9e4c63134f8c9",
                )],
                r#"{"id":"evt_1"}"#,
            ),
            id: Ok("evt_1"),
        },
        Case {
            settings: r#"provider = "slack"
                secrets = ["slack-secret"]"#,
            request: Request::new(
                &[
                    ("X-Slack-Request-Timestamp", "1795867200"),
                    ("X-Slack-Signature", "v0=fa53e45ea81237b79c79e5390494b79dc55a594f9101366eaa89a3c6e560d796"),
                ],
                r#"{"type":"event_callback","event_id":"Ev1"}"#,
            ),
            id: Ok("Ev1"),
        },
        Case {
            settings: r#"provider = "twilio"
                secrets = ["12345"]
                url = "https://mycompany.com/myapp.php""#,
            request: Request {
                target: "/hooks/sms?foo=1&bar=2",
                ..Request::new(&[("X-Twilio-Signature", "RSOYDt4T1cUTdK1PDd93/VVr8B8="), FORM], TWILIO_BODY)
            },
            id: Err(
                "https://mycompany.com/myapp.php?foo=1&bar=2CallSidCA1234567890ABCDECaller+14158675309Digits1234From+14158675309To+18005551212",
            ),
        },
    ]
}

fn of_standard_webhooks() -> Vec<Case<'static>> {
    vec![
        Case {
            settings: STANDARD,
            request: Request {
                at: 1_614_265_330,
                ..Request::new(
                    &[
                        ("webhook-id", STANDARD_ID),
                        ("webhook-timestamp", "1614265330"),
                        ("webhook-signature", STANDARD_SIGNATURE),
                    ],
                    STANDARD_BODY,
                )
            },
            id: Ok(STANDARD_ID),
        },
        Case {
            settings: STANDARD,
            request: Request {
                at: 1_614_265_330 + 300,
                ..Request::new(
                    &[
                        ("svix-id", STANDARD_ID),
                        ("svix-timestamp", "1614265330"),
                        ("svix-signature", STANDARD_SIGNATURE),
                    ],
                    STANDARD_BODY,
                )
            },
            id: Ok(STANDARD_ID),
        },
    ]
}

#[test]
fn signed_requests_are_stored() {
    for Case { settings, request, id } in cases() {
        let intake = intake(settings);
        assert!(intake.is_signed());
        let expected = id.map_or_else(digest, str::to_owned);
        assert_eq!(request.stored_by(&intake).map(|(id, _)| id), Ok(expected), "{settings}");
        let (_, reply) = request.post_to(&intake, &[0]).unwrap();
        let expected = br#"{"code":"schema","detail":"the schema of the type"}"#;
        assert_eq!((reply.status, reply.body.as_slice()), (422, &expected[..]));
    }
}

#[test]
fn forged_requests_are_rejected() {
    for Case { settings, request, .. } in cases() {
        let rejected = |request: &Request<'_>, why: &str| {
            let error = request.post_to(&intake(settings), &[]).unwrap_err();
            assert_eq!(error.status, 401, "{why}: {settings}");
            assert!(error.body.starts_with(br#"{"code":"signature","detail":""#));
        };
        if !settings.contains("gitlab") {
            let body = [request.body, b"0"].concat();
            rejected(&Request { body: &body, ..request }, "another body");
        }
        for number in 0..request.headers.len() {
            let mut headers = request.headers.to_vec();
            if headers[number].0 == "content-type" {
                continue;
            }
            headers.remove(number);
            rejected(&Request { headers: &headers, ..request }, "a missing header");
            let changed = format!("{}0", request.headers[number].1);
            headers.push((request.headers[number].0, &changed));
            rejected(&Request { headers: &headers, ..request }, "a changed header");
        }
    }
}

#[test]
fn old_signatures_are_rejected() {
    for Case { settings, request, .. } in cases() {
        let has_time = request.headers.iter().any(|(_, value)| value.contains("1795867200") || *value == "1614265330");
        let at = |seconds: i64| Request { at: request.at + seconds, ..request };
        let status = |request: Request<'_>| request.stored_by(&intake(settings)).err();
        let expected = has_time.then_some(401);
        assert_eq!([status(at(3600)), status(at(-3600))], [expected, expected], "{settings}");
    }
}

#[test]
fn twilio_signs_digests_of_json() {
    let settings = r#"provider = "twilio"
        secrets = ["12345"]"#;
    let body = r#"{"property": "value", "boolean": true}"#;
    let target = "/myapp.php?foo=1&bar=2&bodySHA256=0a1ff7634d9ab3b95db5c9a2dfe9416e41502b283a80c7cf19632632f96e6620";
    let headers = &[("X-Twilio-Signature", "a9nBmqA0ju/hNViExpshrM61xv4="), ("content-type", "application/json")];
    // Without the setting, the URL is that of the request.
    let request = |body| Request { target, ..Request::new(headers, body) };
    let url = format!("https://mycompany.com{target}");
    let of = |intake: &str, body| request(body).stored_by(&super::intake(intake));
    let with_url = format!("{settings}\nurl = \"https://mycompany.com/myapp.php\"");
    assert_eq!(of(&with_url, body), Ok((digest(&url), body.to_owned())));
    assert_eq!([of(settings, body), of(&with_url, "{}"), of(&with_url, "")], [Err(401), Err(401), Err(401)]);
}
