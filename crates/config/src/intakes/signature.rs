//! A digest of the settings of an intake's kind, with the values of their variables. Two configurations with equal ones have equal protocols.

use std::hash::{DefaultHasher, Hash, Hasher};

use ::intake::IntakeKind;
use settings::{Section, SettingsReader};

/// The digest.
pub(super) fn of(reader: &SettingsReader<'_>, section: &Section<'_>, kind: &IntakeKind) -> u64 {
    let mut digest = DefaultHasher::new();
    for setting in kind.settings {
        setting.name.hash(&mut digest);
        reader.resolved(section, setting.name).hash(&mut digest);
    }
    digest.finish()
}
