//! The server that is named on the command line.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

/// An `http://` or `https://` address with an optional path before those of Forebay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    is_secure: bool,
    host: String,
    port: u16,
    prefix: String,
}

/// Why a text names no server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// Another scheme, or none.
    #[error("an address begins with http:// or https://")]
    Scheme,
    /// No host, or something beside it that doesn't belong there.
    #[error("an address is http://HOST:PORT or https://HOST:PORT, and perhaps a path")]
    Form,
    /// A port that is no number up to 65535.
    #[error("the port is no number from 1 to 65535")]
    Port,
}

impl std::str::FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        let (is_secure, rest) = match (text.strip_prefix("http://"), text.strip_prefix("https://")) {
            (Some(rest), _) => (false, rest),
            (_, Some(rest)) => (true, rest),
            (None, None) => return Err(TargetError::Scheme),
        };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let is_sound = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic() && !b"@?#\"<>".contains(&byte));
        if !is_sound(rest) {
            return Err(TargetError::Form);
        }
        let after_bracket = authority.rfind(']').map_or(0, |at| at + 1);
        let (host, port) = match authority[after_bracket..].find(':') {
            Some(at) => {
                let (host, port) = authority.split_at(after_bracket + at);
                (host, port[1..].parse().ok().filter(|port| *port > 0).ok_or(TargetError::Port)?)
            }
            None => (authority, if is_secure { 443 } else { 80 }),
        };
        if host.is_empty() {
            return Err(TargetError::Form);
        }
        Ok(Self { is_secure, host: host.to_owned(), port, prefix: path.trim_end_matches('/').to_owned() })
    }
}

impl Target {
    /// The addresses that the name has now: it may have others after a restart.
    pub(crate) fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        Ok((self.host(), self.port).to_socket_addrs()?.collect())
    }

    /// Whether it wants TLS.
    pub(crate) const fn is_secure(&self) -> bool {
        self.is_secure
    }

    /// The name or the address, as a certificate has it.
    pub(crate) fn host(&self) -> &str {
        self.host.trim_start_matches('[').trim_end_matches(']')
    }

    /// What a request's `Host` says.
    #[must_use]
    pub fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// A path of Forebay's as this server has it.
    pub(crate) fn path(&self, path: &str) -> String {
        format!("{}{path}", self.prefix)
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}://{}:{}{}", if self.is_secure { "https" } else { "http" }, self.host, self.port, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        for (text, shown, path) in [
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080", "/x"),
            ("http://intake.example/", "http://intake.example:80", "/x"),
            ("https://intake.example", "https://intake.example:443", "/x"),
            ("http://[::1]:9/a/b/", "http://[::1]:9/a/b", "/a/b/x"),
        ] {
            let target: Target = text.parse().unwrap();
            assert_eq!((target.to_string().as_str(), target.path("/x").as_str()), (shown, path));
        }
        let target: Target = "http://[::1]:9".parse().unwrap();
        assert_eq!(target.addresses().unwrap(), ["[::1]:9".parse().unwrap()]);
    }

    #[test]
    fn what_names_no_server_is_refused() {
        for (text, error) in [
            ("127.0.0.1:8080", TargetError::Scheme),
            ("ftp://a", TargetError::Scheme),
            ("https://", TargetError::Form),
            ("http://", TargetError::Form),
            ("http://:80", TargetError::Form),
            ("http://user@a", TargetError::Form),
            ("http://a b", TargetError::Form),
            ("http://a:b", TargetError::Port),
            ("http://a:0", TargetError::Port),
            ("http://a:65536", TargetError::Port),
        ] {
            assert_eq!(text.parse::<Target>(), Err(error), "{text}");
        }
    }
}
