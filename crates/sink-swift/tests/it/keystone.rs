//! Keystone v3 in front of the real Swift. Keystone itself is a mock, whose tokens are the real ones of `TempAuth`.
//! Tested are the request, the choice of the endpoint, and the effect of an expired token.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use sink_swift::{Auth, KeystoneIdentity};

use crate::fixture::{config, sink_of};
use sink_testing::containers::ContainerFixture;
use sink_testing::events::{deliver, plain};
use testkit::mock_server::{MockRequest, MockServer};
use testkit::swift::SwiftServer;

fn keystone(server: &'static SwiftServer, bad_tokens: usize) -> (MockServer, Arc<AtomicUsize>) {
    let given = Arc::<AtomicUsize>::default();
    let counted = given.clone();
    let mock_server = MockServer::start(move |asked: &MockRequest| {
        assert_eq!((asked.method.as_str(), asked.path.as_str()), ("POST", "/v3/auth/tokens"));
        let client = server.client();
        let url = format!("http://{}{}", server.address(), client.account());
        let endpoint = |interface: &str, region: &str, url: &str| json!({"interface": interface, "region": region, "region_id": region, "url": url});
        let nowhere = "http://127.0.0.1:1/v1/AUTH_test";
        let endpoints =
            [endpoint("internal", "B", nowhere), endpoint("public", "A", nowhere), endpoint("public", "B", &url)];
        let token = json!({"token": {
            "issued_at": "2026-11-21T13:00:00.000000Z", "expires_at": "2026-11-21T14:00:00.000000Z",
            "catalog": [{"type": "object-store", "endpoints": endpoints}],
        }});
        let is_bad = counted.fetch_add(1, Ordering::Relaxed) < bad_tokens;
        let subject = if is_bad { "ended".to_owned() } else { client.token().to_owned() };
        (201, vec![("X-Subject-Token", subject)], token.to_string().into_bytes())
    });
    (mock_server, given)
}

fn auth(mock_server: &MockServer, identity: KeystoneIdentity) -> Auth {
    let url = format!("http://{}/v3", mock_server.address).parse().unwrap();
    Auth::Keystone { url, identity, region: Some("B".to_owned()) }
}

#[tokio::test]
async fn user_of_a_project_gets_the_regions_endpoint() {
    let Some(server) = SwiftServer::shared() else { return };
    let (mock_server, given) = keystone(server, 1);
    let fixture = ContainerFixture::new(server, sink_of);
    let identity = KeystoneIdentity::Password {
        user: "ann".to_owned(),
        key: "se\"cret".into(),
        project: "events".to_owned(),
        domain: "Default".to_owned(),
    };
    let sink = sink_swift::sink(config(auth(&mock_server, identity), &fixture.container, fixture.rules.clone()));
    deliver(&sink, &plain(0, 1, 5)).await;
    deliver(&sink, &plain(0, 6, 5)).await;
    assert_eq!(fixture.count(), 10);
    assert_eq!(given.load(Ordering::Relaxed), 2, "the first had expired, and the second is used again");
    let asked: Value = serde_json::from_slice(&mock_server.asked()[0].body).unwrap();
    let domain = json!({"name": "Default"});
    assert_eq!(
        asked,
        json!({"auth": {
            "identity": {"methods": ["password"], "password": {"user": {
                "name": "ann", "domain": domain, "password": "se\"cret"
            }}},
            "scope": {"project": {"name": "events", "domain": domain}},
        }})
    );
}

#[tokio::test]
async fn application_credential_needs_no_project() {
    let Some(server) = SwiftServer::shared() else { return };
    let (mock_server, _) = keystone(server, 0);
    let fixture = ContainerFixture::new(server, sink_of);
    let identity = KeystoneIdentity::Application { id: "21dc".to_owned(), secret: "secret".into() };
    let sink = sink_swift::sink(config(auth(&mock_server, identity), &fixture.container, fixture.rules.clone()));
    deliver(&sink, &plain(0, 1, 5)).await;
    assert_eq!(fixture.count(), 5);
    let asked: Value = serde_json::from_slice(&mock_server.asked()[0].body).unwrap();
    assert_eq!(
        asked,
        json!({"auth": {"identity": {
            "methods": ["application_credential"], "application_credential": {"id": "21dc", "secret": "secret"}
        }}})
    );
}
