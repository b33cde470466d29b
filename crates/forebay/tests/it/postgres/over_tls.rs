//! A PostgreSQL server that takes nothing but TLS, with a certificate of the test's own.

use super::{post, start_on};
use crate::support::{Folder, wait_until};
use crate::tls::Pair;
use testkit::ports::free_port;
use testkit::postgres::PostgresServer;

#[test]
fn rows_are_written_only_over_trusted_tls() {
    let port = free_port();
    let settings = ["shared_buffers=32MB", "listen_addresses=localhost", &format!("port={port}")];
    let Some(postgres) = PostgresServer::start_with(&settings) else { return };
    let (pair, untrusted) = (Pair::new(), Pair::new());
    postgres.secure(&pair.certificate, &pair.key);
    let folder = Folder::new();
    let authority = folder.write("authority.pem", &untrusted.certificate);
    let url = format!("postgres://postgres@localhost:{port}/postgres?sslmode=require");
    let server = start_on(&folder, &url, &format!("ca = \"{authority}\"\n"));
    assert_eq!(post(&server, 1), 200);
    let log = || std::fs::read_to_string(folder.path("log")).unwrap();
    assert!(wait_until(|| log().contains("isn't trusted")), "{}", log());
    assert!(log().contains("the setting `ca`"), "what to do: {}", log());
    assert_eq!(postgres.psql("select to_regclass('events') is null"), "t", "nothing went there");
    // The authority is exchanged without a restart.
    folder.write("authority.pem", &pair.certificate);
    server.wait_delivered();
    assert_eq!(postgres.psql("select count(*) from events"), "1");
    let secured = "select bool_and(ssl and version like 'TLSv1._') from pg_stat_ssl join pg_stat_activity using (pid)
        where application_name = 'forebay'";
    assert_eq!(postgres.psql(secured), "t");
    drop(server);
    let plain = Folder::new();
    let server = start_on(&plain, &url.replace("require", "disable"), "");
    assert_eq!(post(&server, 2), 200);
    let log = || std::fs::read_to_string(plain.path("log")).unwrap();
    assert!(wait_until(|| log().contains("28000") && log().contains("may log in")), "{}", log());
}

/// The user `scram` logs in by a password, and all others by trust, which binds nothing.
#[test]
fn login_is_bound_to_the_certificate_if_required() {
    let port = free_port();
    let settings = ["shared_buffers=32MB", "listen_addresses=localhost", &format!("port={port}")];
    let Some(postgres) = PostgresServer::start_with(&settings) else { return };
    let pair = Pair::new();
    postgres.secure(&pair.certificate, &pair.key);
    postgres.psql("set password_encryption = 'scram-sha-256'; create role scram superuser login password 'pw'");
    let options = "sslmode=require&channel_binding=require";
    let folder = Folder::new();
    let authority = folder.write("authority.pem", &pair.certificate);
    let ca = format!("ca = \"{authority}\"\n");
    let server = start_on(&folder, &format!("postgres://scram:pw@localhost:{port}/postgres?{options}"), &ca);
    assert_eq!(post(&server, 1), 200);
    server.wait_delivered();
    assert_eq!(postgres.psql("select count(*) from events"), "1");
    drop(server);
    let trusted = Folder::new();
    let server = start_on(&trusted, &format!("postgres://postgres@localhost:{port}/postgres?{options}"), &ca);
    assert_eq!(post(&server, 2), 200);
    let log = || std::fs::read_to_string(trusted.path("log")).unwrap();
    assert!(wait_until(|| log().contains("offered no channel binding")), "{}", log());
    assert!(log().contains("scram-sha-256 password"), "what to do: {}", log());
}
