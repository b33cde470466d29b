//! What a protocol declares for configurations.

use std::sync::Arc;

use settings::{Section, Setting, SettingsReader};

use crate::Intake;

/// Where an intake is on the port of the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntakePath {
    /// At this path: one intake of this kind can be there.
    Fixed(&'static str),
    /// At this path, a slash, and the intake's name.
    Named(&'static str),
}

/// A kind of intake.
#[derive(Debug)]
pub struct IntakeKind {
    /// The name in configurations: `kind = "NAME"`.
    pub name: &'static str,
    /// Where it is on the port of the gateway. On its separate port it is at the root.
    pub path: IntakePath,
    /// The line for the configuration of a sender, with `{URL}` for the URL of the intake's root.
    pub sender: &'static str,
    /// The settings of its table, without those of every intake.
    pub settings: &'static [Setting],
    /// The settings whose values are secrets.
    pub secrets: &'static [&'static str],
    /// Whether its records may have no id, and `dedupe` has an effect.
    pub may_lack_ids: bool,
    /// Reads the settings except those of every intake. `None` after an error, which is reported.
    pub read: fn(&mut SettingsReader<'_>, &Section<'_>) -> Option<Arc<dyn Intake>>,
}
