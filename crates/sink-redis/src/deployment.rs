//! How servers belong together: one alone, a master that sentinels watch, or a cluster.

use std::fmt;
use std::str::FromStr;

use super::address::Address;
use super::invalid_url::InvalidRedisUrl;
use super::server::RedisServerUrl;

const SENTINEL_PORT: u16 = 26_379;

/// How the server that is written to is found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Deployment {
    /// It is the one that is named.
    #[default]
    Alone,
    /// Sentinels know which one it is, by the name that stands in the host's place.
    Watched(Vec<Sentinel>),
    /// It is a cluster, of which it is one node; so are these.
    Cluster(Vec<Address>),
}

impl Deployment {
    /// Nodes of a cluster that were named beside the first one.
    pub(super) fn more_nodes(&self) -> &[Address] {
        if let Self::Cluster(more) = self { more } else { &[] }
    }
}

/// A sentinel, and who asks it.
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
    fn sentinels_have_a_port_and_an_account_of_their_own() {
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
