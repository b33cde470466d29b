//! The console through nginx and HAProxy, as the guide configures them, without TLS.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};

use testkit::ports::free_address;

use super::{Access, CONFIG, Folder, HANGS, Running, ask, bearer, wait_until};

const GUIDE: &str = include_str!("../../../../../docs/guides/behind-a-proxy.md");
/// Headers of a browser that opens the guide's host name.
const BROWSER: &str =
    "Host: console.example.com\r\nOrigin: https://console.example.com\r\nSec-Fetch-Site: same-origin\r\n";

/// The blocks of the guide's section about the console that are in this language.
fn blocks(language: &str) -> Vec<String> {
    let section = GUIDE.split("\n## Console\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let fenced = section.split("```").skip(1).step_by(2).filter_map(|block| block.split_once('\n'));
    fenced.filter(|(name, _)| *name == language).map(|(_, text)| text.to_owned()).collect()
}

/// The block for another address of the server and of the proxy, without TLS.
fn adapted(block: &str, bind: &str, listen: SocketAddr, admin: SocketAddr) -> String {
    assert!(block.contains("127.0.0.1:9000"), "{block}");
    let is_kept = |line: &&str| !line.trim_start().starts_with("ssl_certificate");
    let lines = block.lines().filter(is_kept).map(|line| match line.trim_start().starts_with(bind) {
        true if bind == "bind" => format!("bind {listen}\n"),
        true => format!("{bind} {listen};\n"),
        false => format!("{line}\n"),
    });
    lines.collect::<String>().replace("127.0.0.1:9000", &admin.to_string())
}

/// Starts a proxy. `None`, and a message, if it isn't installed.
fn start(program: &str, arguments: &[&str], folder: &Folder, config: String, address: SocketAddr) -> Option<Running> {
    if Command::new(program).arg("-v").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
        testkit::skipped::report(&format!("there is no {program}; `cargo xtask services` installs it"));
        return None;
    }
    let mut command = Command::new(program);
    command.args(arguments).arg(folder.write("proxy.conf", config)).stdout(Stdio::null()).stderr(Stdio::null());
    let process = Running(command.spawn().unwrap());
    assert!(wait_until(|| TcpStream::connect(address).is_ok()), "{program} listens");
    Some(process)
}

fn nginx(folder: &Folder, servers: &str, address: SocketAddr) -> Option<Running> {
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("{name}_temp_path {}/{name};", folder.text("")));
    let config = format!(
        "daemon off; master_process off; pid {}/pid; events {{}}\nhttp {{ access_log off; {}\n{servers}\n}}",
        folder.text(""),
        temporary.concat()
    );
    start("nginx", &["-e", "stderr", "-c"], folder, config, address)
}

/// A server whose `[admin]` is that of the guide.
fn server() -> Access {
    Access::new(&format!("{}{CONFIG}", blocks("toml")[0]))
}

/// The page, a session with the cookie for `path`, a stream, and a name that isn't listed.
fn check(access: &Access, proxy: SocketAddr, prefix: &str, path: &str) {
    let page = ask(proxy, &format!("GET {prefix}/"), "Host: console.example.com\r\n");
    assert!(page.status == 200 && page.header("content-type").starts_with("text/html"), "{page:?}");
    let session = ask(proxy, &format!("POST {prefix}/api/session"), &format!("{BROWSER}{}", bearer(&access.reader)));
    assert_eq!(session.status, 200, "{session:?}");
    let mut cookie = session.header("set-cookie").split("; ");
    let half = cookie.next().unwrap();
    assert!(cookie.any(|attribute| attribute == format!("Path={path}")), "{session:?}");
    let both = format!("Cookie: {half}\r\nForebay-Check: {}\r\n", session.json()["check"].as_str().unwrap());
    let foreign = ask(proxy, &format!("GET {prefix}/api/overview"), &format!("Host: evil.example\r\n{both}"));
    assert_eq!(foreign.status, 403, "{foreign:?}");

    let mut stream = TcpStream::connect(proxy).unwrap();
    stream.set_read_timeout(Some(HANGS)).unwrap();
    write!(stream, "GET {prefix}/api/live HTTP/1.1\r\n{BROWSER}{both}\r\n").unwrap();
    let lines = BufReader::new(stream).lines().map(Result::unwrap);
    // The proxy passes each line immediately.
    assert_eq!(lines.filter(|line| line.contains("\"totals\"")).take(2).count(), 2);
}

#[test]
fn nginx_passes_the_console() {
    let (access, folder, address) = (server(), Folder::new(), free_address());
    let [own, of_prefix] = blocks("nginx").try_into().unwrap();
    let Some(proxy) = nginx(&folder, &adapted(&own, "listen", address, access.admin), address) else { return };
    check(&access, address, "", "/");
    drop(proxy);
    let address = free_address();
    let prefix = format!("server {{ listen {address};\n{} }}", adapted(&of_prefix, "listen", address, access.admin));
    let _proxy = nginx(&folder, &prefix, address);
    check(&access, address, "/forebay", "/forebay/");
}

#[test]
fn haproxy_passes_the_console_below_a_prefix() {
    let (access, folder, address) = (server(), Folder::new(), free_address());
    let block = adapted(&blocks("text")[0], "bind", address, access.admin);
    let defaults = "defaults\n    mode http\n    timeout connect 5s\n    timeout client 60s\n    timeout server 60s\n";
    let Some(_proxy) = start("haproxy", &["-db", "-f"], &folder, format!("{defaults}{block}"), address) else { return };
    let moved = ask(address, "GET /forebay", "Host: console.example.com\r\n");
    assert_eq!((moved.status, moved.header("location")), (302, "/forebay/"));
    check(&access, address, "/forebay", "/");
}
