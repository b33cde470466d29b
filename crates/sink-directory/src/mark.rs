//! The store id (mark) of a directory: a file that readers of objects ignore.

use std::io::{self, Read};
use std::path::Path;

use super::files::Files;
use super::{error, put};
use sink::{Mark, SinkError};

const NAME: &str = ".forebay-mark";
const TEMPORARY: &str = ".forebay-mark.partial";
/// The digits of a store id, and one more byte to detect a longer file.
const BYTES_MAX: u64 = 33;

/// Reads the store id, and creates it if the directory has none.
pub(super) fn of(files: &dyn Files, folder: &Path) -> Result<Mark, SinkError> {
    match read(files, folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        read => return read.map_err(|error| error::of_io(folder, &error)),
    }
    create(files, folder).map_err(|error| error::of_io(folder, &error))
}

/// Creates the store id under the directory's lock, unless a concurrent writer has created it.
fn create(files: &dyn Files, folder: &Path) -> io::Result<Mark> {
    files.make_folder(folder)?;
    let _lock = files.lock(folder)?;
    match read(files, folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        read => return read,
    }
    let (mark, temporary) = (Mark::random()?, folder.join(TEMPORARY));
    put::remove_if_there(files, &temporary)?;
    let mut file = files.create(&temporary)?;
    file.write_all(mark.to_string().as_bytes())?;
    file.sync()?;
    files.rename(&temporary, &folder.join(NAME))?;
    files.sync_folder(folder)?;
    Ok(mark)
}

fn read(files: &dyn Files, folder: &Path) -> io::Result<Mark> {
    let mut text = String::new();
    files.open(&folder.join(NAME))?.take(BYTES_MAX).read_to_string(&mut text)?;
    text.parse().map_err(|error| io::Error::new(io::ErrorKind::InvalidData, format!("{NAME}: {error}")))
}
