//! The token that a gateway shows to writers.

use std::fmt;

use http::HeaderValue;

/// A token with the scope `deliver`.
#[derive(Clone, PartialEq, Eq)]
pub struct DeliverToken(HeaderValue);

impl DeliverToken {
    /// A token, unless the string has characters that no token has.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let good = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        let mut header = HeaderValue::try_from(format!("Bearer {text}")).ok().filter(|_| good)?;
        header.set_sensitive(true);
        Some(Self(header))
    }

    pub(super) fn header(&self) -> HeaderValue {
        self.0.clone()
    }
}

impl fmt::Debug for DeliverToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DeliverToken(…)")
    }
}
