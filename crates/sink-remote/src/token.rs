//! The token that a gateway shows to writers, or a console to other processes.

use std::fmt;

use http::HeaderValue;

/// A token in the form of a header's value.
#[derive(Clone, PartialEq, Eq)]
pub struct BearerToken(HeaderValue);

impl BearerToken {
    /// A token, unless the string has characters that no token has.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let good = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        let mut header = HeaderValue::try_from(format!("Bearer {text}")).ok().filter(|_| good)?;
        header.set_sensitive(true);
        Some(Self(header))
    }

    /// The value of the header `Authorization`.
    #[must_use]
    pub fn header(&self) -> HeaderValue {
        self.0.clone()
    }
}

impl fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BearerToken(…)")
    }
}
