//! The server of a URL, and the URLs of servers in configurations.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use http::Uri;
use text::percent;

use super::failure::{HttpFailure, HttpFailureKind};

/// A server: requests to the same one share connections.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HttpOrigin {
    pub(super) is_secure: bool,
    pub(super) host: String,
    pub(super) port: u16,
    /// An address of the host that the caller has looked up.
    pub(super) address: Option<SocketAddr>,
}

impl HttpOrigin {
    pub(super) fn of(url: &Uri) -> Result<Self, HttpFailure> {
        let host = url.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        let is_secure = match url.scheme_str() {
            Some("http") => Some(false),
            Some("https") => Some(true),
            _ => None,
        };
        let failure = || HttpFailure { place: host.to_owned(), kind: HttpFailureKind::Url };
        let is_secure = is_secure.filter(|_| !host.is_empty()).ok_or_else(failure)?;
        let port = url.port_u16().unwrap_or(if is_secure { 443 } else { 80 });
        Ok(Self { is_secure, host: host.to_owned(), port, address: None })
    }

    /// Host and port, as in a URL and in `Host`.
    pub(super) fn authority(&self) -> String {
        let (open, close) = if self.host.contains(':') { ("[", "]") } else { ("", "") };
        let usual = if self.is_secure { 443 } else { 80 };
        if self.port == usual {
            format!("{open}{}{close}", self.host)
        } else {
            format!("{open}{}{close}:{}", self.host, self.port)
        }
    }

    pub(super) fn failure(&self, kind: HttpFailureKind) -> HttpFailure {
        HttpFailure { place: self.to_string(), kind }
    }
}

impl fmt::Display for HttpOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", if self.is_secure { "https" } else { "http" }, self.authority())?;
        self.address.map_or(Ok(()), |address| write!(f, " at {}", address.ip()))
    }
}

/// A server as a configuration names it: a URL, optionally with a path before all others, and with credentials.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Scheme, host, port and path, without a slash at the end.
    base: String,
    /// The user.
    pub user: Option<String>,
    /// The user's password.
    pub password: Option<String>,
}

/// Why a text isn't a URL of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidEndpoint {
    /// The text doesn't begin like such a URL, or has further parts.
    #[error("expected http://HOST:PORT or https://HOST:PORT, optionally with a path")]
    Form,
    /// A user or password that can't be read.
    #[error(
        "its user and password must be percent-encoded: write `%` and two hexadecimal digits for each special \
         character"
    )]
    Escape,
    /// A user without a password.
    #[error("its user has no password: expected http://USER:PASSWORD@HOST:PORT")]
    NoPassword,
}

impl FromStr for Endpoint {
    type Err = InvalidEndpoint;

    fn from_str(text: &str) -> Result<Self, InvalidEndpoint> {
        let (scheme, rest) = text.split_once("://").ok_or(InvalidEndpoint::Form)?;
        let (account, place) = rest.rsplit_once('@').map_or((None, rest), |(account, place)| (Some(account), place));
        let base = format!("{}://{}", scheme.to_ascii_lowercase(), place.trim_end_matches('/'));
        let url: Uri = base.parse().map_err(|_| InvalidEndpoint::Form)?;
        if url.query().is_some() || text.contains('#') || HttpOrigin::of(&url).is_err() || has_odd_port(&url) {
            return Err(InvalidEndpoint::Form);
        }
        let Some(account) = account else { return Ok(Self { base, user: None, password: None }) };
        let (user, password) = account.split_once(':').ok_or(InvalidEndpoint::NoPassword)?;
        let text = |text: &str| percent::decode(text).ok_or(InvalidEndpoint::Escape);
        let (user, password) = (text(user)?, text(password)?);
        if user.is_empty() || password.is_empty() {
            return Err(InvalidEndpoint::NoPassword);
        }
        Ok(Self { base, user: Some(user), password: Some(password) })
    }
}

/// `Uri` ignores an invalid port if it is asked for the port's number.
fn has_odd_port(url: &Uri) -> bool {
    let authority = url.authority().map_or("", |authority| authority.as_str());
    let after_host = authority.rsplit(']').next().unwrap_or_default();
    after_host.contains(':') && url.port_u16().is_none_or(|port| port == 0)
}

impl Endpoint {
    /// The URL of a path on this server, which begins with a slash and has its escapes.
    ///
    /// # Errors
    /// The path is invalid in a URL.
    pub fn url(&self, path: &str) -> Result<Uri, HttpFailure> {
        let url = format!("{}{path}", self.base).parse();
        url.map_err(|_| HttpFailure { place: self.base.clone(), kind: HttpFailureKind::Url })
    }

    /// Whether others on the network can read what is sent there: it isn't encrypted, and leaves this machine.
    #[must_use]
    pub fn is_in_clear(&self) -> bool {
        let url: Option<Uri> = self.base.parse().ok();
        let host = url.as_ref().and_then(Uri::host).unwrap_or_default();
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let is_loopback = bare.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback());
        self.base.starts_with("http://") && !is_loopback && !bare.eq_ignore_ascii_case("localhost")
    }
}

impl Endpoint {
    /// Host and port, for a lookup of the host's addresses.
    #[must_use]
    pub fn host_and_port(&self) -> Option<(String, u16)> {
        let HttpOrigin { host, port, .. } = HttpOrigin::of(&self.base.parse().ok()?).ok()?;
        Some((host, port))
    }
}

/// Without the credentials.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.base)
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_parsed_and_shown_without_passwords() {
        for (text, shown) in [
            ("http://one:9200", "http://one:9200"),
            ("HTTPS://ann:s%40c:r@one/", "https://one"),
            ("https://ann:secret@[::1]:9200/of/it/", "https://[::1]:9200/of/it"),
        ] {
            assert_eq!(text.parse::<Endpoint>().map(|endpoint| format!("{endpoint}")), Ok(shown.to_owned()), "{text}");
        }
        let endpoint: Endpoint = "https://ann:s%40c:r@one".parse().unwrap();
        assert_eq!((endpoint.user.as_deref(), endpoint.password.as_deref()), (Some("ann"), Some("s@c:r")));
        assert!(!format!("{endpoint:?}").contains("s@c"));
        for (text, why) in [
            ("one:9200", InvalidEndpoint::Form),
            ("ftp://one", InvalidEndpoint::Form),
            ("http://", InvalidEndpoint::Form),
            ("http://:9200", InvalidEndpoint::Form),
            ("http://one:x", InvalidEndpoint::Form),
            ("http://one:0", InvalidEndpoint::Form),
            ("http://one:70000", InvalidEndpoint::Form),
            ("http://one?a=b", InvalidEndpoint::Form),
            ("http://one#a", InvalidEndpoint::Form),
            ("http://one two", InvalidEndpoint::Form),
            ("http://ann@one", InvalidEndpoint::NoPassword),
            ("http://ann:@one", InvalidEndpoint::NoPassword),
            ("http://ann:%4@one", InvalidEndpoint::Escape),
        ] {
            assert_eq!(text.parse::<Endpoint>(), Err(why), "{text}");
        }
    }

    #[test]
    fn remote_http_url_counts_as_clear_text() {
        for (text, is_in_clear) in [
            ("http://one:8081", true),
            ("HTTP://10.0.0.7", true),
            ("http://[fd00::1]:8081/of/it", true),
            ("http://localhost.example", true),
            ("https://one:8081", false),
            ("http://127.0.0.2:8081", false),
            ("http://[::1]:8081", false),
            ("http://[::ffff:127.0.0.1]", false),
            ("http://LOCALHOST:8081", false),
        ] {
            assert_eq!(text.parse::<Endpoint>().map(|endpoint| endpoint.is_in_clear()), Ok(is_in_clear), "{text}");
        }
    }

    #[test]
    fn origin_is_scheme_host_and_port() {
        for (url, shown, authority) in [
            ("http://one/a?b", "http://one", "one"),
            ("https://one:80/", "https://one:80", "one:80"),
            ("https://[::1]:443/", "https://[::1]", "[::1]"),
        ] {
            let origin = HttpOrigin::of(&url.parse().unwrap()).unwrap();
            assert_eq!((origin.to_string().as_str(), origin.authority().as_str()), (shown, authority));
            assert!(!origin.host.contains('['));
        }
        assert!(HttpOrigin::of(&"/relative".parse().unwrap()).is_err());
    }
}
