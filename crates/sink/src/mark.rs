//! The identity of a store. Two writers are one back-end only if they reach one store. An address doesn't show that: one name may lead to
//! two servers, and two names to one.
//!
//! A store carries a mark next to its cursors: random bits, created when a writer first asks for them. `forebay serve` and a gateway's own
//! stores don't read it.

use std::fmt;
use std::io;
use std::str::FromStr;

use crate::{Claim, InvalidClaim, Sink, SinkError};

/// The mark of a store: 128 random bits, unique to it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mark(pub [u8; 16]);

impl Mark {
    /// A new mark, for a store that has none.
    pub(crate) fn random() -> io::Result<Self> {
        let mut bits = [0; 16];
        getrandom::fill(&mut bits).map_err(io::Error::other)?;
        Ok(Self(bits))
    }

    /// Whether this mark is the expected one. With `None`, any mark is.
    pub(crate) fn is_expected(self, expected: Option<Self>) -> bool {
        expected.is_none_or(|expected| expected == self)
    }
}

impl Sink {
    /// The mark of the store that the next call reaches. It is created if the store has none; `None` if a store can't keep one.
    ///
    /// # Errors
    /// [`SinkError`] if the store doesn't answer, or refuses the mark.
    pub async fn mark(&self) -> Result<Option<Mark>, SinkError> {
        if let Some(caller) = self.caller() {
            return Ok(caller.binding().mark());
        }
        let done = match self {
            Self::Null | Self::Memory(_) => return Ok(None),
            Self::Sqlite(sqlite) => sqlite.mark().await,
            Self::Objects(store) => store.mark().await,
            Self::Elasticsearch(elasticsearch) => elasticsearch.mark().await,
            Self::Postgres(postgres) => postgres.mark().await,
            Self::Nats(nats) => nats.mark().await,
            Self::Redis(redis) => redis.mark().await,
            Self::Webhook(_) => return Ok(None),
            Self::Remote(_) => return Ok(None),
        };
        done.map(Some).map_err(SinkError::visible)
    }

    /// The mark of the store that a sink of a gateway is bound to; `None` for other sinks, and while the sink isn't bound.
    #[must_use]
    pub fn bound_to(&self) -> Option<Mark> {
        return self.caller()?.binding().mark();
    }

    /// Whether a sink of a gateway has found a writer with another store than the bound one.
    #[must_use]
    pub fn has_other_store(&self) -> bool {
        return self.caller().is_some_and(|caller| caller.binding().has_other_store());
    }

    /// Binds a sink of a gateway to the store with this mark, or with `None` to the next store that is found. No effect on other sinks.
    pub fn bind(&self, mark: Option<Mark>) {
        if let Some(caller) = self.caller() {
            match mark {
                Some(mark) => caller.binding().expect(mark),
                None => caller.binding().unbind(),
            }
        }
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

impl FromStr for Mark {
    type Err = InvalidMark;

    fn from_str(text: &str) -> Result<Self, InvalidMark> {
        let Claim(bits) = text.parse().map_err(|InvalidClaim| InvalidMark)?;
        Ok(Self(bits))
    }
}
