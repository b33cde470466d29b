//! A client of Swift that is independent of the sink.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use super::{KEY, USER};

/// An answer.
#[derive(Clone, Debug)]
pub struct SwiftResponse {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl SwiftResponse {
    pub const fn is_success(&self) -> bool {
        self.status >= 200 && self.status < 300
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub fn text(self) -> String {
        String::from_utf8(self.body).unwrap()
    }
}

/// A client with a token.
pub struct SwiftClient {
    address: SocketAddr,
    token: String,
    /// The path of the account.
    account: String,
}

impl SwiftClient {
    /// Requests a token; `None` if it gets none.
    pub fn try_new(address: SocketAddr) -> Option<Self> {
        let response = exchange(address, "GET", "/auth/v1.0", &[("X-Auth-User", USER), ("X-Auth-Key", KEY)], b"")?;
        let token = response.header("X-Auth-Token")?.to_owned();
        let url = response.header("X-Storage-Url")?;
        let account = url[url.find("/v1/")?..].to_owned();
        Some(Self { address, token, account })
    }

    pub fn token(&self) -> &str {
        &self.token
    }

    /// The path of the account.
    pub fn account(&self) -> &str {
        &self.account
    }

    /// The answer about a path below the account.
    pub fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> SwiftResponse {
        let response = self.try_ask(method, path, headers, body);
        response.unwrap_or_else(|| panic!("no answer to {method} {path}"))
    }

    /// The same; `None` if no whole answer comes.
    pub fn try_ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Option<SwiftResponse> {
        let headers = [headers, &[("X-Auth-Token", self.token.as_str())]].concat();
        exchange(self.address, method, &format!("{}{path}", self.account), &headers, body)
    }

    /// The names in a container; none if there is no container.
    pub fn list(&self, container: &str) -> Vec<String> {
        let mut names = Vec::<String>::new();
        loop {
            let marker = names.last().map(String::as_str).unwrap_or_default();
            let response = self.ask("GET", &format!("/{container}?limit=10000&marker={marker}"), &[], b"");
            if response.status == 404 {
                return names;
            }
            assert!(response.is_success(), "{response:?}");
            let before = names.len();
            names.extend(response.text().lines().map(str::to_owned));
            if names.len() == before {
                return names;
            }
        }
    }

    /// An object's bytes.
    pub fn get(&self, container: &str, name: &str) -> Option<Vec<u8>> {
        let response = self.ask("GET", &format!("/{container}/{name}"), &[], b"");
        (response.status != 404).then(|| {
            assert!(response.is_success(), "{response:?}");
            response.body
        })
    }
}

/// One request on a separate connection; `None` if no whole answer arrives.
pub(super) fn exchange(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Option<SwiftResponse> {
    let mut stream = TcpStream::connect(address).ok()?;
    let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
    headers.iter().for_each(|(name, value)| head += &format!("{name}: {value}\r\n"));
    head += &format!("Content-Length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = String::from_utf8(answer[..end].to_vec()).ok()?;
    let mut lines = head.lines();
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let pair = |line: &str| line.split_once(':').map(|(name, value)| (name.to_owned(), value.trim().to_owned()));
    Some(SwiftResponse { status, headers: lines.filter_map(pair).collect(), body: answer.split_off(end + 4) })
}
