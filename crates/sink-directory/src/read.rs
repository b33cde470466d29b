//! Returns files: as a whole if memory has room for them, or else a part of them piece by piece.

use std::fs::{self, File, Metadata};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use event::object::FoundObject;

use super::error;
use objects::Codec;
use objects::read::{ObjectCache, ObjectLookup};
use sink::SinkError;

/// The file of a name, unless it has the known tag.
pub(super) fn look(
    folder: &Path,
    name: &str,
    known: Option<&str>,
    cache: &ObjectCache,
) -> Result<ObjectLookup, SinkError> {
    let Some((file, found)) = find(folder, name)? else { return Ok(ObjectLookup::Missing) };
    if known == Some(&*found.etag) {
        return Ok(ObjectLookup::Same);
    }
    let content = match cache.place(found.bytes) {
        Some(place) => Some(place.filled(piece(folder, &file, 0..found.bytes)?)),
        None => None,
    };
    Ok(ObjectLookup::Found(FoundObject { content, ..found }))
}

/// A file and its properties, without its bytes.
pub(super) fn find(folder: &Path, name: &str) -> Result<Option<(File, FoundObject)>, SinkError> {
    let failed = |error: io::Error| error::of_io(folder, &error);
    let Some((file, metadata)) = open(&folder.join(name)).map_err(failed)? else {
        // Without the directory, it isn't known whether the file exists.
        return fs::metadata(folder).map(|_| None).map_err(failed);
    };
    let (etag, content_type, bytes) = (etag(&metadata), content_type(name).into(), metadata.len());
    Ok(Some((file, FoundObject { etag, content_type, bytes, content: None })))
}

/// The file with this tag.
pub(super) fn open_same(folder: &Path, name: &str, tag: &str) -> Result<File, SinkError> {
    let opened = open(&folder.join(name)).map_err(|error| error::of_io(folder, &error))?;
    let same = opened.filter(|(_, metadata)| *etag(metadata) == *tag).map(|(file, _)| file);
    same.ok_or_else(|| changed(name))
}

pub(super) fn changed(name: &str) -> SinkError {
    SinkError::Unavailable(format!("{name} changed while it was read: try again").into())
}

/// Bytes of a file.
pub(super) fn piece(folder: &Path, file: &File, range: Range<u64>) -> Result<Vec<u8>, SinkError> {
    let mut piece = vec![0; usize::try_from(range.end - range.start).unwrap_or(0)];
    file.read_exact_at(&mut piece, range.start).map_err(|error| error::of_io(folder, &error))?;
    Ok(piece)
}

/// A plain file of this name, if there is one: nothing else is opened, because it could be another path's file or never
/// respond.
fn open(path: &Path) -> io::Result<Option<(File, Metadata)>> {
    let seen = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_file() => metadata,
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => return Ok(None),
    };
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    // The file may have been replaced by a link since.
    let is_same = (seen.dev(), seen.ino()) == (metadata.dev(), metadata.ino());
    Ok(is_same.then_some((file, metadata)))
}

/// A file never changes under its name. If another program changes one, its number, length or time differs.
fn etag(metadata: &Metadata) -> Box<str> {
    let (number, bytes) = (metadata.ino(), metadata.len());
    format!("\"{number:x}-{bytes:x}-{:x}.{:x}\"", metadata.mtime(), metadata.mtime_nsec()).into()
}

fn content_type(name: &str) -> &'static str {
    match Codec::ALL.into_iter().find(|codec| name.ends_with(codec.ending())) {
        Some(codec) => codec.content_type(),
        None if name.ends_with(".json") => "application/json",
        None => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_types_are_those_of_objects_over_http() {
        for (name, expected) in [
            ("a.ndjson", "application/x-ndjson"),
            ("a.ndjson.gz", "application/gzip"),
            ("a.ndjson.zst", "application/zstd"),
            ("a.parquet", "application/vnd.apache.parquet"),
            ("a.parquet.manifest.json", "application/json"),
            ("a", "application/octet-stream"),
        ] {
            assert_eq!(content_type(name), expected, "{name}");
        }
    }
}
