//! The identity of a store (store id). Two writers are one back-end only if they reach one store. An address does not
//! show that: one name may point to two servers, and two names to one.
//!
//! A store carries a mark next to its cursors: random bits, created when a writer first asks for them. `forebay serve` and a gateway's own
//! stores don't read it.

use std::fmt;
use std::io;
use std::str::FromStr;

use crate::{Claim, InvalidClaim};

/// The mark of a store: 128 random bits, unique to it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mark(pub [u8; 16]);

impl Mark {
    /// A new mark, for a store that has none.
    pub fn random() -> io::Result<Self> {
        let mut bits = [0; 16];
        getrandom::fill(&mut bits).map_err(io::Error::other)?;
        Ok(Self(bits))
    }

    /// Whether this mark is the expected one. With `None`, any mark is.
    pub fn is_expected(self, expected: Option<Self>) -> bool {
        expected.is_none_or(|expected| expected == self)
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Claim(self.0), f)
    }
}

impl fmt::Debug for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A string that is not a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a mark is written as 32 hexadecimal digits")]
pub struct InvalidMark;

event::serde_as_text!(Mark);

impl FromStr for Mark {
    type Err = InvalidMark;

    fn from_str(text: &str) -> Result<Self, InvalidMark> {
        let Claim(bits) = text.parse().map_err(|InvalidClaim| InvalidMark)?;
        Ok(Self(bits))
    }
}
