//! The deployment of servers: one alone, a master that sentinels monitor, or a cluster.

use std::fmt;
use std::str::FromStr;

use super::address::Address;
use super::invalid_url::InvalidRedisUrl;
use super::server::RedisServerUrl;

const SENTINEL_PORT: u16 = 26_379;

/// How to find the server to write to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Deployment {
    /// The server of the URL.
    #[default]
    Alone,
    /// The sentinels know it, by the name in the URL's host.
    Watched(Vec<Sentinel>),
    /// A cluster with the URL's node and these nodes.
    Cluster(Vec<Address>),
}

impl Deployment {
    /// Nodes of a cluster in addition to the first one.
    pub(super) fn more_nodes(&self) -> &[Address] {
        if let Self::Cluster(more) = self { more } else { &[] }
    }
}

/// A sentinel, and the account to use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentinel(pub(super) RedisServerUrl);

impl FromStr for Sentinel {
    type Err = InvalidRedisUrl;

    /// `HOST:PORT`, or a URL like that of a server, without a database.
    fn from_str(text: &str) -> Result<Self, InvalidRedisUrl> {
        let plain;
        let url = if text.contains("://") {
            text
        } else {
            plain = format!("redis://{text}");
            &plain
        };
        if url.split_once("://").is_some_and(|(_, rest)| rest.contains('/')) {
            return Err(InvalidRedisUrl::Database);
        }
        Ok(Self(RedisServerUrl::parse(url, SENTINEL_PORT)?))
    }
}

impl fmt::Display for Sentinel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.address.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentinels_have_their_port_and_account() {
        for (text, shown, is_secure) in [
            ("one", "one:26379", false),
            ("one:7000", "one:7000", false),
            ("rediss://:secret@[::1]", "[::1]:26379", true),
        ] {
            let sentinel: Sentinel = text.parse().unwrap();
            assert_eq!((sentinel.to_string(), sentinel.0.is_secure), (shown.to_owned(), is_secure), "{text}");
            assert!(!format!("{sentinel:?}").contains("secret"));
        }
        for (text, why) in [
            ("one:0", InvalidRedisUrl::Port),
            ("", InvalidRedisUrl::NoHost),
            ("redis://one/1", InvalidRedisUrl::Database),
            ("redis://ann@one", InvalidRedisUrl::NoPassword),
            ("http://one", InvalidRedisUrl::Form),
        ] {
            assert_eq!(text.parse::<Sentinel>(), Err(why), "{text}");
        }
    }
}
