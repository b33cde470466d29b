//! Which types go to which sinks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use event::TypeName;

use crate::condition::Condition;

/// A sink's name in the configuration: `a`-`z`, digits, `_` and `-`. It is also the name of the directory of its dead
/// letters.
pub type SinkName = Arc<str>;

/// Type → sinks: the types with their own entries, and one entry for all others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routes {
    /// Shared by copies: there may be thousands, and each copy of the ledger has them.
    named: Arc<BTreeMap<TypeName, BTreeSet<SinkName>>>,
    others: BTreeSet<SinkName>,
    /// Conditions of the routes that have one; without a type name for all other types.
    conditions: BTreeMap<(Option<TypeName>, SinkName), Condition>,
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

    /// Sends events of the types without their own entries to these sinks.
    #[must_use]
    pub fn with_others(mut self, sinks: impl IntoIterator<Item = SinkName>) -> Self {
        self.others = sinks.into_iter().collect();
        self
    }

    /// Of the events of type `of`, or of the types without their own entries, `sink` gets only those for which the
    /// condition is true.
    #[must_use]
    pub fn when(mut self, of: Option<TypeName>, sink: SinkName, condition: Condition) -> Self {
        self.conditions.insert((of, sink), condition);
        self
    }

    /// Whether events of type `name` go to `sink`, if its condition is true for them.
    #[must_use]
    pub fn leads(&self, name: &TypeName, sink: &str) -> bool {
        self.named.get(name).unwrap_or(&self.others).contains(sink)
    }

    /// The condition of the route from type `name` to `sink`, if it has one.
    #[must_use]
    pub fn condition(&self, name: &TypeName, sink: &SinkName) -> Option<&Condition> {
        if self.conditions.is_empty() {
            return None;
        }
        let of = self.has_entry(name).then(|| name.clone());
        self.conditions.get(&(of, sink.clone()))
    }

    /// All conditions with their type (`None`: all others) and sink.
    pub fn conditions(&self) -> impl Iterator<Item = (Option<&TypeName>, &SinkName, &Condition)> {
        self.conditions.iter().map(|((of, sink), condition)| (of.as_ref(), sink, condition))
    }

    /// Whether any type goes to `sink`.
    #[must_use]
    pub fn mentions(&self, sink: &str) -> bool {
        self.others.contains(sink) || self.named.values().any(|sinks| sinks.contains(sink))
    }

    /// Whether the type has its own entry.
    #[must_use]
    pub fn has_entry(&self, name: &TypeName) -> bool {
        self.named.contains_key(name)
    }

    /// The types with their own entries, and their sinks.
    pub fn named(&self) -> impl Iterator<Item = (&TypeName, &BTreeSet<SinkName>)> {
        self.named.iter()
    }

    /// The sinks of all other types.
    #[must_use]
    pub const fn others(&self) -> &BTreeSet<SinkName> {
        &self.others
    }
}
