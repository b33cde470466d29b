//! Warns of settings that name a place in events that the schema of their type excludes: they have no effect, and are
//! most often a typing error. It is a warning and no error: the same configuration was accepted earlier, and does no
//! harm.

use std::fmt::Display;
use std::ops::Range;

use json::JsonPointer;
use schema_tools::{Reachability, Unreachable};
use settings::{Diagnostic, Located, Section, SettingsReader, SourceSpan};

use crate::event_types::conditional::Worded;

/// Warns of a setting that is a pointer.
pub(crate) fn pointer(
    reader: &mut SettingsReader<'_>,
    section: &Section<'_>,
    (key, found): (&str, Option<&Located<JsonPointer>>),
    reach: &mut Reachability<'_>,
) {
    if let Some(found) = found {
        place(reader, &section.key_path(key), (found.span.clone(), &found.value), reach);
    }
}

/// Warns of the given places that a condition names.
pub(crate) fn condition<T>(
    reader: &mut SettingsReader<'_>,
    condition: &Worded<T>,
    places: Vec<(Range<usize>, JsonPointer)>,
    reach: &mut Reachability<'_>,
) {
    let Worded { path, text, .. } = condition;
    for (place, pointer) in places {
        if let Err(unreachable) = reach.find(&pointer) {
            let at = reader.within(&text.span, &text.value, place);
            let help = unreachable.nearest_in_expression().map(|nearest| format!("did you mean `{nearest}`?"));
            warn(
                reader,
                format!("unused path in `{path}`: no valid event has this value"),
                (at, unreachable.why),
                help,
            );
        }
    }
}

/// Warns of a place that a setting names.
pub(crate) fn place(
    reader: &mut SettingsReader<'_>,
    setting: &dyn Display,
    (span, pointer): (SourceSpan, &JsonPointer),
    reach: &mut Reachability<'_>,
) {
    if let Err(Unreachable { why, nearest }) = reach.find(pointer) {
        let help = nearest.map(|nearest| format!("did you mean `{nearest}`?"));
        warn(reader, format!("unused path in `{setting}`: no valid event has this value"), (span, why), help);
    }
}

/// Warns with these words.
pub(crate) fn warn(
    reader: &mut SettingsReader<'_>,
    title: String,
    (span, why): (SourceSpan, String),
    help: Option<String>,
) {
    reader.push(Diagnostic::warning(title, span, why).help(help));
}
