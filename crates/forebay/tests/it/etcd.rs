//! Writers that register in etcd, and a gateway that discovers them: kills, restarts, lost data, users, TLS, another process at a writer's
//! address.

use std::time::{Duration, Instant};

use crate::store_ids::{expect_refusal, two_databases};
use crate::support::{Folder, forebay, wait_until};
use crate::tls::Pair;
use crate::two_services::BackEnd;
use crate::upstreams::{FrontEnd, NULL, warehouse, writer_on};
use testkit::etcd::EtcdServer;
use testkit::ports::free_address;
use testkit::postgres::PostgresServer;

const LEASE: Duration = Duration::from_secs(3);
/// Longer than any test.
const LONG: &str = "lease = \"1h\"";
const SERVERS: &str = "forebay_upstream_servers{";

/// A writer's tables for an etcd.
fn registers(etcd: &EtcdServer, url: &str, settings: &str) -> String {
    format!("[writer]\nadvertise = \"{url}\"\n[writer.etcd]\nendpoints = [\"{}\"]\n{settings}\n", etcd.url())
}

/// A gateway's table for an etcd, with more settings of the upstream.
fn finds(etcd: &EtcdServer, upstream: &str, settings: &str) -> String {
    format!("{upstream}\n[upstreams.back.etcd]\nendpoints = [\"{}\"]\n{settings}\n", etcd.url())
}

/// A writer that registers by its address with this lease.
fn writer(folder: &Folder, name: &str, etcd: &EtcdServer, lease: &str, sinks: &str) -> BackEnd {
    let address = free_address().to_string();
    let text = format!("{}{sinks}", registers(etcd, &format!("http://{address}"), lease));
    writer_on(folder, name, &address, &text)
}

fn short() -> String {
    format!("lease = \"{}s\"", LEASE.as_secs())
}

fn is_registered(writer: &BackEnd) -> bool {
    writer.metrics().contains("\nforebay_writer_registered 1\n")
}

/// Waits until the gateway has one writer: the other one is gone within its lease + 2 s, and some more on a machine that is busy.
#[allow(clippy::print_stdout, reason = "the figure")]
fn expect_gone(front: &FrontEnd, since: Instant) {
    front.server.wait(SERVERS, |servers| servers == 1);
    let took = since.elapsed();
    println!("a killed writer with a lease of {LEASE:?} was gone after {took:?}");
    assert!(took < LEASE + Duration::from_secs(10), "the writer was gone after {took:?}, with a lease of {LEASE:?}");
}

#[test]
fn killed_writer_disappears_with_its_lease() {
    let (Some(mut etcd), Some(postgres)) = (EtcdServer::start(), PostgresServer::shared()) else { return };
    let folder = Folder::new();
    let start = |name: &str, etcd: &EtcdServer| writer(&folder, name, etcd, &short(), &warehouse(&postgres));
    let [one, two] = ["one", "two"].map(|name| start(name, &etcd));
    let front = FrontEnd::start(&finds(&etcd, "", ""), "store = \"postgres\"");
    front.server.wait(SERVERS, |servers| servers == 2);
    front.post(0..40);
    front.server.wait_delivered();
    drop(one);
    let killed = Instant::now();
    front.post(40..60);
    expect_gone(&front, killed);
    // The same while etcd is away: the gateway keeps the set, events are stored, and the lease ends after etcd's restart.
    let three = start("three", &etcd);
    front.server.wait(SERVERS, |servers| servers == 2);
    etcd.kill();
    drop(three);
    let failed = "forebay_upstream_lookups_total{upstream=\"back\",result=\"failed\"}";
    let before = front.server.metric(failed);
    front.post(60..80);
    front.server.wait(failed, |count| count > before + 2);
    assert_eq!(front.server.metric(SERVERS), 2, "the set is kept");
    front.server.wait_delivered();
    etcd.run();
    expect_gone(&front, Instant::now());
    assert!(wait_until(|| is_registered(&two)));
    front.post(80..100);
    front.server.wait_delivered();
    assert_eq!(postgres.psql("select count(*), count(distinct payload->>'number') from events"), "100|100");
}

#[test]
fn writers_register_again_after_etcd_lost_data() {
    let Some(mut etcd) = EtcdServer::start() else { return };
    let folder = Folder::new();
    let writers = ["one", "two"].map(|name| writer(&folder, name, &etcd, &short(), NULL));
    let front = FrontEnd::start(&finds(&etcd, "", ""), "store = \"null\"");
    front.server.wait(SERVERS, |servers| servers == 2);
    // The writer writes a deleted key again.
    etcd.control(&["del", "--prefix", "/forebay/"]);
    assert!(wait_until(|| etcd.registered() == 2));
    etcd.kill();
    etcd.forget();
    assert!(wait_until(|| writers.iter().all(|writer| !is_registered(writer))));
    let (code, text) = crate::status::at(writers[0].admin);
    assert!(
        code == 3 && text.ends_with("UNHEALTHY the writer is not registered in etcd: check etcd and its settings\n"),
        "{text}"
    );
    etcd.run();
    front.post(0..5);
    front.server.wait_delivered();
    assert!(wait_until(|| etcd.registered() == 2 && writers.iter().all(is_registered)));
    // The writers may have registered one after the other.
    front.server.wait(SERVERS, |servers| servers == 2);
    // The gateway follows the new one.
    let _three = writer(&folder, "three", &etcd, &short(), NULL);
    front.server.wait(SERVERS, |servers| servers == 3);
}

#[test]
fn last_writer_stays_when_etcd_is_empty() {
    let Some(etcd) = EtcdServer::start() else { return };
    let folder = Folder::new();
    let address = free_address().to_string();
    let _writer = writer_on(&folder, "one", &address, NULL);
    etcd.control(&["put", "/forebay/writers/by-hand", &format!("{{\"url\": \"http://{address}\"}}")]);
    let front = FrontEnd::start(&finds(&etcd, "", ""), "store = \"null\"");
    front.server.wait(SERVERS, |servers| servers == 1);
    etcd.control(&["del", "/forebay/writers/by-hand"]);
    front.server.wait("forebay_upstream_lookups_total{upstream=\"back\",result=\"failed\"}", |failed| failed > 0);
    // A separate thread writes the log.
    let log = || std::fs::read_to_string(front.folder.path("log")).unwrap();
    assert!(wait_until(|| log().contains("no writer is registered under /forebay/writers/")), "{}", log());
    assert_eq!(front.server.metric(SERVERS), 1);
    front.post(0..3);
    front.server.wait_delivered();
}

#[test]
fn writer_and_gateway_start_without_etcd() {
    let Some(mut etcd) = EtcdServer::start() else { return };
    let folder = Folder::new();
    etcd.kill();
    let front = FrontEnd::start(&finds(&etcd, "", ""), "store = \"null\"");
    let _writer = writer(&folder, "one", &etcd, &short(), NULL);
    front.post(0..5);
    let failed = "forebay_upstream_lookups_total{upstream=\"back\",result=\"failed\"}";
    front.server.wait(failed, |count| count > 1);
    assert_eq!(front.server.metric("forebay_events_pending{"), 5);
    etcd.run();
    front.server.wait_delivered();
    let log = std::fs::read_to_string(front.folder.path("log")).unwrap();
    assert_eq!(log.matches("etcd returned no writers").count(), 1, "it is said once: {log}");
}

#[test]
fn stopped_writer_is_deregistered_and_reload_changes_discovery() {
    let Some(etcd) = EtcdServer::start() else { return };
    let folder = Folder::new();
    let [one, two] = ["one", "two"].map(|name| writer(&folder, name, &etcd, LONG, NULL));
    let front = FrontEnd::start(&format!("servers = [\"{}\"]", one.url()), "store = \"null\"");
    front.reload(&finds(&etcd, "", ""));
    front.server.wait(SERVERS, |servers| servers == 2);
    front.post(0..10);
    one.stop();
    assert_eq!(etcd.registered(), 1);
    front.server.wait(SERVERS, |servers| servers == 1);
    front.post(10..20);
    front.server.wait_delivered();
    front.reload(&format!("servers = [\"{}\"]", two.url()));
    let _three = writer(&folder, "three", &etcd, LONG, NULL);
    assert!(wait_until(|| etcd.registered() == 2));
    front.post(20..30);
    front.server.wait_delivered();
    assert_eq!(front.server.metric(SERVERS), 1);
}

#[test]
fn invalid_registrations_are_ignored() {
    let Some(etcd) = EtcdServer::start() else { return };
    let folder = Folder::new();
    let _writer = writer(&folder, "one", &etcd, &short(), NULL);
    for (key, value) in
        [("a", "no JSON"), ("b", "{\"url\": \"ftp://host\"}"), ("c", "{\"url\": \"http://ann:secret@h\"}")]
    {
        etcd.control(&["put", &format!("/forebay/writers/{key}"), value]);
    }
    etcd.control(&["put", "/forebay/writersandmore", "{\"url\": \"http://127.0.0.1:1\"}"]);
    etcd.control(&["put", "/forebay/writers/d", "{\"url\": \"http://10.0.0.1:8081\"}"]);
    // With a token the gateway ignores a writer without TLS on another machine.
    let front = FrontEnd::start(&finds(&etcd, "token = \"fb_x\"", ""), "store = \"null\"");
    front.post(0..3);
    front.server.wait_delivered();
    assert_eq!(front.server.metric(SERVERS), 1);
    let log = std::fs::read_to_string(front.folder.path("log")).unwrap();
    for value in ["no JSON", "ftp://host", "secret"] {
        assert!(!log.contains(value), "{value} in {log}");
    }
    for words in ["/forebay/writers/a", "/forebay/writers/b", "http://10.0.0.1:8081 is not used", "allow_http"] {
        assert!(log.contains(words), "{words} in {log}");
    }
    front.reload(&finds(&etcd, "token = \"fb_x\"", "allow_http = true"));
    front.server.wait(SERVERS, |servers| servers == 2);
}

#[test]
fn password_user_is_limited_to_the_prefix() {
    let Some(mut etcd) = EtcdServer::start() else { return };
    let folder = Folder::new();
    for arguments in [
        &["user", "add", "root:rootpw"][..],
        &["user", "grant-role", "root", "root"],
        &["role", "add", "writers"],
        &["role", "grant-permission", "--prefix=true", "writers", "readwrite", "/forebay/writers/"],
        &["user", "add", "forebay:pass\"word"],
        &["user", "grant-role", "forebay", "writers"],
        &["auth", "enable"],
    ] {
        etcd.control(arguments);
    }
    let account = "user = \"forebay\"\npassword = 'pass\"word'";
    let one = writer(&folder, "one", &etcd, &format!("{}\n{account}", short()), NULL);
    let front = FrontEnd::start(&finds(&etcd, "", account), "store = \"null\"");
    front.server.wait(SERVERS, |servers| servers == 1);
    etcd.kill();
    assert!(wait_until(|| !is_registered(&one)));
    etcd.run();
    assert!(wait_until(|| is_registered(&one)));
    // The gateway's watch has a new token, too.
    let two = writer(&folder, "two", &etcd, &format!("{LONG}\n{account}"), NULL);
    front.server.wait(SERVERS, |servers| servers == 2);
    two.stop();
    front.server.wait(SERVERS, |servers| servers == 1);
    // A writer with wrong settings still starts, but isn't registered.
    let wrong = writer(&folder, "wrong", &etcd, "user = \"forebay\"\npassword = \"other\"", NULL);
    let without = writer(&folder, "without", &etcd, "", NULL);
    let elsewhere = writer(&folder, "elsewhere", &etcd, &format!("prefix = \"/other/\"\n{account}"), NULL);
    front.post(0..3);
    front.server.wait_delivered();
    assert!([wrong, without, elsewhere].iter().all(|writer| !is_registered(writer)));
}

#[test]
fn etcd_tls_trusts_only_the_configured_authority() {
    let pair = Pair::new();
    let Some(etcd) = EtcdServer::start_with(Some((&pair.certificate, &pair.key))) else { return };
    let folder = Folder::new();
    let ca = format!("ca = \"{}\"", etcd.certificate());
    let _one = writer(&folder, "one", &etcd, &ca, NULL);
    let front = FrontEnd::start(&finds(&etcd, "", &ca), "store = \"null\"");
    front.post(0..3);
    front.server.wait_delivered();
    let strange = FrontEnd::start(&finds(&etcd, "", ""), "store = \"null\"");
    let log = || std::fs::read_to_string(strange.folder.path("log")).unwrap();
    assert!(wait_until(|| log().contains("isn't trusted")), "{}", log());
    assert_eq!(strange.server.metric(SERVERS), 0);
}

#[test]
fn no_token_for_another_certificate() {
    let Some(etcd) = EtcdServer::start() else { return };
    let (folder, address) = (Folder::new(), free_address().to_string());
    let port = address.rsplit(':').next().unwrap();
    let tls = |name: &str| {
        let pair = Pair::new();
        folder.write(&format!("{name}.key"), &pair.key);
        let certificate = folder.write(&format!("{name}.pem"), &pair.certificate);
        (certificate, format!("[writer.tls]\ncertificate = \"{name}.pem\"\nkey = \"{name}.key\"\n"))
    };
    let (ca, before) = tls("before");
    let token = String::from_utf8(
        forebay()
            .args(["token", "new", "gateways", "--scope", "deliver", "--data"])
            .arg(folder.path("one"))
            .output()
            .unwrap()
            .stdout,
    );
    let token = token.unwrap().trim().to_owned();
    let tables = registers(&etcd, &format!("https://localhost:{port}"), LONG);
    let one = writer_on(&folder, "one", &address, &format!("{tables}{before}{NULL}"));
    let front = FrontEnd::start(&finds(&etcd, &format!("token = \"{token}\"\nca = \"{ca}\""), ""), "store = \"null\"");
    front.post(0..3);
    front.server.wait_delivered();
    // The registration remains, and another process has the address.
    drop(one);
    let (_, after) = tls("after");
    let other = writer_on(&folder, "one", &address, &format!("{after}{NULL}"));
    front.post(3..6);
    let server = format!("https://localhost:{port}");
    let unsent = front.requests(&server, "unsent");
    let log = || std::fs::read_to_string(front.folder.path("log")).unwrap();
    assert!(wait_until(|| log().contains("isn't trusted")), "{}", log());
    assert!(wait_until(|| front.requests(&server, "unsent") > unsent + 1));
    assert_eq!(front.server.metric("forebay_events_pending{"), 3);
    let metrics = other.metrics();
    let counts = metrics.lines().filter(|line| line.starts_with("forebay_writer_") && !line.ends_with(" 0"));
    assert_eq!(counts.collect::<Vec<_>>(), Vec::<&str>::new(), "no request arrived");
}

#[test]
fn no_event_for_writer_of_another_store() {
    let Some(etcd) = EtcdServer::start() else { return };
    let Some([first, other]) = two_databases() else { return };
    let (folder, address) = (Folder::new(), free_address().to_string());
    let tables = registers(&etcd, &format!("http://{address}"), LONG);
    let one = writer_on(&folder, "one", &address, &format!("{tables}{}", warehouse(&first)));
    let front = FrontEnd::start(&finds(&etcd, "", ""), "store = \"postgres\"");
    front.post(0..3);
    front.server.wait_delivered();
    drop(one);
    let other_writer = writer_on(&folder, "two", &address, &warehouse(&other));
    front.post(3..6);
    expect_refusal(&front.server, &["in another store", "forebay route accept"]);
    assert_eq!(other.psql("select count(*) from events"), "0");
    drop(other_writer);
    let _one = writer_on(&folder, "one", &address, &format!("{tables}{}", warehouse(&first)));
    front.server.wait_delivered();
    assert_eq!(first.psql("select count(*), count(distinct payload->>'number') from events"), "6|6");
}
