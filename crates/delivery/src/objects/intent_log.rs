//! The file of a lane that says which objects are in flight to the store.

use std::io;
use std::sync::Arc;

use dead_letters::{Blocked, DeliveryFiles};
use event::Lane;
use eventlog::{Reserve, StateFile, make_directory};

use crate::objects::intent::{ObjectIntent, decode, encode};
use crate::objects::version1;

const DIRECTORY: &str = "objects";

/// A lane's newest intents, in their file.
pub(crate) struct IntentLog {
    file: StateFile,
    reserve: Arc<Reserve>,
    open: Vec<ObjectIntent>,
}

impl IntentLog {
    /// Opens the file of `lane`, and returns which copies of it are damaged.
    pub(crate) fn of(files: &DeliveryFiles, lane: &Lane) -> Result<(Self, Vec<String>), Blocked> {
        let directory = files.data.join(DIRECTORY);
        let name = format!("{}.{:04}", lane.sink, lane.shard);
        let path = directory.join(&name);
        let opened = make_directory(&*files.disk, &directory)
            .and_then(|()| StateFile::open(files.disk.clone(), &directory, &name));
        let (file, state) = opened.map_err(|error| {
            Blocked::Retry(format!(
                "can't read the manifest {}: {error}. Check the disk and permissions of the data directory",
                path.display()
            ))
        })?;
        if state.content.is_none() && !state.damaged.is_empty() {
            return Err(Blocked::Stop(format!(
                "both copies of the manifest {} are damaged, so the last object in the store may be incomplete. \
                 Restore a copy, or check the newest object of this shard and its end position, then remove both",
                path.display()
            )));
        }
        let objects = match state.content {
            None => Ok(Vec::new()),
            Some(text) if version1::is_version1(&text) => version1::decode(&text, lane),
            Some(text) => decode(&text, lane),
        };
        let objects = objects.map_err(|error| {
            Blocked::Stop(format!(
                "this version of Forebay can't read the manifest {}: {error}. Use the version that wrote it",
                path.display()
            ))
        })?;
        let damaged = state.damaged.iter().map(|path| format!("{} is damaged; the other copy is used", path.display()));
        Ok((Self { file, reserve: files.reserve.clone(), open: ObjectIntent::gather(objects) }, damaged.collect()))
    }

    /// What was committed last, if anything ever was.
    pub(crate) fn newest(&self) -> Option<&ObjectIntent> {
        self.open.last()
    }

    /// The name of the object that was committed last.
    pub(crate) fn newest_name(&self) -> Option<String> {
        Some(self.newest()?.objects.last()?.manifest.name.clone())
    }

    /// What was committed last, in its order: everything before the first of it is written.
    pub(crate) fn open(&self) -> &[ObjectIntent] {
        &self.open
    }

    /// Records durably that the objects of these runs are in flight, and those before them written. On a full disk the
    /// reserve makes room: the objects may go to another disk, and segments can be freed only after them.
    pub(crate) fn save(&mut self, open: Vec<ObjectIntent>) -> io::Result<()> {
        let text = encode(&open)?;
        self.reserve.help(|| self.file.write(&text)).map(|()| self.open = open)
    }
}
