//! The settings of sinks of kind `lines`.

use std::fmt;
use std::path::Path;

use settings::{PATH, Section, Setting, SettingsReader};
use sink::local_path::{plain, refuse_own};
use sink::{Destination, Folders, Sink, SinkKind, StoreConfig};

use crate::config::LinesConfig;
use crate::store::Lines;

const SETTINGS: &[Setting] =
    &[Setting::new("path", PATH, "the file, relative to the data directory").required().example("\"events.ndjson\"")];

/// Sinks of kind `lines`.
pub static KIND: SinkKind =
    SinkKind { settings: &[SETTINGS], is_fenced: true, is_embedded: true, ..SinkKind::new("lines", read) };

fn read(reader: &mut SettingsReader<'_>, table: &Section<'_>, at: Folders<'_>) -> Option<Box<dyn StoreConfig>> {
    let path = reader.required(table, "path", "add the file, as in path = \"events.ndjson\"", |text| {
        let path = plain(&at.data.join(text));
        refuse_own(&path, at.data).map(|()| path)
    });
    Some(Box::new(LinesConfig { path: path? }))
}

impl StoreConfig for LinesConfig {
    fn kind(&self) -> &'static SinkKind {
        &KIND
    }

    fn build(&self) -> Sink {
        Sink::new(Lines::new(self.clone()))
    }

    fn destination(&self) -> Option<Destination> {
        let id = vec![KIND.name.to_owned(), self.path.display().to_string()];
        Some(Destination { id, what: "file", another: "another `path`" })
    }

    fn local_path(&self) -> Option<&Path> {
        Some(&self.path)
    }
}

impl fmt::Display for LinesConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "lines {}", self.path.display())
    }
}
