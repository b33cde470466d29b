//! Logins, and subjects that a user may not use.

use nats::{Bus, BusError, ConnectOptions};
use testkit::logged::Logged;
use testkit::nats::NatsServer;

use crate::fixture::{LONG, ask, connected, echo, local, options};
use crate::operator::Operator;

/// A pair of keys in NATS' own documentation.
const SEED: &str = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY";
const PUBLIC: &str = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4";

#[test]
fn user_token_and_key_are_accepted() {
    let users = format!(
        "jetstream: false\nauthorization {{ users [ {{ user: ann, password: s3cret }}, {{ nkey: {PUBLIC} }} ] }}\n"
    );
    let Some(of_users) = NatsServer::start_with(&users) else { return };
    let Some(of_token) = NatsServer::start_with("jetstream: false\nauthorization { token: t0ken }\n") else { return };
    local(async {
        connected(format!("ann:s3cret@{}", of_users.address())).await;
        connected(format!("t0ken@{}", of_token.address())).await;
        let file = of_users.folder().join("user.nk");
        std::fs::write(&file, SEED).unwrap();
        let options = ConnectOptions { credentials: Some(file), ..options(&format!("nats://{}", of_users.address())) };
        Bus::start(options).connected().await;
    });
}

#[test]
fn user_of_an_operators_account_is_accepted() {
    let (operator, other) = (Operator::new([1; 32], [2; 32]), Operator::new([1; 32], [3; 32]));
    let Some(server) = NatsServer::start_with(&operator.configuration()) else { return };
    local(async {
        let file = server.folder().join("user.creds");
        // The file is read for each connection.
        std::fs::write(&file, other.credentials(PUBLIC, SEED)).unwrap();
        let url = format!("nats://{}", server.address());
        let client = Bus::start(ConnectOptions { credentials: Some(file.clone()), ..options(&url) });
        while !server.log().contains("authentication error") {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        assert!(!client.is_connected());
        std::fs::write(&file, operator.credentials(PUBLIC, SEED)).unwrap();
        client.connected().await;
        echo(&client, "echo").await;
        assert_eq!(ask(&client, "echo", "x", LONG).await, Ok("=x".to_owned()));
    });
}

#[test]
fn rejected_login_is_logged_once_and_retried() {
    let configuration =
        |password: &str| format!("jetstream: false\nauthorization {{ user: ann, password: {password} }}\n");
    let Some(server) = NatsServer::start_with(&configuration("other")) else { return };
    local(async {
        let logged = Logged::start();
        let bus = Bus::start(options(&format!("nats://ann:s3cret@{}", server.address())));
        let attempts = || server.log().matches("authentication error").count();
        while attempts() < 3 {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        assert!(!bus.is_connected());
        server.kill();
        server.configure(&configuration("s3cret"));
        server.run();
        bus.connected().await;
        let lines = logged.lines();
        let rejected = lines.iter().filter(|line| line.contains("`url` or `credentials` has the account")).count();
        assert_eq!(rejected, 1, "{lines:#?}");
        assert!(!lines.concat().contains("s3cret"), "{lines:#?}");
    });
}

#[test]
fn forbidden_subject_fails_only_its_requests() {
    let permissions = "publish: [\"ok.>\", \"_INBOX.>\"], subscribe: [\"_INBOX.>\", \"ok.>\"]";
    let users = format!(
        "jetstream: false\nauthorization {{ users [ {{ user: ann, password: x, permissions: {{ {permissions} }} }} ] }}\n"
    );
    let Some(server) = NatsServer::start_with(&users) else { return };
    local(async {
        let client = connected(format!("ann:x@{}", server.address())).await;
        echo(&client, "ok.echo").await;
        for number in 0..20 {
            let payload = number.to_string();
            let (allowed, forbidden) =
                tokio::join!(ask(&client, "ok.echo", &payload, LONG), ask(&client, "other.echo", &payload, LONG));
            assert_eq!(allowed, Ok(format!("={number}")));
            let Err(BusError::Forbidden(said)) = forbidden else { panic!("{forbidden:?}") };
            assert!(said.contains("other.echo"), "{said}");
        }
        assert!(client.is_connected());
    });
}

#[test]
fn user_without_responses_is_not_connected() {
    let permissions = "publish: [\">\"], subscribe: [\"ok.>\"]";
    let users = format!(
        "jetstream: false\nauthorization {{ users [ {{ user: ann, password: x, permissions: {{ {permissions} }} }} ] }}\n"
    );
    let Some(server) = NatsServer::start_with(&users) else { return };
    local(async {
        let logged = Logged::start();
        let bus = Bus::start(options(&format!("nats://ann:x@{}", server.address())));
        while !logged.lines().concat().contains("Permissions Violation for Subscription") {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        assert!(!bus.is_connected());
    });
}
