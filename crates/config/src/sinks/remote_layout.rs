//! The layout of a writer's store in a gateway's table. The gateway needs it to decide whether an event can be stored before it
//! responds, and before any writer responds. The writer's sink must have the same values.

use std::collections::BTreeSet;

use ::sink::SinkKind;
use settings::{Diagnostic, Section, SettingsReader};

use crate::sinks::kinds::KINDS;
use crate::sinks::sink_config::{LayoutParts, parts_of};

/// Reads the settings that the table has. A setting of another kind of store is an error.
pub(crate) fn read(reader: &mut SettingsReader<'_>, section: &Section<'_>, store: &SinkKind) -> LayoutParts {
    let layout = store.layout;
    let is_known = |key: &str| layout.iter().any(|(_, keys)| keys.contains(&key));
    let of_any = KINDS.iter().flat_map(|kind| kind.layout).flat_map(|(_, keys)| keys.iter());
    for key in of_any.filter(|key| !is_known(key)).collect::<BTreeSet<_>>() {
        let Some((span, _)) = section.get(key) else { continue };
        let title = format!("unused setting `{}` with store = \"{}\"", section.key_path(key), store.name);
        reader.push(Diagnostic::new(title, span, "the store has no such setting"));
    }
    let mut all = parts_of((store.read_layout)(reader, section));
    // A setting that the table lacks is unknown: the writer's defaults may differ.
    let is_set = |keys: &[&str]| keys.iter().any(|key| reader.is_set(section, key));
    all.retain(|part, _| layout.iter().any(|(name, keys)| name == part && is_set(keys)));
    all
}
