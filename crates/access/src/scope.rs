//! What a token allows.

use std::fmt;
use std::str::FromStr;

/// A permission that a token can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// To post events.
    Ingest,
    /// To read metrics and events.
    Read,
    /// To use the admin port.
    Admin,
    /// To send batches to a writer, ask it for cursors and read through it: for gateways.
    Deliver,
}

/// A text that isn't a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown scope: use `ingest`, `read`, `admin` or `deliver`")]
pub struct UnknownScope;

impl Scope {
    /// Every scope.
    pub const ALL: [Self; 4] = [Self::Ingest, Self::Read, Self::Admin, Self::Deliver];

    /// The scope's name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ingest => "ingest",
            Self::Read => "read",
            Self::Admin => "admin",
            Self::Deliver => "deliver",
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl FromStr for Scope {
    type Err = UnknownScope;

    fn from_str(text: &str) -> Result<Self, UnknownScope> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == text).ok_or(UnknownScope)
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A set of scopes. None implies another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scopes(u8);

impl Scopes {
    /// Whether `scope` is among them.
    #[must_use]
    pub const fn has(self, scope: Scope) -> bool {
        self.0 & scope.bit() != 0
    }

    /// The union of both.
    #[must_use]
    pub const fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Each of them.
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |scope| self.has(*scope))
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<T: IntoIterator<Item = Scope>>(scopes: T) -> Self {
        Self(scopes.into_iter().fold(0, |bits, scope| bits | scope.bit()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scope_set_contains_added_scopes() {
        let scopes: Scopes = [Scope::Admin, Scope::Ingest].into_iter().collect();
        assert!(scopes.has(Scope::Ingest) && scopes.has(Scope::Admin) && !scopes.has(Scope::Read));
        assert_eq!(scopes.iter().collect::<Vec<_>>(), [Scope::Ingest, Scope::Admin]);
        assert!(!Scopes::default().has(Scope::Admin) && scopes.and(Scopes::default()) == scopes);
    }

    #[test]
    fn scopes_have_names() {
        for scope in Scope::ALL {
            assert_eq!(scope.to_string().parse(), Ok(scope));
        }
        assert_eq!("Admin".parse::<Scope>(), Err(UnknownScope));
    }
}
