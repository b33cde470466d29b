//! Which types go to which sinks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use event::TypeName;

/// A sink's name in the configuration: letters a-z, digits, `_` and `-`. It is also the name of the directory of its
/// dead letters.
pub type SinkName = Arc<str>;

/// Type → sinks: the types that have entries of their own, and one entry for all others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routes {
    /// Shared by copies: there may be thousands, and each copy of the ledger has them.
    named: Arc<BTreeMap<TypeName, BTreeSet<SinkName>>>,
    others: BTreeSet<SinkName>,
}

impl Routes {
    /// No routes: nothing is delivered.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sends events of type `name` to these sinks, and to no others.
    #[must_use]
    pub fn with(mut self, name: TypeName, sinks: impl IntoIterator<Item = SinkName>) -> Self {
        Arc::make_mut(&mut self.named).insert(name, sinks.into_iter().collect());
        self
    }

    /// Sends events of the types that have no entry of their own to these sinks.
    #[must_use]
    pub fn with_others(mut self, sinks: impl IntoIterator<Item = SinkName>) -> Self {
        self.others = sinks.into_iter().collect();
        self
    }

    /// Whether events of type `name` go to `sink`.
    #[must_use]
    pub fn leads(&self, name: &TypeName, sink: &str) -> bool {
        self.named.get(name).unwrap_or(&self.others).contains(sink)
    }

    /// Whether any type goes to `sink`.
    #[must_use]
    pub fn mentions(&self, sink: &str) -> bool {
        self.others.contains(sink) || self.named.values().any(|sinks| sinks.contains(sink))
    }

    /// The types that have entries of their own, with their sinks.
    pub fn named(&self) -> impl Iterator<Item = (&TypeName, &BTreeSet<SinkName>)> {
        self.named.iter()
    }

    /// The sinks of all other types.
    #[must_use]
    pub const fn others(&self) -> &BTreeSet<SinkName> {
        &self.others
    }
}
