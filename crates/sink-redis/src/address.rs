//! A host and a port.

use std::fmt;

use super::invalid_url::InvalidRedisUrl;

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    pub(super) host: String,
    pub(super) port: u16,
}

impl Address {
    /// `HOST:PORT`, `HOST`, or the same with an IPv6 address in brackets; `port` is the default.
    pub(super) fn parse(text: &str, port: u16) -> Result<Self, InvalidRedisUrl> {
        let (host, given) = match text.strip_prefix('[') {
            Some(inner) => {
                let (host, rest) = inner.split_once(']').ok_or(InvalidRedisUrl::Form)?;
                let given = rest.strip_prefix(':');
                if given.is_none() && !rest.is_empty() {
                    return Err(InvalidRedisUrl::Form);
                }
                (host, given)
            }
            None => text.split_once(':').map_or((text, None), |(host, given)| (host, Some(given))),
        };
        if host.is_empty() {
            return Err(InvalidRedisUrl::NoHost);
        }
        let port = given.map_or(Ok(port), str::parse).ok().filter(|port| *port != 0);
        Ok(Self { host: host.to_owned(), port: port.ok_or(InvalidRedisUrl::Port)? })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (open, close) = if self.host.contains(':') { ("[", "]") } else { ("", "") };
        write!(f, "{open}{}{close}:{}", self.host, self.port)
    }
}
