//! The configuration of a webhook sink: the receiver, the signatures, and the content of messages.

use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use http::{HeaderName, HeaderValue, Uri};
use text::percent;

use super::secret::SigningSecret;
use net::http_client::host_of;

/// The receiver and the form of messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookConfig {
    /// The receiver.
    pub url: HookUrl,
    /// The secrets of signatures: each message is signed with all of them, so a receiver can switch from one to
    /// another. If there is none, messages aren't signed.
    pub secrets: Vec<SigningSecret>,
    /// Additional headers of each request.
    pub headers: Vec<HookHeader>,
    /// The content of a message.
    pub shape: MessageShape,
    /// The maximum of requests in flight, for all lanes together.
    pub requests_max: NonZeroUsize,
    /// A PEM file with the trusted authorities; without one the machine's.
    pub ca: Option<PathBuf>,
    /// How long the receiver may be silent.
    pub timeout: Duration,
}

/// The content of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MessageShape {
    /// The payload, byte for byte.
    #[default]
    Payload,
    /// `{"type": …, "timestamp": …, "data": payload}`, the form that Standard Webhooks recommends.
    Envelope,
}

/// The placeholder of an event's type in a URL.
const TYPE: &str = "{type}";

/// Why something can't be part of a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidHook {
    /// The text isn't such a URL.
    #[error("expected http://HOST/PATH or https://HOST/PATH, optionally with {{type}} in the path")]
    Url,
    /// The URL contains a user.
    #[error("a user and password aren't allowed in it: set them in `headers`")]
    User,
    /// The text isn't a header.
    #[error("expected the name of a header and its value: ASCII letters, digits and signs, without line breaks")]
    Header,
    /// Forebay sets the header itself.
    #[error("Forebay sets this header in every request")]
    OwnHeader,
}

/// The destination of messages. Only the URL's scheme, host and port are ever displayed: a path or a query may be a
/// secret.
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
    /// The URL for events of a type. The type is percent-encoded, so it stays within its segment of the path.
    pub(super) fn of(&self, type_name: &str) -> Result<Uri, http::uri::InvalidUri> {
        self.text.replace(TYPE, &percent::encode(type_name)).parse()
    }

    /// The whole URL, which must not be displayed.
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

/// The headers that Forebay sets in each request, in lower case.
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

/// A header of each request. Its value is never displayed.
#[derive(Clone, PartialEq, Eq)]
pub struct HookHeader {
    pub(super) name: HeaderName,
    pub(super) value: HeaderValue,
}

impl HookHeader {
    /// A header of this name and value.
    ///
    /// # Errors
    /// It is invalid, or Forebay sets it itself.
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
    fn urls_are_displayed_without_secrets() {
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
    fn headers_are_displayed_without_values() {
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
