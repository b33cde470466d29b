//! The state of a load in a file, to resume it after a crash: its id, its settings, and for each input up to
//! where everything was answered.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail};
use serde::{Deserialize, Serialize};

use super::input::FileId;
use super::state_lock::StateLock;

/// Bytes before the place where a load resumes that must still be the same.
pub(super) const TAIL_BYTES: usize = 4096;

/// The settings that decide which records are sent under which key: with other settings the keys would mean other records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Settings {
    pub(super) url: String,
    pub(super) r#type: Option<String>,
    pub(super) batch_bytes: usize,
    pub(super) r#match: Option<String>,
    pub(super) r#where: Option<String>,
    /// All edits, in their order.
    pub(super) edits: String,
}

/// How far an input was loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// Counts the files that had the name.
    pub(super) generation: u64,
    pub(super) file: FileId,
    /// How the file begins: its first bytes as hexadecimal digits. Empty where it isn't known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) head: String,
    pub(super) place: Place,
    /// Where a batch ended that may have been sent, because the input ended there then: it ends there again, even if the input has grown
    /// since. 0 if there was none.
    #[serde(default)]
    pub(super) cut: u64,
    /// When the last of it was answered (RFC 3339).
    #[serde(default)]
    pub(super) loaded_at: Option<String>,
    /// Batches of which lines are sent alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) split: Vec<Split>,
}

/// A batch that is answered, except lines that have to be sent alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Split {
    /// Where it begins, as its key says.
    pub(super) offset: u64,
    /// Lines of its body, from 1.
    pub(super) alone: BTreeSet<usize>,
    /// There may be more: the batch has to be sent again to learn of them.
    pub(super) has_more: bool,
    /// How many of its other lines were rejected.
    pub(super) refused: u64,
}

/// A place between two lines, and the bytes before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    /// Decoded bytes.
    pub(super) offset: u64,
    /// Line breaks, or elements.
    pub(super) lines: u64,
    /// How many bytes before it are known, and their checksum.
    pub(super) tail_bytes: usize,
    pub(super) tail_sum: u64,
    /// Whether the input ended there.
    pub(super) is_end: bool,
    /// Lines before it that the server has rejected.
    #[serde(default)]
    pub(super) refused: u64,
}

impl Place {
    /// The place after a block.
    pub(super) fn behind(block: &[u8], offset: u64, lines: u64, is_end: bool) -> Self {
        let tail = &block[block.len().saturating_sub(TAIL_BYTES)..];
        Self { offset, lines, tail_bytes: tail.len(), tail_sum: sum(tail), is_end, refused: 0 }
    }
}

pub(super) fn sum(bytes: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(bytes)
}

#[derive(Serialize, Deserialize)]
struct Content {
    version: u32,
    id: String,
    settings: Settings,
    inputs: BTreeMap<String, Entry>,
}

const VERSION: u32 = 1;

/// The state of a load: in a file, or in memory alone for an input that can't be read again.
pub(super) struct State {
    path: Option<PathBuf>,
    content: Content,
    _lock: Option<StateLock>,
}

impl State {
    /// Reads the file, or begins a new load if there is none. `id` names the load; without it one is generated.
    pub(super) fn open(path: Option<PathBuf>, id: Option<&str>, settings: Settings) -> anyhow::Result<Self> {
        // Before it is read: another load that ends now has written it by then.
        let lock = path.as_deref().map(lock).transpose()?;
        let read = path.as_deref().map(read).transpose()?.flatten();
        let Some(content) = read else {
            let id = id.map_or_else(new_id, |id| Ok(id.to_owned()))?;
            let content = Content { version: VERSION, id, settings, inputs: BTreeMap::new() };
            return Ok(Self { path, content, _lock: lock });
        };
        let state = Self { path, content, _lock: lock };
        if state.content.settings != settings || id.is_some_and(|id| id != state.content.id) {
            let path = state.path.unwrap_or_default();
            let was = serde_json::to_string(&state.content.settings).unwrap_or_default();
            bail!(
                "{} belongs to load {} with other settings ({was}). Use the same settings to resume it. Name another --state, or remove \
                 this one, to start again",
                path.display(),
                state.content.id
            );
        }
        Ok(state)
    }

    /// The file, if there is one.
    pub(super) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    pub(super) fn id(&self) -> &str {
        &self.content.id
    }

    pub(super) fn entry(&self, input: &str) -> Option<&Entry> {
        self.content.inputs.get(input)
    }

    /// Remembers how far an input was loaded, durably.
    pub(super) fn save(&mut self, input: &str, entry: Entry) -> anyhow::Result<()> {
        self.content.inputs.insert(input.to_owned(), entry);
        let Some(path) = &self.path else { return Ok(()) };
        write(path, &self.content).map_err(unusable(path))
    }
}

fn lock(path: &Path) -> anyhow::Result<StateLock> {
    StateLock::take(path).map_err(unusable(path))?.ok_or_else(|| {
        anyhow!(
            "another load of this file is running, with the state {}: wait for its end. To load the file elsewhere too, name another \
             --state",
            path.display()
        )
    })
}

/// The state can't be read or written.
fn unusable<E: Display>(path: &Path) -> impl FnOnce(E) -> anyhow::Error {
    move |error| anyhow!("can't use the state file {}: {error}. Name another one with --state", path.display())
}

fn read(path: &Path) -> anyhow::Result<Option<Content>> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unusable(path)(error)),
    };
    let content: Content = serde_json::from_slice(&text).map_err(unusable(path))?;
    if content.version != VERSION {
        return Err(unusable(path)("another version of Forebay wrote it"));
    }
    Ok(Some(content))
}

/// Written to a new file, synced, renamed: at any time the path has one whole state.
fn write(path: &Path, content: &Content) -> io::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let mut file = File::create(&new)?;
    file.write_all(&serde_json::to_vec_pretty(content)?)?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

fn new_id() -> anyhow::Result<String> {
    let number = getrandom::u64();
    let number =
        number.map_err(|error| anyhow!("no random number for the load's id: {error}; name an id with --id"))?;
    Ok(format!("{number:016x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(offset: u64) -> Entry {
        Entry {
            generation: 2,
            file: FileId { device: 1, inode: 3 },
            head: "780a".to_owned(),
            place: Place::behind(b"x\n", offset, 7, false),
            cut: 0,
            loaded_at: Some("2026-11-23T01:00:00Z".to_owned()),
            split: vec![Split { offset: 8, alone: [2].into(), has_more: false, refused: 1 }],
        }
    }

    #[test]
    fn state_is_reopened_with_its_id() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let settings = Settings { batch_bytes: 5, ..Settings::default() };
        let mut state = State::open(Some(path.clone()), None, settings.clone()).unwrap();
        let id = state.id().to_owned();
        assert_eq!(state.entry("a"), None);
        state.save("a", entry(9)).unwrap();
        state.save("b", entry(1)).unwrap();
        let error = |path: &Path, id, settings| State::open(Some(path.into()), id, settings).err().unwrap().to_string();
        assert!(error(&path, None, settings.clone()).starts_with("another load of this file is running"));
        drop(state);
        let again = State::open(Some(path.clone()), Some(&id), settings.clone()).unwrap();
        assert_eq!((again.id(), again.entry("a"), again.entry("b")), (id.as_str(), Some(&entry(9)), Some(&entry(1))));
        drop(again);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);

        for (id, settings) in [(Some("other"), settings.clone()), (None, Settings::default())] {
            assert!(error(&path, id, settings).contains("with other settings"));
        }
        fs::write(&path, "{\"version\":1").unwrap();
        assert!(error(&path, None, settings).starts_with("can't use the state file "));
    }

    #[test]
    fn two_loads_have_two_ids() {
        let open = || State::open(None, None, Settings::default()).unwrap();
        assert_ne!(open().id(), open().id());
        assert_eq!(State::open(None, Some("x"), Settings::default()).unwrap().id(), "x");
    }
}
