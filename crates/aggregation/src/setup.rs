//! An aggregate in the setup of delivery.

use aggregate::AggregateRules;
use event::TypeName;

/// An aggregate to fold.
#[derive(Clone, Debug)]
pub struct AggregateSetup {
    /// The type of the events.
    pub of: TypeName,
    /// Its definition, and the type of its results.
    pub rules: AggregateRules,
}

impl AggregateSetup {
    /// The type of the results.
    #[must_use]
    pub const fn name(&self) -> &TypeName {
        self.rules.name()
    }

    /// Whether a fold of one can continue as the other.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.of == other.of && self.name() == other.name() && self.rules.fingerprint() == other.rules.fingerprint()
    }

    /// The name of its checkpoint's file. A changed aggregate has another one.
    pub(crate) fn file_name(&self) -> String {
        format!("{}{:016x}", self.file_prefix(), self.rules.fingerprint())
    }

    /// The common prefix of the file names of all its definitions.
    pub(crate) fn file_prefix(&self) -> String {
        format!("{}@", self.name())
    }
}
