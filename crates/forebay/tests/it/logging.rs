//! The log: a reader of stderr that stopped reading holds up nothing.

use std::fs::OpenOptions;
use std::io::{ErrorKind, PipeWriter, Write, pipe};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;

use crate::support::{Folder, Server, forebay, payloads};

/// `O_NONBLOCK` of Linux.
const NON_BLOCKING: i32 = 0o4000;

/// Fills a pipe by a descriptor of its own: the one of the pipe keeps its mode.
fn fill(pipe: &PipeWriter) {
    let path = format!("/proc/self/fd/{}", pipe.as_raw_fd());
    let mut second = OpenOptions::new().write(true).custom_flags(NON_BLOCKING).open(path).unwrap();
    for bytes in [vec![b'x'; 4096], vec![b'x']] {
        while second.write(&bytes).map_err(|error| assert_eq!(error.kind(), ErrorKind::WouldBlock)).is_ok() {}
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_reader_that_stopped_reading_stops_neither_delivery_nor_the_admin_port_nor_the_end() {
    let folder = Folder::new();
    let config =
        folder.write("forebay.toml", "[sinks.local]\nkind = \"sqlite\"\n[types.\"*\"]\nroutes = [\"local\"]\n");
    let (_reader, output) = pipe().unwrap();
    fill(&output);
    let mut command = forebay();
    command.args(["serve", "--config", &config]).stderr(output.try_clone().unwrap());
    let server = Server::start_command(command, &folder.data());
    folder.write("forebay.toml", "nonsense");
    server.signal("-HUP");
    server.wait("forebay_reloads_total{result=\"refused\"}", |refused| refused == 1);
    for number in 0..10 {
        assert_eq!(server.post("/ingest/event", &number.to_string()).0, 200);
    }
    server.wait_delivered();
    assert_eq!(server.metric("forebay_log_dropped_total"), 0);

    assert_eq!(server.stop("-TERM"), Some(0), "the last lines are given up after a second");
    assert_eq!(payloads(&folder.data()).len(), 10);
}
