//! The file of a lane that says which objects are on their way to the store.

use std::io;
use std::sync::Arc;

use dead_letters::{Blocked, DeliveryFiles};
use event::Lane;
use eventlog::{Reserve, StateFile, make_directory};

use crate::objects::intent::{ObjectIntent, decode, encode};
use crate::objects::version1;

const DIRECTORY: &str = "objects";

/// Where a lane's newest intents stand.
pub(crate) struct IntentLog {
    file: StateFile,
    reserve: Arc<Reserve>,
    open: Vec<ObjectIntent>,
}

impl IntentLog {
    /// Opens the file of `lane`, and says what of it is damaged.
    pub(crate) fn of(files: &DeliveryFiles, lane: &Lane) -> Result<(Self, Vec<String>), Blocked> {
        let directory = files.data.join(DIRECTORY);
        let name = format!("{}.{:04}", lane.sink, lane.shard);
        let path = directory.join(&name);
        let opened = make_directory(&*files.disk, &directory)
            .and_then(|()| StateFile::open(files.disk.clone(), &directory, &name));
        let (file, state) =
            opened.map_err(|error| Blocked::Retry(format!("can't read the manifest {}: {error}", path.display())))?;
        if state.content.is_none() && !state.damaged.is_empty() {
            return Err(Blocked::Stop(format!(
                "both copies of the manifest {} are damaged: nobody knows whether the object that was written last is \
                 in the store as a whole. Restore one of them; or look which position the newest object of this shard in \
                 the store ends with, and remove both",
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
                "the manifest {} is not of a kind that this version reads: {error}. Use the version that wrote it",
                path.display()
            ))
        })?;
        let damaged = state.damaged.iter().map(|path| format!("{} is damaged and was passed over", path.display()));
        Ok((Self { file, reserve: files.reserve.clone(), open: ObjectIntent::gather(objects) }, damaged.collect()))
    }

    /// What was committed last, if there ever was anything.
    pub(crate) fn newest(&self) -> Option<&ObjectIntent> {
        self.open.last()
    }

    /// The name of the object that was committed last.
    pub(crate) fn newest_name(&self) -> Option<String> {
        Some(self.newest()?.objects.last()?.manifest.name.clone())
    }

    /// What was committed last, in its order: what stands before the first of it is written.
    pub(crate) fn open(&self) -> &[ObjectIntent] {
        &self.open
    }

    /// Makes it durable that the objects of these runs are on their way, and those before them written. On a full disk the reserve makes
    /// room: the objects may go elsewhere, and only behind them segments can be freed.
    pub(crate) fn save(&mut self, open: Vec<ObjectIntent>) -> io::Result<()> {
        let text = encode(&open)?;
        self.reserve.help(|| self.file.write(&text)).map(|()| self.open = open)
    }
}
