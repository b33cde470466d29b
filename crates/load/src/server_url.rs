//! The server that is named on the command line.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use net::http_client::{Endpoint, InvalidEndpoint};

/// An `http://` or `https://` address with an optional path before those of Forebay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerUrl {
    is_secure: bool,
    host: String,
    port: u16,
    prefix: String,
}

impl FromStr for ServerUrl {
    type Err = InvalidEndpoint;

    fn from_str(text: &str) -> Result<Self, InvalidEndpoint> {
        let endpoint: Endpoint = text.parse()?;
        let (Some((host, port)), Ok(url)) = (endpoint.host_and_port(), endpoint.url("")) else {
            return Err(InvalidEndpoint::Form);
        };
        if endpoint.user.is_some() {
            return Err(InvalidEndpoint::Form);
        }
        let is_secure = url.scheme_str() == Some("https");
        Ok(Self { is_secure, host, port, prefix: url.path().trim_end_matches('/').to_owned() })
    }
}

impl ServerUrl {
    /// The addresses that the name has now: it may have others after a restart.
    pub(crate) fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        Ok((self.host.as_str(), self.port).to_socket_addrs()?.collect())
    }

    /// Whether it wants TLS.
    pub(crate) const fn is_secure(&self) -> bool {
        self.is_secure
    }

    /// The name or the address, as a certificate has it.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// The value of a request's `Host`.
    pub(crate) fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// The URL of a path on the server.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}://{}{path}", if self.is_secure { "https" } else { "http" }, self.authority())
    }

    /// A path of Forebay's as this server has it.
    pub(crate) fn path(&self, path: &str) -> String {
        format!("{}{path}", self.prefix)
    }
}

impl std::fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.url(&self.prefix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_split_into_parts() {
        for (text, shown, path) in [
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080", "/x"),
            ("http://intake.example/", "http://intake.example:80", "/x"),
            ("https://intake.example", "https://intake.example:443", "/x"),
            ("http://[::1]:9/a/b/", "http://[::1]:9/a/b", "/a/b/x"),
        ] {
            let target: ServerUrl = text.parse().unwrap();
            assert_eq!((target.to_string().as_str(), target.path("/x").as_str()), (shown, path));
        }
        let target: ServerUrl = "http://[::1]:9".parse().unwrap();
        assert_eq!(target.addresses().unwrap(), ["[::1]:9".parse().unwrap()]);
    }

    #[test]
    fn invalid_server_addresses_are_rejected() {
        for text in [
            "127.0.0.1:8080",
            "ftp://a",
            "https://",
            "http://",
            "http://:80",
            "http://user@a",
            "http://u:p@a",
            "http://a b",
            "http://a:b",
            "http://a:0",
            "http://a:65536",
            "http://a?b",
        ] {
            assert!(text.parse::<ServerUrl>().is_err(), "{text}");
        }
    }
}
