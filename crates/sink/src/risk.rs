//! Settings of a store with which a crash separates rows from the cursor: it loses rows that count as stored.
//!
//! The rule of all stores: such a setting is rejected, unless the configuration allows it by name. A setting with which a crash loses rows and
//! cursor together is only a warning, because Forebay delivers these events again.

use settings::client::each;
use settings::{InvalidValue, Section, SettingsReader};

/// The key of the configuration that allows risks by name.
pub const ALLOW_UNSAFE: &str = "allow_unsafe";

/// A risk that was found in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Risk {
    /// Its name in [`ALLOW_UNSAFE`].
    pub name: &'static str,
    /// What was found, and where.
    pub found: String,
    /// How to change the store.
    pub help: &'static str,
}

/// The risks that the configuration allows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedRisks(Vec<&'static str>);

impl AllowedRisks {
    /// These.
    #[must_use]
    pub const fn new(names: Vec<&'static str>) -> Self {
        Self(names)
    }

    /// Reads them. `known` are the names that the kind of store has.
    pub fn read(reader: &mut SettingsReader<'_>, section: &Section<'_>, known: &[&'static str]) -> Self {
        let name = |text: &str| {
            known.iter().copied().find(|name| *name == text).ok_or_else(|| {
                InvalidValue::new("names no risk of this kind of store", format!("expected {}", known.join(", ")))
            })
        };
        Self(each(reader, section, ALLOW_UNSAFE, name))
    }

    /// One of them, if there are any.
    #[must_use]
    pub fn first(&self) -> Option<&'static str> {
        self.0.first().copied()
    }

    /// Whether this one is allowed.
    #[must_use]
    pub fn allows(&self, name: &str) -> bool {
        self.0.contains(&name)
    }

    /// The rule. Returns the warnings about allowed risks.
    ///
    /// # Errors
    /// Why the store isn't used: it has a risk that isn't allowed.
    pub fn check(&self, found: &[Risk]) -> Result<Vec<String>, String> {
        match found.iter().find(|risk| !self.allows(risk.name)) {
            Some(Risk { name, found, help }) => Err(format!(
                "{found}: a crash loses events that count as stored. {help}, or accept the loss with {ALLOW_UNSAFE} = [\"{name}\"]"
            )),
            None => Ok(found
                .iter()
                .map(|Risk { name, found, .. }| {
                    format!("{found}: a crash loses events that count as stored ({ALLOW_UNSAFE} has \"{name}\")")
                })
                .collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn risk_is_rejected_unless_allowed_by_name() {
        let risk = |name| Risk { name, found: format!("{name} is on"), help: "Turn it off" };
        let (one, other) = (risk("one"), risk("other"));
        let allowed = AllowedRisks::new(vec!["one"]);
        assert_eq!(allowed.check(&[]), Ok(Vec::new()));
        let warnings = allowed.check(std::slice::from_ref(&one)).unwrap();
        assert!(warnings[0].contains("one is on") && warnings[0].contains("allow_unsafe has \"one\""), "{warnings:?}");
        let refused = allowed.check(&[one, other]).unwrap_err();
        assert!(refused.contains("other is on") && refused.contains("allow_unsafe = [\"other\"]"), "{refused}");
    }
}
