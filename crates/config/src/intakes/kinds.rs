//! The kinds of intakes, for settings and messages.

use ::intake::IntakeKind;
use ::intake::kinds::{KINDS, find};
use settings::{InvalidValue, Kind, Setting, names, nearest};

use crate::intakes::SETTINGS;

/// The word for the values of [`KIND`], which the JSON Schema knows.
pub(crate) const WORD: &str = "kind of intake";
/// The setting.
pub(crate) const KIND: Setting = Setting::new(
    "kind",
    Kind::Text(WORD),
    "the protocol: `elasticsearch`, `otlp`, `webhook`, `cloudevents`, `splunk_hec`, `segment` or `loki`",
)
.required()
.example("\"elasticsearch\"");

/// The names of all kinds.
pub fn all() -> impl Iterator<Item = &'static str> + Clone {
    KINDS.iter().map(|kind| kind.name)
}

/// The settings of intakes of any kind.
pub(crate) fn keys() -> impl Iterator<Item = &'static str> {
    names(SETTINGS).chain(KINDS.iter().flat_map(|kind| names(kind.settings)))
}

/// The names of all kinds, for messages.
pub(crate) fn listed() -> String {
    all().collect::<Vec<_>>().join(", ")
}

/// Parses `kind`.
pub(crate) fn parse(text: &str) -> Result<&'static IntakeKind, InvalidValue> {
    find(text).ok_or_else(|| {
        let wrong = InvalidValue::new("is not a kind of intake", "unknown");
        match nearest(text, all()) {
            Some(near) => wrong.help(format!("did you mean `{near}`?")),
            None => wrong.help(format!("known kinds: {}", listed())),
        }
    })
}
