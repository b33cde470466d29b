//! The addresses and the account of NATS servers: a `nats://` or `tls://` URL, with several hosts for a cluster.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use text::percent;

const PORT: u16 = 4222;

/// The servers of one cluster; Forebay uses any of them.
#[derive(Clone, PartialEq, Eq)]
pub struct Servers {
    pub(crate) hosts: Vec<Host>,
    pub(crate) account: Account,
    /// Whether TLS is required.
    pub(crate) is_secure: bool,
}

#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Host {
    pub(crate) name: String,
    pub(crate) port: u16,
}

/// The account to use.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Account {
    Anonymous,
    Token(String),
    User { name: String, password: String },
}

/// Why a text isn't the URL of servers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidServers {
    /// The text doesn't begin with the scheme, or has a part that isn't allowed.
    #[error("expected nats://USER:PASSWORD@HOST:PORT,HOST:PORT, or tls:// for TLS")]
    Form,
    /// No host to connect to.
    #[error("it names no host: expected nats://HOST:PORT")]
    NoHost,
    /// The text after a host's colon isn't a port.
    #[error("a port in it isn't a number from 1 to 65535")]
    Port,
    /// A user, password or token with an invalid escape.
    #[error("in its user and password, write `%` and two hexadecimal digits for each character that URLs don't allow")]
    Escape,
}

impl Servers {
    /// Whether the URL requires TLS.
    #[must_use]
    pub const fn is_secure(&self) -> bool {
        self.is_secure
    }

    /// Whether the URL has a user or a token.
    #[must_use]
    pub fn has_account(&self) -> bool {
        self.account != Account::Anonymous
    }
}

impl FromStr for Servers {
    type Err = InvalidServers;

    fn from_str(text: &str) -> Result<Self, InvalidServers> {
        let (scheme, rest) = text.split_once("://").ok_or(InvalidServers::Form)?;
        let is_secure = match scheme {
            "nats" => false,
            "tls" => true,
            _ => return Err(InvalidServers::Form),
        };
        let (account, hosts) = rest.rsplit_once('@').map_or((None, rest), |(account, hosts)| (Some(account), hosts));
        let hosts = hosts.strip_suffix('/').unwrap_or(hosts);
        if hosts.contains(['/', '?', '#']) || hosts.contains(char::is_whitespace) {
            return Err(InvalidServers::Form);
        }
        let hosts = hosts.split(',').map(Host::parse).collect::<Result<_, _>>()?;
        let account = account.map_or(Ok(Account::Anonymous), account_of)?;
        Ok(Self { hosts, account, is_secure })
    }
}

impl Servers {
    /// Whether all are on this machine.
    #[must_use]
    pub fn is_local(&self) -> bool {
        let is_loopback = |name: &str| name.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback());
        self.hosts.iter().all(|host| host.name.eq_ignore_ascii_case("localhost") || is_loopback(&host.name))
    }
}

impl Host {
    /// Parses `NAME:PORT`, or a name alone.
    pub(crate) fn parse(address: &str) -> Result<Self, InvalidServers> {
        let (name, port) = match address.strip_prefix('[') {
            Some(inner) => {
                let (name, rest) = inner.split_once(']').ok_or(InvalidServers::Form)?;
                let port = rest.strip_prefix(':');
                if port.is_none() && !rest.is_empty() {
                    return Err(InvalidServers::Form);
                }
                (name, port)
            }
            None => address.split_once(':').map_or((address, None), |(name, port)| (name, Some(port))),
        };
        if name.is_empty() {
            return Err(InvalidServers::NoHost);
        }
        let port = port.map_or(Ok(PORT), str::parse).ok().filter(|port| *port != 0);
        Ok(Self { name: name.to_owned(), port: port.ok_or(InvalidServers::Port)? })
    }
}

fn account_of(text: &str) -> Result<Account, InvalidServers> {
    let part = |text| percent::decode(text).filter(|text| !text.is_empty()).ok_or(InvalidServers::Escape);
    match text.split_once(':') {
        Some((name, password)) => Ok(Account::User { name: part(name)?, password: part(password)? }),
        None => Ok(Account::Token(part(text)?)),
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (open, close) = if self.name.contains(':') { ("[", "]") } else { ("", "") };
        write!(f, "{open}{}{close}:{}", self.name, self.port)
    }
}

/// The hosts, never the account.
impl fmt::Display for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, host) in self.hosts.iter().enumerate() {
            write!(f, "{}{host}", if index == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl fmt::Debug for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Servers({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_displayed_without_secrets() {
        for (text, shown) in [
            ("nats://localhost", "localhost:4222"),
            ("nats://one:7000/", "one:7000"),
            ("tls://ann:s%40cret@one,two:7000", "one:4222,two:7000"),
            ("nats://t0ken@[::1]:7000,[::2]", "[::1]:7000,[::2]:4222"),
        ] {
            assert_eq!(text.parse::<Servers>().map(|servers| servers.to_string()), Ok(shown.to_owned()), "{text}");
        }
        let servers: Servers = "tls://ann:s%40c:r@t@one".parse().unwrap();
        assert!(servers.account == Account::User { name: "ann".into(), password: "s@c:r@t".into() });
        assert!(servers.is_secure && !format!("{servers:?}").contains("s@c"));
        let servers: Servers = "nats://t0ken@one".parse().unwrap();
        assert!(servers.account == Account::Token("t0ken".into()) && !servers.is_secure);
        for (text, why) in [
            ("localhost:4222", InvalidServers::Form),
            ("http://localhost", InvalidServers::Form),
            ("nats://one/x", InvalidServers::Form),
            ("nats://one?x", InvalidServers::Form),
            ("nats://", InvalidServers::NoHost),
            ("nats://one,,two", InvalidServers::NoHost),
            ("nats://one:0", InvalidServers::Port),
            ("nats://one:x", InvalidServers::Port),
            ("nats://ann:@one", InvalidServers::Escape),
            ("nats://@one", InvalidServers::Escape),
            ("nats://%4@one", InvalidServers::Escape),
        ] {
            assert_eq!(text.parse::<Servers>(), Err(why), "{text}");
        }
    }
}
