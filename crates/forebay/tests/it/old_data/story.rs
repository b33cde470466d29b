//! Shared by the fixtures' writer and today's tests: configurations, events and stores.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use crate::aggregates::{MINUTES, config};
use crate::support::{Folder, Server};

pub(super) const NOWHERE: &str = "kind = \"webhook\"\nurl = \"http://127.0.0.1:9/\"\n";
pub(super) const SQLITE: &str = "kind = \"sqlite\"\n";
/// Its store can't be reached.
pub(super) const BACKLOG: &str = "[gateway]\nshards = 1\n[types.\"*\"]\nroutes = [\"late\"]\n[sinks.late]\nkind = \"webhook\"\n\
                                  url = \"http://127.0.0.1:9/\"\n";
pub(super) const OBJECTS: &str = "[gateway]\nshards = 1\n[types.\"*\"]\nroutes = [\"archive\"]\n[sinks.archive]\n\
                                  kind = \"directory\"\npath = \"archive\"\ncodec = \"none\"\nmax_age = \"1s\"\n";
/// Two servers on copies of one data directory have the same store, which is outside of both.
pub(super) const DISPUTE: &str = "[gateway]\nshards = 1\n[types.\"*\"]\nroutes = [\"s\"]\n[sinks.s]\nkind = \"sqlite\"\n\
                                  path = \"../store.db\"\n";

/// The receiver is at another address each time.
pub(super) fn deferred(receiver: SocketAddr) -> String {
    format!(
        "[gateway]\nshards = 1\n[types.\"*\"]\nroutes = [\"hook\"]\n[sinks.hook]\nkind = \"webhook\"\n\
         url = \"http://{receiver}/\"\n"
    )
}

/// The old build only has the setting's old name.
pub(super) fn windows() -> String {
    config(MINUTES).replace("idle_timeout", "quiet")
}

/// Starts a server by `program` on the data directory in `folder`.
pub(super) fn start(mut program: Command, folder: &Folder, config: &str) -> Server {
    let config = folder.write("forebay.toml", config);
    program.args(["serve", "--config", &config]).stderr(std::fs::File::create(folder.path("log")).unwrap());
    Server::start_command(program, &folder.data())
}

pub(super) fn post(server: &Server, number: u64) {
    assert_eq!(server.post("/ingest/event/access", &format!("{{\"n\":{number}}}")).0, 200);
}

pub(super) fn wait_stopped(server: &Server) {
    server.wait("forebay_lane_state{sink=\"s\",shard=\"0\",state=\"stopped\"}", |stopped| stopped == 1);
}

pub(super) fn numbers_of(payloads: impl Iterator<Item = String>) -> Vec<u64> {
    let number = |payload: String| payload.trim().strip_prefix("{\"n\":")?.strip_suffix('}')?.parse().ok();
    let mut numbers: Vec<u64> = payloads.map(|payload| number(payload).unwrap()).collect();
    numbers.sort_unstable();
    numbers
}

/// The numbers in the embedded store.
pub(super) fn numbers(folder: &Folder) -> Vec<u64> {
    numbers_in(&folder.data().join("events.db"))
}

pub(super) fn numbers_in(store: &Path) -> Vec<u64> {
    let store = rusqlite::Connection::open(store).unwrap();
    let mut select = store.prepare("select payload from events").unwrap();
    numbers_of(select.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap))
}
