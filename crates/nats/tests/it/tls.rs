//! Connections with TLS.

use nats::{Bus, ConnectOptions};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use testkit::logged::Logged;
use testkit::nats::NatsServer;

use crate::cluster;
use crate::fixture::{LONG, ask, echo, local, options, until_answered};

/// The files of servers with a certificate for `localhost`, and their settings.
struct Certified {
    folder: tempfile::TempDir,
    settings: String,
}

impl Certified {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [certificate, key] = ["server.pem", "server.key"].map(|name| folder.path().join(name));
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        std::fs::write(&certificate, cert.pem()).unwrap();
        std::fs::write(&key, signing_key.serialize_pem()).unwrap();
        let settings = format!("tls {{ cert_file: {certificate:?}, key_file: {key:?} }}\n");
        Self { folder, settings }
    }

    /// A client that trusts the certificate.
    fn client(&self, scheme: &str, server: &NatsServer) -> Bus {
        let url = format!("{scheme}://localhost:{}", server.address().port());
        Bus::start(ConnectOptions { ca: Some(self.folder.path().join("server.pem")), ..options(&url) })
    }
}

#[test]
fn requests_are_answered_over_tls_before_and_after_a_loss() {
    let certified = Certified::new();
    let Some(server) = NatsServer::start_with(&format!("jetstream: false\n{}", certified.settings)) else { return };
    local(async {
        // A server may require TLS without the URL.
        let (client, worker) = (certified.client("tls", &server), certified.client("nats", &server));
        echo(&worker, "echo").await;
        client.connected().await;
        let large = "x".repeat(500_000);
        assert!(ask(&client, "echo", &large, LONG).await.is_ok_and(|answer| answer[1..] == large));
        server.kill();
        server.run();
        until_answered(&client, "echo").await;
    });
}

#[test]
fn server_with_another_certificate_is_not_used() {
    let (certified, other) = (Certified::new(), Certified::new());
    let Some(server) = NatsServer::start_with(&format!("jetstream: false\n{}", certified.settings)) else { return };
    let Some(without) = NatsServer::start_with("jetstream: false\n") else { return };
    local(async {
        let logged = Logged::start();
        let clients = [other.client("tls", &server), certified.client("tls", &without)];
        let is_logged = |text: &str| logged.lines().concat().contains(text);
        while !(is_logged("isn't trusted") && is_logged(&format!(":{}", without.address().port()))) {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        assert!(clients.iter().all(|client| !client.is_connected()), "{:#?}", logged.lines());
    });
}

#[test]
fn client_follows_a_cluster_over_tls() {
    let certified = Certified::new();
    local(async {
        let Some(servers) = cluster::servers(3, &certified.settings) else { return };
        let worker = certified.client("tls", &servers[2]);
        echo(&worker, "echo").await;
        // The URL has the first server only. The others are known by addresses, which the certificate doesn't have.
        let client = certified.client("tls", &servers[0]);
        until_answered(&client, "echo").await;
        for server in &servers[..2] {
            server.kill();
            until_answered(&client, "echo").await;
        }
    });
}
