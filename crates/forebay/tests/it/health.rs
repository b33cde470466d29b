//! `forebay health`: the health check of a container, with the real binary.

use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use crate::support::{Folder, Server, forebay};
use crate::two_services::BackEnd;
use testkit::ports::free_address;

/// Runs `forebay health`; returns its exit code and its error output.
fn health(arguments: &[&str], variables: &[(&str, &str)]) -> (Option<i32>, String) {
    let output = forebay().arg("health").args(arguments).envs(variables.iter().copied()).output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

fn asked_at(admin: SocketAddr) -> (Option<i32>, String) {
    health(&["--admin", &admin.to_string()], &[])
}

#[test]
fn server_is_healthy_until_it_is_gone() {
    let folder = Folder::new();
    let server = Server::start(&folder.data());
    let admin = server.admin;
    assert_eq!(asked_at(admin).0, Some(0));
    assert_eq!(health(&["--ready", "--admin", &admin.to_string()], &[]).0, Some(0));
    let file = folder.write("forebay.toml", format!("[gateway]\nadmin = \"{admin}\"\n"));
    assert_eq!(health(&["--config", &file], &[]).0, Some(0), "the file names the address");
    assert_eq!(health(&[], &[("FOREBAY_GATEWAY_ADMIN", &admin.to_string())]).0, Some(0), "the environment names it");

    assert_eq!(server.stop("-KILL"), None);
    let (code, text) = asked_at(admin);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains(&format!("no response from http://{admin}/healthz: ")), "{text}");
}

#[test]
fn writer_health_uses_its_admin_port() {
    let folder = Folder::new();
    let writer = BackEnd::start_on(&folder.data(), "127.0.0.1:0", &[]);
    let variables = [("FOREBAY_ROLE", "writer"), ("FOREBAY_WRITER_ADMIN", &*writer.admin.to_string())];
    assert_eq!(health(&["--ready"], &variables), (Some(0), String::new()));
    writer.stop();
    let (code, text) = health(&["--ready"], &variables);
    assert!(code == Some(1) && text.contains("no response from ") && text.contains("/readyz: "), "{text}");
}

/// Sends the same bytes repeatedly, with a pause, to each client.
fn endless(bytes: &'static [u8], pause: Duration) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let mut client = client.unwrap();
            while client.write_all(bytes).is_ok() {
                std::thread::sleep(pause);
            }
        }
    });
    address
}

#[test]
fn endless_response_is_unhealthy() {
    for (bytes, pause) in [
        (&b"HTTP/1.1 200 OK\r\n"[..], Duration::ZERO),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n", Duration::ZERO),
        (b"H", Duration::from_millis(500)),
    ] {
        let (code, text) = asked_at(endless(bytes, pause));
        assert!(code == Some(1) && text.contains("no response from"), "{text}");
    }
}

#[test]
fn hanging_server_is_unhealthy() {
    let folder = Folder::new();
    let server = Server::start(&folder.data());
    server.signal("-STOP");
    let (code, text) = asked_at(server.admin);
    server.signal("-CONT");
    assert!(code == Some(1) && text.contains("no response from"), "{text}");

    // An error elsewhere says nothing about the server, which keeps its configuration.
    let admin = server.admin;
    let file = folder
        .write("forebay.toml", format!("no_such = 1\n[gateway]\nadmin = \"{admin}\"\ntype_pointer = \"${{X}}\"\n"));
    assert_eq!(health(&["--config", &file], &[("FOREBAY_ROLE", "gateway")]), (Some(0), String::new()));

    let file = folder.write("wrong.toml", "[gateway]\nadmin = \"nowhere\"\n");
    let (code, text) = health(&["--config", &file], &[]);
    assert!(code == Some(1) && text.contains("admin"), "{text}");
    let (code, text) = asked_at(free_address());
    assert!(code == Some(1) && text.contains("Start the server"), "{text}");
}
