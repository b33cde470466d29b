//! The folder `progress` of a data directory, and the names of the files in it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use journal::disk::{DiskFile, SharedDisk};
use journal::{DataDirectory, list_directory};

const FOLDER: &str = "progress";

/// The kinds of a lane's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// The ring of times and cursors.
    Ring,
    /// The last failures.
    Failures,
    /// The names of the last objects.
    Objects,
    /// The last changes of the writer.
    Writers,
}

impl FileKind {
    const ALL: [Self; 4] = [Self::Ring, Self::Failures, Self::Objects, Self::Writers];

    const fn ending(self) -> &'static str {
        match self {
            Self::Ring => "",
            Self::Failures => ".failures",
            Self::Objects => ".objects",
            Self::Writers => ".writers",
        }
    }
}

/// The folder on its disk.
#[derive(Clone)]
pub(crate) struct Files {
    disk: SharedDisk,
    folder: Arc<Path>,
}

impl Files {
    pub(crate) fn of(directory: &DataDirectory) -> Self {
        Self { disk: directory.disk().clone(), folder: directory.path().join(FOLDER).into() }
    }

    /// The file of a shard, or of a lane if it has a sink.
    pub(crate) fn path(&self, shard: u16, sink: Option<&str>, kind: FileKind) -> PathBuf {
        let ending = kind.ending();
        let name = sink.map_or_else(|| format!("{shard:04}"), |sink| format!("{sink}.{shard:04}{ending}"));
        self.folder.join(name)
    }

    /// Opens a file for reading; `None` if it can't be read.
    pub(crate) fn look(&self, path: &Path) -> Option<Box<dyn DiskFile>> {
        self.disk.open(path).ok()
    }

    /// Opens a file for writing, or creates it.
    pub(crate) fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        match self.disk.open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.disk.create_directory(&self.folder)?;
                self.disk.create(path)
            }
            opened => opened,
        }
    }

    /// Removes the files of lanes whose sink isn't kept. Other files stay, and so do files that can't be removed.
    pub(crate) fn remove_others(&self, is_kept: impl Fn(&str) -> bool) {
        for name in list_directory(&*self.disk, &self.folder).unwrap_or_default() {
            if sink_of(&name).is_some_and(|sink| !is_kept(sink)) {
                // The next start tries again.
                let _ = self.disk.remove(&self.folder.join(name));
            }
        }
    }
}

/// The sink whose lane's file has this name.
fn sink_of(name: &str) -> Option<&str> {
    FileKind::ALL.into_iter().rev().find_map(|kind| {
        let (sink, shard) = name.strip_suffix(kind.ending())?.rsplit_once('.')?;
        let is_shard = shard.len() >= 4 && shard.parse::<u16>().is_ok();
        (is_shard && !sink.is_empty()).then_some(sink)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sinks_are_known_by_file_names() {
        let names = [
            "a.0000",
            "a.0001.failures",
            "a.b.0002.objects",
            "a.0.0003.writers",
            "0000",
            "a",
            "a.txt",
            ".0000",
            "a.0000.old",
        ];
        let sinks = [Some("a"), Some("a"), Some("a.b"), Some("a.0"), None, None, None, None, None];
        assert_eq!(names.map(sink_of), sinks);
    }
}
