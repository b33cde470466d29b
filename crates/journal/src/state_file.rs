//! Small state that must survive: cursors, the ledger, the gateway id. A state file has two generations. Each is newly
//! written, synced and then named; if the newer is damaged the older one is used.

use std::io;
use std::path::{Path, PathBuf};

use crate::checksum;
use crate::disk::{Disk, DiskFile, SharedDisk};
use crate::endian::{get_u64, put};

const MAGIC: [u8; 8] = *b"FOREBAYS";
const AT_VERSION: usize = 8;
const AT_LENGTH: usize = 16;
const AT_SUM: usize = 24;
const HEADER_BYTES: usize = 32;
const STATE_SEED: u64 = 0;
/// How the names of the two generations end.
const COPIES: [&str; 2] = [".0", ".1"];

/// A state file: a name of which two generations exist.
pub struct StateFile {
    disk: SharedDisk,
    directory: PathBuf,
    name: String,
    version: u64,
}

/// The content of a state file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The newest valid content.
    pub content: Option<Vec<u8>>,
    /// Files that exist but are damaged.
    pub damaged: Vec<PathBuf>,
}

impl StateFile {
    /// Reads the file `name` in `directory`, if it exists. Its content is then durable, even if the process that wrote
    /// it was killed before it synced it.
    ///
    /// # Errors
    /// The file system's error. Damage is no error.
    pub fn open(disk: SharedDisk, directory: &Path, name: &str) -> io::Result<(Self, State)> {
        disk.sync_directory(directory)?;
        let mut file = Self { disk, directory: directory.into(), name: name.into(), version: 0 };
        let mut state = State::default();
        for slot in 0..2 {
            let path = file.path(slot);
            match read(&*file.disk, &path)? {
                Slot::Valid { version, content } if version > file.version => {
                    file.version = version;
                    state.content = Some(content);
                }
                Slot::Damaged => state.damaged.push(path),
                Slot::Valid { .. } | Slot::Absent => {}
            }
        }
        Ok((file, state))
    }

    /// Replaces the content; it is durable when this returns. The content before it stays as the older generation.
    ///
    /// # Errors
    /// The file system's error; the earlier content then still exists.
    pub fn write(&mut self, content: &[u8]) -> io::Result<()> {
        let version = self.version + 1;
        let temporary = self.directory.join(format!("{}.new", self.name));
        let mut bytes = vec![0; HEADER_BYTES];
        put(&mut bytes, 0, &MAGIC);
        put(&mut bytes, AT_VERSION, &version.to_le_bytes());
        put(&mut bytes, AT_LENGTH, &(content.len() as u64).to_le_bytes());
        bytes.extend_from_slice(content);
        let sum = sum(&bytes);
        put(&mut bytes, AT_SUM, &sum.to_le_bytes());
        rewrite(&*self.disk, &temporary, &bytes)?;
        self.disk.rename(&temporary, &self.path(version % 2))?;
        self.disk.sync_directory(&self.directory)?;
        self.version = version;
        Ok(())
    }

    /// How many times it was written since it was created.
    pub(crate) const fn version(&self) -> u64 {
        self.version
    }

    fn path(&self, slot: u64) -> PathBuf {
        self.directory.join(format!("{}.{slot}", self.name))
    }
}

/// The damaged ones among the state files in `directory`. Changes nothing.
///
/// # Errors
/// The file system's error.
pub fn damaged_state_files(disk: &SharedDisk, directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut names = match disk.list(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        names => names?,
    };
    names.sort_unstable();
    let mut damaged = Vec::new();
    for name in names.iter().filter(|name| COPIES.iter().any(|copy| name.ends_with(copy))) {
        let path = directory.join(name);
        if matches!(read(&**disk, &path)?, Slot::Damaged) {
            damaged.push(path);
        }
    }
    Ok(damaged)
}

fn rewrite(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let file = match disk.create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let file = disk.open(path)?;
            file.set_length(0)?;
            file
        }
        created => created?,
    };
    file.write_all_at(bytes, 0)?;
    file.sync()
}

enum Slot {
    Absent,
    Damaged,
    Valid { version: u64, content: Vec<u8> },
}

fn read(disk: &dyn Disk, path: &Path) -> io::Result<Slot> {
    let file: Box<dyn DiskFile> = match disk.open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Slot::Absent),
        opened => opened?,
    };
    let length = usize::try_from(file.length()?).map_err(|_| io::ErrorKind::FileTooLarge)?;
    let mut bytes = vec![0; length];
    let filled = file.read_full_at(&mut bytes, 0)?;
    bytes.truncate(filled);
    Ok(parse(&bytes).map_or(Slot::Damaged, |(version, content)| Slot::Valid { version, content: content.into() }))
}

fn parse(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let content = bytes.get(HEADER_BYTES..)?;
    let valid = bytes[..AT_VERSION] == MAGIC
        && get_u64(bytes, AT_LENGTH) == content.len() as u64
        && get_u64(bytes, AT_SUM) == sum(bytes);
    valid.then(|| (get_u64(bytes, AT_VERSION), content))
}

/// Over the header without the sum, and the content.
fn sum(bytes: &[u8]) -> u64 {
    checksum::seeded(checksum::seeded(STATE_SEED, &bytes[..AT_SUM]), &bytes[HEADER_BYTES..])
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::simulated_disk::SimulatedDisk;

    fn opened(disk: &SimulatedDisk) -> (StateFile, State) {
        StateFile::open(Arc::new(disk.clone()), Path::new("/data"), "x").unwrap()
    }

    fn disk_with_versions(contents: &[&[u8]]) -> SimulatedDisk {
        let disk = SimulatedDisk::new(1);
        disk.put("/data/other", b"").unwrap();
        let (mut file, state) = opened(&disk);
        assert_eq!(state, State::default());
        contents.iter().for_each(|content| file.write(content).unwrap());
        disk
    }

    #[test]
    fn the_newest_content_is_read() {
        let disk = disk_with_versions(&[b"one", b"two", b""]);
        assert_eq!(opened(&disk).1, State { content: Some(Vec::new()), damaged: Vec::new() });
        opened(&disk).0.write(b"four").unwrap();
        assert_eq!(opened(&disk).1.content.unwrap(), b"four");
    }

    #[test]
    fn older_generation_is_used_if_newer_is_damaged() {
        let disk = disk_with_versions(&[b"one", b"two"]);
        disk.flip_bit("/data/x.0", 8 * HEADER_BYTES as u64).unwrap();
        let (mut file, state) = opened(&disk);
        assert_eq!(state, State { content: Some(b"one".to_vec()), damaged: vec!["/data/x.0".into()] });
        file.write(b"three").unwrap();
        assert_eq!(opened(&disk).1, State { content: Some(b"three".to_vec()), damaged: Vec::new() });
    }

    #[test]
    fn any_flip_or_cut_is_noticed() {
        let disk = disk_with_versions(&[b"one"]);
        let length = disk.content("/data/x.1").unwrap().len() as u64;
        for at in 0..length * 8 {
            let flipped = disk.fork(at);
            flipped.flip_bit("/data/x.1", at).unwrap();
            assert_eq!(opened(&flipped).1.damaged.len(), 1, "bit {at}");
        }
        for at in 0..length {
            let cut = disk.fork(at);
            cut.truncate("/data/x.1", at).unwrap();
            assert_eq!(opened(&cut).1, State { content: None, damaged: vec!["/data/x.1".into()] }, "{at} bytes");
        }
    }

    #[test]
    fn interrupted_write_does_not_affect_a_later_one() {
        let disk = disk_with_versions(&[b"one"]);
        disk.put("/data/x.new", &[1; 5000]).unwrap();
        opened(&disk).0.write(b"two").unwrap();
        assert_eq!(opened(&disk).1, State { content: Some(b"two".to_vec()), damaged: Vec::new() });
    }
}
