//! Writes one object: to a temporary name, synced, renamed, and the directory synced; then its description in the same
//! way. So a description exists only with its object, and an object only completely.
//!
//! A crash leaves at most the two temporary files of one object. Their names contain the object's name, and the next
//! attempt, with the same manifest, removes them.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use super::error;
use super::files::{Files, NewFile};
use objects::Sealed;
use objects::encoder::{self, EncodeError};
use objects::{Manifest, Parts, description};
use sink::SinkError;

/// The file that checks whether files can be created.
const PROBE: &str = ".forebay-probe";

/// Creates the directory if it is missing, and a file in it. Several sinks may do so concurrently: the file may exist
/// or not.
pub(super) fn probe(files: &dyn Files, folder: &Path) -> Result<(), SinkError> {
    let probe = folder.join(PROBE);
    let made = files
        .make_folder(folder)
        .and_then(|()| remove_if_there(files, &probe))
        .and_then(|()| match files.create(&probe) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            created => created.map(drop),
        })
        .and_then(|()| remove_if_there(files, &probe));
    made.map_err(|error| error::of_io(folder, &error))
}

/// A name in a directory.
pub(super) struct Named<'a> {
    pub(super) files: &'a dyn Files,
    pub(super) folder: &'a Path,
    pub(super) name: &'a str,
    /// The name of its description, which may be in a folder.
    pub(super) description: &'a str,
}

/// An object that is being written to its directory.
pub(super) struct Put<'a> {
    named: Named<'a>,
    manifest: &'a Manifest,
}

impl<'a> Put<'a> {
    pub(super) const fn new(files: &'a dyn Files, folder: &'a Path, manifest: &'a Manifest) -> Self {
        let (name, description) = (manifest.name.as_str(), manifest.description.as_str());
        Self { named: Named { files, folder, name, description }, manifest }
    }

    /// Writes the object and its description, or finds the same object.
    pub(super) fn run(&self, parts: &mut dyn Parts, abandoned: &AtomicBool) -> Result<(), SinkError> {
        // An attempt whose lane and driver have ended may still be writing to the same names.
        let named = &self.named;
        let _lock = named.files.lock(named.folder).map_err(|error| named.failed(&error))?;
        let sealed = match named.files.open(&named.object()) {
            Ok(there) => self.compare(there, parts, abandoned)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.write_object(parts, abandoned)?,
            Err(error) => return Err(named.failed(&error)),
        };
        let text = description::text(self.manifest, &sealed, None);
        named.write_file(&named.description(), |file| file.write_all(&text)).map_err(|error| named.failed(&error))
    }

    fn write_object(&self, parts: &mut dyn Parts, abandoned: &AtomicBool) -> Result<Sealed, SinkError> {
        let write = |mut file: &mut dyn NewFile| encoder::write(self.manifest, parts, &mut file, abandoned, &|_| None);
        self.named.write_file(&self.named.object(), write).map_err(|encode_failed| self.encode_failed(encode_failed))
    }

    /// The object exists: it must equal the new one.
    fn compare(
        &self,
        there: Box<dyn Read>,
        parts: &mut dyn Parts,
        abandoned: &AtomicBool,
    ) -> Result<Sealed, SinkError> {
        let mut comparison = Comparison::new(there);
        let sealed = encoder::write(self.manifest, parts, &mut comparison, abandoned, &|_| None);
        let sealed = sealed.map_err(|encode_failed| self.encode_failed(encode_failed))?;
        if !comparison.ends_here().map_err(|error| self.named.failed(&error))? {
            return Err(error::name_conflict(&self.named.object(), self.manifest));
        }
        self.named.sync_name().map_err(|error| self.named.failed(&error))?;
        Ok(sealed)
    }

    fn encode_failed(&self, encode_failed: EncodeError) -> SinkError {
        match encode_failed {
            EncodeError::Parts(error) => SinkError::Unavailable(error.0),
            EncodeError::Output(error) => self.named.failed(&error),
            EncodeError::Abandoned => error::abandoned(&self.named.object()),
        }
    }
}

impl Named<'_> {
    pub(super) fn object(&self) -> PathBuf {
        self.folder.join(self.name)
    }

    fn description(&self) -> PathBuf {
        self.folder.join(self.description)
    }

    /// Writes a file that is durable under its name when this returns.
    pub(super) fn write_file<T, E: From<io::Error>>(
        &self,
        path: &Path,
        write: impl FnOnce(&mut dyn NewFile) -> Result<T, E>,
    ) -> Result<T, E> {
        let (temporary, folder) = (temporary(path), path.parent().unwrap_or(self.folder));
        if folder != self.folder {
            // The directory itself is created only at a connect: it may be missing because its disk isn't mounted.
            self.files.make_folder(folder)?;
        }
        remove_if_there(self.files, &temporary)?;
        let mut file = self.files.create(&temporary)?;
        let written = write(&mut *file).and_then(|written| {
            file.sync()?;
            self.files.rename(&temporary, path)?;
            Ok(written)
        });
        drop(file);
        if written.is_err() {
            // On a full disk the temporary file uses space. If it can't be removed now, the next attempt removes it.
            let _ = self.files.remove(&temporary);
        }
        let written = written?;
        self.files.sync_folder(folder)?;
        Ok(written)
    }

    /// Makes the name of an object without a description durable. The attempt that named it may have ended before its
    /// directory was synced, or at a failed sync, which makes nothing durable when it is repeated.
    pub(super) fn sync_name(&self) -> io::Result<()> {
        match self.files.open(&self.description()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let (object, temporary) = (self.object(), temporary(&self.object()));
                self.files.rename(&object, &temporary)?;
                self.files.rename(&temporary, &object)?;
                self.files.sync_folder(self.folder)
            }
            there => there.map(drop),
        }
    }

    pub(super) fn failed(&self, error: &io::Error) -> SinkError {
        error::of_io(self.folder, error)
    }
}

/// The name of a file until it is complete. A dot hides it from readers of objects.
fn temporary(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.partial"))
}

pub(super) fn remove_if_there(files: &dyn Files, path: &Path) -> io::Result<()> {
    match files.remove(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Compares the bytes written to it with an existing file.
pub(super) struct Comparison {
    there: Box<dyn Read>,
    is_same: bool,
    buffer: Vec<u8>,
}

impl Comparison {
    pub(super) const fn new(there: Box<dyn Read>) -> Self {
        Self { there, is_same: true, buffer: Vec::new() }
    }

    /// Whether the existing file ends here.
    pub(super) fn ends_here(mut self) -> io::Result<bool> {
        let mut rest = Vec::new();
        self.there.by_ref().take(1).read_to_end(&mut rest)?;
        Ok(self.is_same && rest.is_empty())
    }
}

impl Write for Comparison {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_same {
            self.buffer.clear();
            self.there.by_ref().take(bytes.len() as u64).read_to_end(&mut self.buffer)?;
            self.is_same = self.buffer == bytes;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
