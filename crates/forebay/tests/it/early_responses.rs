//! Refusals reach real clients that write the whole body before they read.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;

use crate::support::{Folder, Server, exchange, forebay, wait_until};

/// Posts so many bytes to each of the URLs, and prints the statuses.
const URLLIB: &str = "
import sys, urllib.error, urllib.request
for argument in sys.argv[1:]:
    url, size, *headers = argument.split(' ')
    headers = dict(header.split('=') for header in headers)
    try:
        request = urllib.request.Request(url, data=b' ' * int(size), headers=headers)
        print(urllib.request.urlopen(request, timeout=60).status)
    except urllib.error.HTTPError as error:
        print(error.code)
    except OSError as error:
        print(error)
";
const NODE_FETCH: &str = "
(async () => {
  for (const argument of process.argv.slice(1)) {
    const [url, size, ...headers] = argument.split(' ');
    const options = { method: 'POST', body: ' '.repeat(+size), headers: headers.map((header) => header.split('=')) };
    await fetch(url, options).then((r) => console.log(r.status), (e) => console.log(e.cause?.code ?? e.message));
  }
})();
";

/// The output of a client; `None` if it isn't installed.
fn printed(client: &[&str], arguments: &[String]) -> Option<Vec<String>> {
    let Ok(output) = Command::new(client[0]).args(&client[1..]).args(arguments).output() else {
        testkit::skipped::report(&format!("{} isn't installed", client[0]));
        return None;
    };
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{client:?}: {}", String::from_utf8_lossy(&output.stderr));
    Some(text.lines().map(str::to_owned).collect())
}

fn new_token(data: &Path) -> String {
    let output =
        forebay().args(["token", "new", "all", "--scope", "ingest,admin", "--data"]).arg(data).output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

#[test]
fn clients_that_write_first_hear_the_status() {
    let folder = Folder::new();
    let token = new_token(&folder.data());
    let server = Server::start(&folder.data());
    let key = format!("X-Api-Key={token}");
    let mut expected = Vec::new();
    let mut arguments = Vec::new();
    for (status, path, headers) in [
        ("401", "/ingest/batch", ""),
        ("404", "/nowhere", &*key),
        ("413", "/ingest/event", &key),
        ("415", "/ingest/batch", &format!("{key} Content-Encoding=br")),
    ] {
        for size in [5_000_000, 60_000_000] {
            expected.push(status);
            arguments.push(format!("{}{path} {size} {headers}", server.url()).trim_end().to_owned());
        }
    }
    for client in [["python3", "-c", URLLIB], ["node", "-e", NODE_FETCH]] {
        if let Some(statuses) = printed(&client, &arguments) {
            assert_eq!(statuses, expected, "{}", client[0]);
        }
    }
}

/// Writes a request with a large body, and then reads the status.
fn write_then_read(address: SocketAddr, start: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!("{start} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 20000000\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(&vec![b' '; 20_000_000]).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

#[test]
fn so_do_those_of_the_admin_port() {
    let folder = Folder::new();
    let token = new_token(&folder.data());
    let server = Server::start(&folder.data());
    for (start, status) in [
        ("POST /api/reload", "401"),
        (&*format!("POST /api/nothing HTTP/1.1\r\nAuthorization: Bearer {token}\r\nX:"), "404"),
        (&*format!("POST /api/reload HTTP/1.1\r\nX-Api-Key: {token}\r\nX:"), "401"),
        ("POST /api/reload HTTP/3.0\r\nX:", "400"),
    ] {
        let response = write_then_read(server.admin, start);
        assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{start}: {response}");
    }
    let has = |line: &str| forebay_metrics(&server, &token).contains(&format!("\n{line}\n"));
    assert!(wait_until(|| has("forebay_http_draining_connections 0")), "each connection is closed");
    assert!(has("forebay_http_drains_refused_total 0"));
    let metrics = forebay_metrics(&server, &token);
    let discarded = metrics.lines().find_map(|line| line.strip_prefix("forebay_http_drained_bytes_total ")).unwrap();
    assert!(discarded.parse::<u64>().unwrap() > 70_000_000, "{discarded}");
}

fn forebay_metrics(server: &Server, token: &str) -> String {
    let request = format!(
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
    );
    exchange(server.admin, &request).1
}
