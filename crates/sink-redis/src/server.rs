//! The address and account of a Redis server: a `redis://` or `rediss://` URL.

use std::fmt;
use std::str::FromStr;

use text::percent;

use super::address::Address;
use super::invalid_url::InvalidRedisUrl;

const PORT: u16 = 6379;

/// A server, with the account and the database to use.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisServerUrl {
    /// Its address; for a server that sentinels know, the host is their name for it.
    pub(super) address: Address,
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
    /// The number of its database.
    pub(super) database: u32,
    /// Whether to use TLS.
    pub(super) is_secure: bool,
}

impl FromStr for RedisServerUrl {
    type Err = InvalidRedisUrl;

    fn from_str(text: &str) -> Result<Self, InvalidRedisUrl> {
        Self::parse(text, PORT)
    }
}

impl RedisServerUrl {
    /// Parses the URL of a cluster: the host may be a list of nodes with commas. The first is the server's own address.
    ///
    /// # Errors
    /// [`InvalidRedisUrl::Databases`] if a database is named, because clusters have none.
    pub fn nodes(text: &str) -> Result<(Self, Vec<Address>), InvalidRedisUrl> {
        let start = text.rfind('@').or_else(|| text.find("//").map(|at| at + 1)).map_or(0, |at| at + 1);
        let end = text[start..].find('/').map_or(text.len(), |at| start + at);
        let mut hosts = text[start..end].split(',');
        let first = hosts.next().unwrap_or_default();
        let server = Self::parse(&[&text[..start], first, &text[end..]].concat(), PORT)?;
        if server.database != 0 {
            return Err(InvalidRedisUrl::Databases);
        }
        Ok((server, hosts.map(|host| Address::parse(host, PORT)).collect::<Result<_, _>>()?))
    }

    /// Parses the URL of a master that sentinels know: the host is their name for it.
    ///
    /// # Errors
    /// [`InvalidRedisUrl::Port`] if a port is named: the sentinels return it.
    pub fn master(text: &str) -> Result<Self, InvalidRedisUrl> {
        // The port is missing if both defaults are used.
        let (one, other) = (Self::parse(text, 1)?, Self::parse(text, 2)?);
        if one == other { Err(InvalidRedisUrl::Port) } else { Ok(one) }
    }

    /// Parses the URL of a server with the default `port`.
    pub(super) fn parse(text: &str, port: u16) -> Result<Self, InvalidRedisUrl> {
        let (scheme, rest) = text.split_once("://").ok_or(InvalidRedisUrl::Form)?;
        let is_secure = match scheme {
            "redis" => false,
            "rediss" => true,
            _ => return Err(InvalidRedisUrl::Form),
        };
        let (account, place) = rest.rsplit_once('@').map_or((None, rest), |(account, place)| (Some(account), place));
        if place.contains(['?', '#', ',']) || place.contains(char::is_whitespace) {
            return Err(InvalidRedisUrl::Form);
        }
        let (address, database) = place.split_once('/').unwrap_or((place, ""));
        let database = if database.is_empty() { Ok(0) } else { database.parse() };
        let address = Address::parse(address, port)?;
        let (user, password) = account.map_or(Ok((None, None)), credentials)?;
        Ok(Self { address, user, password, database: database.map_err(|_| InvalidRedisUrl::Database)?, is_secure })
    }
}

type Credentials = (Option<String>, Option<String>);

fn credentials(account: &str) -> Result<Credentials, InvalidRedisUrl> {
    let (user, password) = account.split_once(':').ok_or(InvalidRedisUrl::NoPassword)?;
    let some = |text: String| Some(text).filter(|text| !text.is_empty());
    let password =
        some(percent::decode(password).ok_or(InvalidRedisUrl::Escape)?).ok_or(InvalidRedisUrl::NoPassword)?;
    Ok((some(percent::decode(user).ok_or(InvalidRedisUrl::Escape)?), Some(password)))
}

/// Host and database, never the password.
impl fmt::Display for RedisServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.database)
    }
}

impl fmt::Debug for RedisServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Server({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_displayed_without_passwords() {
        for (text, shown) in [
            ("redis://localhost", "localhost:6379/0"),
            ("redis://one:7000/", "one:7000/0"),
            ("rediss://ann:s%40cret@one:7000/3", "one:7000/3"),
            ("redis://:secret@[::1]:7000/3", "[::1]:7000/3"),
            ("redis://:secret@[::1]", "[::1]:6379/0"),
        ] {
            assert_eq!(
                text.parse::<RedisServerUrl>().map(|server| format!("{server}")),
                Ok(shown.to_owned()),
                "{text}"
            );
        }
        assert_eq!(
            RedisServerUrl::master("redis://:secret@live/2").map(|master| master.address.host),
            Ok("live".to_owned())
        );
        assert_eq!(RedisServerUrl::master("redis://live:6379"), Err(InvalidRedisUrl::Port));
        let (server, more) = RedisServerUrl::nodes("rediss://ann:p%2c@one:7000,[::1],three:1/0").unwrap();
        let more: Vec<String> = more.iter().map(Address::to_string).collect();
        assert_eq!((server.to_string().as_str(), more.join(" ").as_str()), ("one:7000/0", "[::1]:6379 three:1"));
        assert_eq!((server.password.as_deref(), server.is_secure), (Some("p,"), true));
        assert_eq!(RedisServerUrl::nodes("redis://one").map(|(_, more)| more.len()), Ok(0));
        for (text, why) in [
            ("redis://one,", InvalidRedisUrl::NoHost),
            ("redis://one,two:x", InvalidRedisUrl::Port),
            ("redis://one,two/1", InvalidRedisUrl::Databases),
            ("one,two", InvalidRedisUrl::Form),
        ] {
            assert_eq!(RedisServerUrl::nodes(text).map(drop), Err(why), "{text}");
        }
        let server: RedisServerUrl = "rediss://ann:s%40c:r@t@one".parse().unwrap();
        assert_eq!((server.user.as_deref(), server.password.as_deref()), (Some("ann"), Some("s@c:r@t")));
        assert!(server.is_secure && !format!("{server:?}").contains("s@c"));
        for (text, why) in [
            ("localhost:6379", InvalidRedisUrl::Form),
            ("http://localhost", InvalidRedisUrl::Form),
            ("redis://one,two", InvalidRedisUrl::Form),
            ("redis://one?db=1", InvalidRedisUrl::Form),
            ("redis://", InvalidRedisUrl::NoHost),
            ("redis://:7000", InvalidRedisUrl::NoHost),
            ("redis://one:0", InvalidRedisUrl::Port),
            ("redis://one:x", InvalidRedisUrl::Port),
            ("redis://one/x", InvalidRedisUrl::Database),
            ("redis://ann@one", InvalidRedisUrl::NoPassword),
            ("redis://ann:@one", InvalidRedisUrl::NoPassword),
            ("redis://ann:%4@one", InvalidRedisUrl::Escape),
        ] {
            assert_eq!(text.parse::<RedisServerUrl>(), Err(why), "{text}");
        }
    }
}
