//! Destinations of sinks: no two sinks have one.

use std::collections::BTreeMap;

use ::sink::Destination;
use settings::{Diagnostic, SettingsReader};

use crate::sinks::declared::Sinks;
use crate::sinks::name::SinkName;

/// Reports sinks with one destination.
pub(crate) fn check(reader: &mut SettingsReader<'_>, sinks: &Sinks) {
    let mut first: BTreeMap<Destination, &SinkName> = BTreeMap::new();
    let start = |name: &SinkName| sinks.span(name).map_or(0, |span| span.range.start);
    let mut in_order: Vec<_> = sinks.valid.iter().collect();
    in_order.sort_by_key(|(name, _)| start(name));
    for (name, settings) in in_order {
        let Some(destination) = settings.store.destination() else { continue };
        let (what, another) = (destination.what, destination.another);
        let Some(other) = first.insert(destination, name) else { continue };
        if let (Some(at), Some(also)) = (sinks.span(name), sinks.span(other)) {
            let title = format!("conflict: the sinks `{other}` and `{name}` write to the same {what}");
            let mistake = Diagnostic::new(title, at.clone(), format!("writes to the {what}"));
            let mistake = mistake.also(also.clone(), "the other sink");
            reader.push(mistake.help(format!("give one of them {another}")));
        }
    }
}
