//! Reads of a sink over several databases: an event by its id from any of them, a page from that of a value.

use std::path::Path;

use serde_json::Value;

use super::read_back::get;
use crate::support::{Folder, Server, wait_until};
use crate::two_services::{BackEnd, gateway};
use testkit::postgres::PostgresServer;

/// The shards of a sink: that of the tenants `acme` and 7 has these settings.
fn shards(settings: &str) -> String {
    format!("shard_by = \"/tenant\"\n[sinks.warehouse.shards.acme]\n{settings}values = [\"acme\", \"7\"]\n")
}

fn stores(common: &PostgresServer, shard: &PostgresServer) -> String {
    let of_shard = shards(&format!("url = \"{}\"\n", shard.url()));
    format!("[sinks.warehouse]\nkind = \"postgres\"\nurl = \"{}\"\ntimeout = \"2s\"\n{of_shard}", common.url())
}

const TYPES: &str = "[types.access]\nroutes = [\"warehouse\"]\n[types.plain]\nroutes = [\"local\"]\n\
                     [sinks.local]\nkind = \"sqlite\"\n";

fn start(folder: &Folder, common: &PostgresServer, shard: &PostgresServer) -> Server {
    let path = folder.write("forebay.toml", format!("{TYPES}{}", stores(common, shard)));
    Server::start_configured(&folder.data(), Path::new(&path), &folder.path("log"))
}

/// A gateway whose writer has the databases.
fn start_with_writer(folder: &Folder, common: &PostgresServer, shard: &PostgresServer) -> (Server, BackEnd) {
    let path = folder.write("writer.toml", stores(common, shard));
    let writer = BackEnd::start_on(&folder.path("writer"), "127.0.0.1:0", &["--config", &path]);
    let text = format!(
        "[upstreams.back]\nservers = [\"{}\"]\n{TYPES}[sinks.warehouse]\nkind = \"writer\"\nupstream = \"back\"\n\
         store = \"postgres\"\nread = true\n{}",
        writer.url(),
        shards("")
    );
    let path = folder.write("gateway.toml", text);
    (gateway(&folder.data(), &["--config", &path], &folder.path("log")), writer)
}

/// Posts an event of each tenant, under the tenant's name.
fn post(server: &Server) {
    for tenant in ["acme", "globex", "7", "none"] {
        let value = if tenant == "7" { "7".to_owned() } else { format!("\"{tenant}\"") };
        assert_eq!(server.post_with_key(&format!("of-{tenant}"), &format!("{{\"tenant\": {value}}}")), 200);
    }
    server.wait_delivered();
}

fn ids(postgres: &PostgresServer) -> Vec<String> {
    postgres.psql("select id from events order by stored_in, stored_number").lines().map(str::to_owned).collect()
}

/// The ids of a page.
fn page(server: &Server, query: &str) -> Vec<String> {
    let (status, page) = get(server, &format!("/events?type=access{query}"));
    assert_eq!(status, 200, "{query}: {page}");
    page["events"].as_array().unwrap().iter().map(|event| event["id"].as_str().unwrap().to_owned()).collect()
}

/// Checks all ways of reading four events, two in each database.
fn check(server: &Server, common: &PostgresServer, shard: &PostgresServer) {
    let (of_common, of_shard) = (ids(common), ids(shard));
    assert_eq!((of_common.len(), of_shard.len()), (2, 2));
    for id in of_common.iter().chain(&of_shard) {
        for query in ["", "?type=access"] {
            let (status, event) = get(server, &format!("/events/{id}{query}"));
            assert_eq!((status, event["id"].as_str()), (200, Some(id.as_str())), "{event}");
        }
    }
    assert_eq!(get(server, &format!("/events/{}?shard=acme", of_shard[0])).0, 200);
    for other in [format!("{}?shard=globex", of_shard[0]), format!("{}?shard=7&type=access", of_common[0])] {
        let mut found = (0, Value::Null);
        // Until the other database's lane has passed the event, it may still store it.
        let is_unknown = wait_until(|| {
            found = get(server, &format!("/events/{other}"));
            found.0 == 404
        });
        assert!(is_unknown, "{other}: {found:?}");
    }
    for (query, expected) in [
        ("", &of_common),
        ("&shard=globex", &of_common),
        ("&shard=acme", &of_shard),
        ("&shard=7", &of_shard),
        ("&shard=%37", &of_shard),
        ("&shard=07", &of_common),
    ] {
        assert_eq!(page(server, query), *expected, "{query}");
    }
    assert_eq!(page(server, "&key=of-7&shard=acme"), of_shard[1..]);
    assert_eq!(page(server, "&key=of-acme&shard=7"), of_shard[..1]);
    assert_eq!(page(server, "&key=of-7"), [""; 0]);
    let (_, first) = get(server, "/events?type=access&shard=acme&limit=1");
    let next = first["next"].as_str().unwrap();
    assert_eq!(page(server, &format!("&shard=acme&cursor={next}")), of_shard[1..]);
    let (status, problem) = get(server, &format!("/events?type=access&cursor={next}"));
    assert_eq!((status, problem["code"].as_str()), (400, Some("cursor")), "a cursor belongs to its database");
    for target in
        ["/events?type=plain&shard=acme", "/events?key=a&type=plain&shard=b", "/events/0000?type=plain&shard=a"]
    {
        let target = target.replace("0000", &of_common[0]);
        let (status, problem) = get(server, &target);
        assert_eq!(status, 400);
        assert!(problem["detail"].as_str().unwrap().contains("has no shards"), "{problem}");
    }
}

#[test]
fn events_are_read_from_the_database_that_has_them() {
    let (Some(common), Some(shard)) = (PostgresServer::shared(), PostgresServer::shared()) else { return };
    let folder = Folder::new();
    let server = start(&folder, &common, &shard);
    post(&server);
    check(&server, &common, &shard);
}

#[test]
fn writer_reads_the_database_that_has_an_event() {
    let (Some(common), Some(shard)) = (PostgresServer::shared(), PostgresServer::shared()) else { return };
    let folder = Folder::new();
    let (server, _writer) = start_with_writer(&folder, &common, &shard);
    post(&server);
    check(&server, &common, &shard);
}

#[test]
fn dead_shard_hides_only_its_own_events() {
    let (Some(common), Some(shard)) = (PostgresServer::shared(), PostgresServer::start()) else { return };
    let folder = Folder::new();
    let server = start(&folder, &common, &shard);
    post(&server);
    let (of_common, of_shard) = (ids(&common), ids(&shard));
    assert_eq!(get(&server, &format!("/events/{}", of_shard[0])).0, 200);
    shard.kill();
    let code = |target: &str| {
        let (status, body): (u16, Value) = get(&server, target);
        (status, body["code"].as_str().unwrap_or_default().to_owned())
    };
    for id in &of_common {
        assert_eq!(code(&format!("/events/{id}")).0, 200);
    }
    let unavailable = (503, "store_unavailable".to_owned());
    // Until the lane of the common database has passed the event, that one may still store it.
    assert!(wait_until(|| code(&format!("/events/{}", of_shard[0])) == unavailable));
    let nowhere = "01990000-0000-7000-8000-000000000000";
    assert_eq!(code(&format!("/events/{nowhere}")), unavailable, "the shard may have it");
    assert_eq!(code(&format!("/events/{nowhere}?shard=globex")).0, 404);
    assert_eq!(code("/events?type=access&shard=acme"), unavailable);
    assert_eq!(page(&server, ""), of_common);
    shard.run();
    assert!(wait_until(|| code(&format!("/events/{}", of_shard[0])).0 == 200));
}
