//! The directories: the file of each name, as the process sees it and as a power cut would leave it.
//!
//! A change of names is one or two *edits*, each with the earlier entry of its name. A change takes effect on the disk
//! as a whole, and only if everything before it at the same names did. So a rename is atomic, and the rename of a file
//! whose creation was lost is impossible.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::crash::CutStyle;
use random::Random;

/// A file, independent of its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FileId(u64);

/// A directory, independent of its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DirectoryId(u64);

/// The root: it is always there. Relative paths begin at it too.
const ROOT: DirectoryId = DirectoryId(0);

/// The entry of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Node {
    File(FileId),
    Directory(DirectoryId),
}

/// A name within a directory.
type Place = (DirectoryId, Arc<str>);
type Entries = BTreeMap<Place, Node>;

#[derive(Clone, Debug)]
struct Edit {
    place: Place,
    before: Option<Node>,
    after: Option<Node>,
}

#[derive(Clone, Debug)]
struct Change {
    /// The last one's directory is the one whose sync makes the change durable.
    edits: Vec<Edit>,
    /// A sync of the directory failed over it: no later sync alone makes it durable.
    forsaken: bool,
}

/// All directories of a disk.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    visible: Entries,
    durable: Entries,
    changes: Vec<Change>,
    made: u64,
}

impl Names {
    /// Gives a new file its name.
    pub(super) fn create(&mut self, path: &Path) -> io::Result<FileId> {
        let place = self.place(path)?;
        if self.visible.contains_key(&place) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let file = FileId(self.next());
        self.change([Edit { place, before: None, after: Some(Node::File(file)) }].into());
        Ok(file)
    }

    /// The file that the path names.
    pub(super) fn file(&self, path: &Path) -> io::Result<FileId> {
        self.file_at(&self.place(path)?)
    }

    /// Renames a file; the one that had the name before is returned.
    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<Option<FileId>> {
        let above = names_of(from)?.starts_with(&names_of(to)?);
        let (from, to) = (self.place(from)?, self.place(to)?);
        let file = match self.visible.get(&from) {
            Some(Node::File(file)) => *file,
            Some(Node::Directory(_)) => return Err(io::ErrorKind::Unsupported.into()),
            None => return Err(io::ErrorKind::NotFound.into()),
        };
        let replaced = match self.visible.get(&to) {
            Some(Node::Directory(_)) if above => return Err(io::ErrorKind::DirectoryNotEmpty.into()),
            Some(Node::Directory(_)) => return Err(io::ErrorKind::IsADirectory.into()),
            Some(Node::File(replaced)) if *replaced == file => return Ok(None),
            Some(Node::File(replaced)) => Some(*replaced),
            None => None,
        };
        let node = Node::File(file);
        self.change(vec![
            Edit { place: from, before: Some(node), after: None },
            Edit { place: to, before: replaced.map(Node::File), after: Some(node) },
        ]);
        Ok(replaced)
    }

    /// Removes a file's name.
    pub(super) fn remove(&mut self, path: &Path) -> io::Result<FileId> {
        let place = self.place(path)?;
        let file = self.file_at(&place)?;
        self.change([Edit { place, before: Some(Node::File(file)), after: None }].into());
        Ok(file)
    }

    /// Creates the missing directories of the path. Each is as unsure as a new file until its parent directory is
    /// synced.
    pub(super) fn create_directory(&mut self, path: &Path) -> io::Result<()> {
        let mut directory = ROOT;
        let mut names = names_of(path)?.into_iter().peekable();
        while let Some(name) = names.next() {
            let place = (directory, name);
            directory = match self.visible.get(&place) {
                Some(Node::Directory(directory)) => *directory,
                Some(Node::File(_)) if names.peek().is_some() => return Err(io::ErrorKind::NotADirectory.into()),
                Some(Node::File(_)) => return Err(io::ErrorKind::AlreadyExists.into()),
                None => {
                    let directory = DirectoryId(self.next());
                    self.change([Edit { place, before: None, after: Some(Node::Directory(directory)) }].into());
                    directory
                }
            };
        }
        Ok(())
    }

    /// Removes the name of an empty directory.
    pub(super) fn remove_directory(&mut self, path: &Path) -> io::Result<()> {
        let place = self.place(path)?;
        let directory = self.directory(&names_of(path)?)?;
        if entries_of(&self.visible, directory).next().is_some() {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        self.change([Edit { place, before: Some(Node::Directory(directory)), after: None }].into());
        Ok(())
    }

    /// The names in a directory.
    pub(super) fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let directory = self.directory(&names_of(path)?)?;
        Ok(entries_of(&self.visible, directory).map(|((_, name), _)| name.to_string()).collect())
    }

    /// Makes a directory's changes durable, and those in other directories that they build on.
    pub(super) fn sync(&mut self, path: &Path) -> io::Result<()> {
        let directory = self.directory(&names_of(path)?)?;
        let mut places: BTreeSet<Place> = BTreeSet::new();
        let mut durable = vec![false; self.changes.len()];
        for (change, durable) in self.changes.iter().zip(&mut durable).rev() {
            *durable = change.directory() == directory && !change.forsaken
                || change.edits.iter().any(|edit| places.contains(&edit.place));
            if *durable {
                places.extend(change.edits.iter().map(|edit| edit.place.clone()));
            }
        }
        self.keep(&durable);
        Ok(())
    }

    /// A sync of the directory failed: its changes stay undecided.
    pub(super) fn fail_sync(&mut self, path: &Path) -> io::Result<()> {
        let directory = self.directory(&names_of(path)?)?;
        for change in self.changes.iter_mut().filter(|change| change.directory() == directory) {
            change.forsaken = true;
        }
        Ok(())
    }

    /// Makes everything durable.
    pub(super) fn settle(&mut self) {
        self.durable.clone_from(&self.visible);
        self.changes.clear();
    }

    /// Some of the undecided changes reach the disk, the others never happened. Entries that can no longer be reached
    /// from the root are forgotten.
    pub(super) fn cut(&mut self, style: CutStyle, random: &mut Random) {
        let kept = style.names(self.changes.len(), random);
        self.keep(&kept);
        self.changes.clear();
        let durable = std::mem::take(&mut self.durable);
        let mut reached = vec![ROOT];
        while let Some(directory) = reached.pop() {
            for (place, node) in entries_of(&durable, directory) {
                self.durable.insert(place.clone(), *node);
                if let Node::Directory(directory) = node {
                    reached.push(*directory);
                }
            }
        }
        self.visible.clone_from(&self.durable);
    }

    /// Whether the file has, had or may get a name on the disk.
    pub(super) fn mention(&self, file: FileId) -> bool {
        let node = Some(Node::File(file));
        self.durable.values().any(|named| Some(*named) == node)
            || self.changes.iter().flat_map(|change| &change.edits).any(|e| e.before == node || e.after == node)
    }

    /// Each file that has a name, with its path.
    pub(super) fn files(&self) -> Vec<(PathBuf, FileId)> {
        let mut files = Vec::new();
        let mut directories = vec![(PathBuf::from("/"), ROOT)];
        while let Some((path, directory)) = directories.pop() {
            for ((_, name), node) in entries_of(&self.visible, directory) {
                match node {
                    Node::File(file) => files.push((path.join(&**name), *file)),
                    Node::Directory(directory) => directories.push((path.join(&**name), *directory)),
                }
            }
        }
        files.sort();
        files
    }

    /// Applies the changes that are marked and possible to the durable names, and forgets those marked.
    fn keep(&mut self, marks: &[bool]) {
        let mut marks = marks.iter();
        let durable = &mut self.durable;
        self.changes.retain(|change| {
            let marked = *marks.next().unwrap_or(&false);
            if marked && change.edits.iter().all(|edit| durable.get(&edit.place).copied() == edit.before) {
                change.apply(durable);
            }
            !marked
        });
    }

    fn change(&mut self, edits: Vec<Edit>) {
        let change = Change { edits, forsaken: false };
        change.apply(&mut self.visible);
        self.changes.push(change);
    }

    fn next(&mut self) -> u64 {
        self.made += 1;
        self.made
    }

    fn file_at(&self, place: &Place) -> io::Result<FileId> {
        match self.visible.get(place) {
            Some(Node::File(file)) => Ok(*file),
            Some(Node::Directory(_)) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn place(&self, path: &Path) -> io::Result<Place> {
        let mut names = names_of(path)?;
        let name = names.pop().ok_or(io::ErrorKind::IsADirectory)?;
        Ok((self.directory(&names)?, name))
    }

    fn directory(&self, names: &[Arc<str>]) -> io::Result<DirectoryId> {
        names.iter().try_fold(ROOT, |directory, name| match self.visible.get(&(directory, name.clone())) {
            Some(Node::Directory(directory)) => Ok(*directory),
            Some(Node::File(_)) => Err(io::ErrorKind::NotADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        })
    }
}

impl Change {
    fn directory(&self) -> DirectoryId {
        self.edits.last().map_or(ROOT, |edit| edit.place.0)
    }

    fn apply(&self, entries: &mut Entries) {
        for edit in &self.edits {
            match edit.after {
                Some(node) => entries.insert(edit.place.clone(), node),
                None => entries.remove(&edit.place),
            };
        }
    }
}

fn entries_of(entries: &Entries, directory: DirectoryId) -> impl Iterator<Item = (&Place, &Node)> {
    entries.range((directory, Arc::from(""))..).take_while(move |((within, _), _)| *within == directory)
}

/// The names along a path. `..` isn't followed: the journal doesn't use it.
fn names_of(path: &Path) -> io::Result<Vec<Arc<str>>> {
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::RootDir | Component::CurDir => {}
            Component::Normal(name) => names.push(name.to_str().ok_or(io::ErrorKind::InvalidInput)?.into()),
            Component::ParentDir | Component::Prefix(_) => return Err(io::ErrorKind::InvalidInput.into()),
        }
    }
    Ok(names)
}
