//! The methods of a bridge.

use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use http1::Method;

/// The names of all methods, in the order of their bits.
const NAMES: [&str; 5] = ["DELETE", "GET", "PATCH", "POST", "PUT"];
/// The value of `Allow` for each set.
static ALLOW: LazyLock<Vec<String>> =
    LazyLock::new(|| (0..1 << NAMES.len()).map(|bits| Methods(bits).listed()).collect());

/// A set of methods. HEAD comes with GET, and OPTIONS with any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Methods(u8);

/// A text that isn't a method of a bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected GET, POST, PUT, PATCH or DELETE. HEAD is accepted with GET, and OPTIONS always")]
pub struct InvalidMethod;

impl Methods {
    /// No method.
    pub const NONE: Self = Self(0);
    /// GET and POST, the default.
    pub const GET_AND_POST: Self = Self(1 << 1 | 1 << 3);

    /// The union of both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether both have one of them.
    #[must_use]
    pub const fn overlaps(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether a request may have this method.
    pub(crate) const fn has(self, method: Method) -> bool {
        let bit = match method {
            Method::Delete => 0,
            Method::Get | Method::Head => 1,
            Method::Patch => 2,
            Method::Post => 3,
            Method::Put => 4,
            Method::Options => return true,
            Method::Other => return false,
        };
        self.0 & 1 << bit != 0
    }

    /// The value of `Allow`.
    pub(crate) fn allow(self) -> &'static str {
        ALLOW.get(usize::from(self.0)).map_or("OPTIONS", String::as_str)
    }

    fn names(self) -> impl Iterator<Item = &'static str> {
        NAMES.into_iter().enumerate().filter(move |(bit, _)| self.0 & 1 << bit != 0).map(|(_, name)| name)
    }

    fn listed(self) -> String {
        let with_head = self.has(Method::Head).then_some("HEAD");
        let mut names: Vec<&str> = self.names().chain(with_head).chain(["OPTIONS"]).collect();
        names.sort_unstable();
        names.join(", ")
    }
}

impl fmt::Display for Methods {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, name) in self.names().enumerate() {
            write!(f, "{}{name}", if index == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl FromStr for Methods {
    type Err = InvalidMethod;

    /// The set of one method.
    fn from_str(name: &str) -> Result<Self, InvalidMethod> {
        NAMES.iter().position(|known| *known == name).map(|bit| Self(1 << bit)).ok_or(InvalidMethod)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_form_sets() {
        let of = |name: &str| name.parse::<Methods>();
        assert_eq!(of("GET").unwrap().and(of("POST").unwrap()), Methods::GET_AND_POST);
        assert_eq!(Methods::GET_AND_POST.allow(), "GET, HEAD, OPTIONS, POST");
        assert_eq!(of("DELETE").unwrap().allow(), "DELETE, OPTIONS");
        assert_eq!(of("HEAD"), Err(InvalidMethod));
        assert_eq!(of("get"), Err(InvalidMethod));
        let put = of("PUT").unwrap();
        assert!(put.has(Method::Put) && put.has(Method::Options) && !put.has(Method::Post) && !put.has(Method::Other));
        assert!(Methods::GET_AND_POST.has(Method::Head) && !Methods::GET_AND_POST.overlaps(put));
        for bits in 0..1 << NAMES.len() {
            assert_eq!(Methods(bits).allow(), Methods(bits).listed());
        }
    }
}
