//! Warns of settings that name a place in events which the schema of their type never lets be there: they do nothing, and are most
//! often a slip. It is a warning and no mistake: the same configuration was taken before, and does no harm.

use std::fmt::Display;
use std::ops::Range;

use json::JsonPointer;
use schema_tools::{Reachability, Unreachable};

use super::conditional::Worded;
use super::reader::Reader;
use super::report::{Mistake, Spot};
use super::section::{Found, Section};

/// Warns of a setting that is a pointer.
pub(super) fn pointer(
    reader: &mut Reader<'_>,
    section: &Section<'_>,
    (key, found): (&str, Option<&Found<JsonPointer>>),
    reach: &mut Reachability<'_>,
) {
    if let Some(found) = found {
        place(reader, &section.key_path(key), (found.spot.clone(), &found.value), reach);
    }
}

/// Warns of places that a condition names, of those that are meant.
pub(super) fn condition<T>(
    reader: &mut Reader<'_>,
    condition: &Worded<T>,
    places: Vec<(Range<usize>, JsonPointer)>,
    reach: &mut Reachability<'_>,
) {
    let Worded { path, text, .. } = condition;
    for (place, pointer) in places {
        if let Err(unreachable) = reach.find(&pointer) {
            let at = reader.within(&text.spot, &text.value, place);
            let help = unreachable.nearest_in_expression().map(|nearest| format!("did you mean `{nearest}`?"));
            warn(reader, format!("`{path}` names what no event can have"), (at, unreachable.why), help);
        }
    }
}

/// Warns of a place that a setting names.
pub(super) fn place(
    reader: &mut Reader<'_>,
    setting: &dyn Display,
    (spot, pointer): (Spot, &JsonPointer),
    reach: &mut Reachability<'_>,
) {
    if let Err(Unreachable { why, nearest }) = reach.find(pointer) {
        let help = nearest.map(|nearest| format!("did you mean `{nearest}`?"));
        warn(reader, format!("`{setting}` names what no event can have"), (spot, why), help);
    }
}

/// Warns with these words.
pub(super) fn warn(reader: &mut Reader<'_>, title: String, (spot, why): (Spot, String), help: Option<String>) {
    reader.push(Mistake::warning(title, spot, why).help(help));
}
