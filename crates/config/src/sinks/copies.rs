//! Sinks of an upstream with `mode = "all"`: one for each server of the upstream, with separate lanes and cursors.

use settings::{Diagnostic, Section, SettingsReader};

use crate::sinks::declared::Sinks;
use crate::sinks::name::SinkName;
use crate::sinks::remote;

/// After all sinks, so their names are known.
pub(crate) fn read(reader: &mut SettingsReader<'_>, tables: &[Section<'_>], sinks: &mut Sinks) {
    for section in tables {
        let Ok(name) = SinkName::new(section.name()) else { continue };
        let Some(settings) = sinks.valid.get(&name).cloned() else { continue };
        let Some(config) = settings.store.remote() else { continue };
        let Some(copies) = remote::copies(reader, section, config) else { continue };
        sinks.valid.remove(&name);
        let names = copies.iter().map(|(copy, _)| copy.clone()).collect();
        for (copy, config) in copies {
            if let Some(other) = sinks.declared.get(copy.as_str()) {
                let title =
                    format!("conflict: mode = \"all\" creates the sink `{copy}`, but there is one of this name");
                let mistake = Diagnostic::new(title, section.span().clone(), "give it another name");
                reader.push(mistake.also(other.clone(), "this one"));
                continue;
            }
            let mut settings = settings.clone();
            if let Some(remote) = settings.store.remote_mut() {
                *remote = config;
            }
            sinks.valid.insert(copy, settings);
        }
        sinks.copies.insert(name, names);
    }
}
