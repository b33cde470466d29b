//! What is known of such a sink before it sends anything: where to, signed by what, and what a message holds.

use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use http::{HeaderName, HeaderValue, Uri};
use text::percent;

use super::secret::SigningSecret;
use net::http_client::host_of;

/// Where messages go, and what they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookConfig {
    /// The receiver.
    pub url: HookUrl,
    /// What messages are signed with: each by all of them, so that a receiver may go over from one to another. None: they
    /// aren't signed.
    pub secrets: Vec<SigningSecret>,
    /// Headers that each request has besides.
    pub headers: Vec<HookHeader>,
    /// What stands in a message.
    pub shape: MessageShape,
    /// Requests in flight at most, for all lanes together.
    pub requests_max: NonZeroUsize,
    /// A PEM file with the authorities that are trusted; without one those that the machine trusts.
    pub ca: Option<PathBuf>,
    /// How long the receiver may be silent.
    pub timeout: Duration,
}

/// What stands in a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MessageShape {
    /// The payload, byte for byte.
    #[default]
    Payload,
    /// `{"type": …, "timestamp": …, "data": payload}`, the form that Standard Webhooks recommends.
    Envelope,
}

/// What stands for an event's type in a URL.
const TYPE: &str = "{type}";

/// Why something can't be part of a web hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidHook {
    /// The text isn't such a URL.
    #[error("wanted http://HOST/PATH or https://HOST/PATH, in the path perhaps {{type}}")]
    Url,
    /// Who asks stands in the URL.
    #[error("a user and password can't stand in it: send them in `headers`")]
    User,
    /// The text isn't a header.
    #[error("wanted the name of a header and its value: letters, digits and signs, without line breaks")]
    Header,
    /// It is set here.
    #[error("this header is set by every request itself")]
    OwnHeader,
}

/// Where messages go. Of the URL only scheme, host and port are ever shown: a path or a query may be what lets people in.
#[derive(Clone, PartialEq, Eq)]
pub struct HookUrl {
    text: String,
    place: String,
}

impl FromStr for HookUrl {
    type Err = InvalidHook;

    fn from_str(text: &str) -> Result<Self, InvalidHook> {
        let of_a_type = text.replace(TYPE, "x");
        let url: Uri = of_a_type.parse().map_err(|_| InvalidHook::Url)?;
        let authority = url.authority().map_or("", |authority| authority.as_str());
        if authority.contains('@') {
            return Err(InvalidHook::User);
        }
        let host = host_of(&url).map_err(|_| InvalidHook::Url)?;
        let is_path_only = text.split(TYPE).next().is_some_and(|before| before.matches('/').count() > 2);
        if of_a_type.contains(['#', '{', '}']) || !is_path_only && text.contains(TYPE) {
            return Err(InvalidHook::Url);
        }
        let place = format!("{}://{host}", url.scheme_str().unwrap_or_default());
        Ok(Self { text: text.to_owned(), place })
    }
}

impl HookUrl {
    /// Where events of a type go. The type is percent-encoded, so it stays within its segment of the path.
    pub(super) fn of(&self, type_name: &str) -> Result<Uri, http::uri::InvalidUri> {
        self.text.replace(TYPE, &percent::encode(type_name)).parse()
    }

    /// The whole of it, which isn't to be shown.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for HookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.place)
    }
}

impl fmt::Debug for HookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HookUrl({self})")
    }
}

/// The headers that each request has by itself, in small letters.
const OWN_HEADERS: [&str; 11] = [
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "host",
    "idempotency-key",
    "te",
    "transfer-encoding",
    "webhook-id",
    "webhook-signature",
    "webhook-timestamp",
];

/// A header of each request. Its value is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct HookHeader {
    pub(super) name: HeaderName,
    pub(super) value: HeaderValue,
}

impl HookHeader {
    /// A header of this name and value.
    ///
    /// # Errors
    /// It can't be one, or is one that each request has by itself.
    pub fn new(name: &str, value: &str) -> Result<Self, InvalidHook> {
        let name: HeaderName = name.parse().map_err(|_| InvalidHook::Header)?;
        if OWN_HEADERS.contains(&name.as_str()) {
            return Err(InvalidHook::OwnHeader);
        }
        let mut value: HeaderValue = value.parse().map_err(|_| InvalidHook::Header)?;
        value.set_sensitive(true);
        Ok(Self { name, value })
    }
}

impl fmt::Debug for HookHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HookHeader({}: …)", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_shown_without_what_may_be_secret() {
        let url: HookUrl = "https://hooks.example.org/a/T0KEN/{type}?key=s3cret".parse().unwrap();
        assert_eq!(url.to_string(), "https://hooks.example.org");
        assert!(!format!("{url:?}").contains("T0KEN"));
        assert_eq!(url.of("access").unwrap().to_string(), "https://hooks.example.org/a/T0KEN/access?key=s3cret");
        let odd = url.of("../../admin/delete?all=1&x=").unwrap();
        assert_eq!(odd.path(), "/a/T0KEN/..%2F..%2Fadmin%2Fdelete%3Fall%3D1%26x%3D");
        for good in ["http://127.0.0.1:80", "http://[::1]:8080/x", "https://a/{type}/{type}"] {
            assert!(good.parse::<HookUrl>().is_ok(), "{good}");
        }
        for wrong in ["", "/x", "ftp://a/", "http://", "http://{type}/", "http://a/{day}", "http://a/#x", "http://a b/"]
        {
            assert_eq!(wrong.parse::<HookUrl>(), Err(InvalidHook::Url), "{wrong}");
        }
        assert_eq!("http://ann:s3cret@a/".parse::<HookUrl>(), Err(InvalidHook::User));
    }

    #[test]
    fn headers_are_shown_without_their_values() {
        let header = HookHeader::new("Authorization", "Bearer s3cret").unwrap();
        assert_eq!(format!("{header:?}"), "HookHeader(authorization: …)");
        for (name, value) in [("", "x"), ("a b", "x"), ("a", "x\ny")] {
            assert_eq!(HookHeader::new(name, value), Err(InvalidHook::Header), "{name}");
        }
        for own in ["Webhook-Id", "content-length", "Host", "Idempotency-Key"] {
            assert_eq!(HookHeader::new(own, "x"), Err(InvalidHook::OwnHeader), "{own}");
        }
    }
}
