//! Follows a file that other programs write: it grows, is truncated, or another file takes its name.
//!
//! A program that writes a log keeps writing to the old file until it notices the rotation. So a file that has lost its name is read until it
//! hasn't grown for a while, and only then the one after it: a load remembers one place in one file.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use super::gaps::Gaps;
use super::input::FileId;
use super::rotation::{self, Successors, unless_missing};
use super::unreadable;

/// How often an unchanged file is checked.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// A file that has lost its name is left when it hasn't grown for so long.
pub(super) const SETTLE: Duration = Duration::from_secs(5);
/// Even a file that still grows is left after so long: its writer never notices the rotation, and the next file is waiting.
const SETTLE_MAX: Duration = Duration::from_mins(1);

/// A file that is followed by its name.
pub(super) struct Follow<'a> {
    path: PathBuf,
    /// The file that is read: only its metadata are used here.
    open: File,
    file: FileId,
    stage: Stage,
    settle: Duration,
    /// The file that was read before.
    left: Option<Left>,
    gaps: Gaps<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    /// The file has the name.
    Named,
    /// It has lost it, and may still be written to.
    Settling { since: Instant, grown_at: Instant, length: u64 },
    /// The rest of it is read, and then the file after it.
    Draining,
}

struct Left {
    file: File,
    read_up_to: u64,
}

/// The result of a check of a file's name after everything was read.
pub(super) enum Change {
    /// Nothing new.
    None,
    /// The file has lost its name and is no longer written to: read it once more.
    Draining,
    /// This file follows it, or the same one was truncated.
    Replaced(File),
}

impl<'a> Follow<'a> {
    /// Follows `path`, of which `open` is read; `lost_name_at` is when that was found to be no longer its name.
    pub(super) fn new(
        path: PathBuf,
        open: File,
        lost_name_at: Option<Instant>,
        settle: Duration,
        gaps: Gaps<'a>,
    ) -> anyhow::Result<Self> {
        let metadata = open.metadata().map_err(unreadable)?;
        let stage = lost_name_at.map_or(Stage::Named, |now| Stage::settling(now, metadata.len()));
        Ok(Self { path, open, file: FileId::of(&metadata), stage, settle, left: None, gaps })
    }

    /// Whether nothing more is written to the file: then its last line needs no line break.
    pub(super) const fn is_draining(&self) -> bool {
        matches!(self.stage, Stage::Draining)
    }

    /// Checks the name; `read_up_to` is how much of the file was read.
    pub(super) fn check(&mut self, read_up_to: u64, now: Instant) -> anyhow::Result<Change> {
        self.check_left_file()?;
        let Some(named) = unless_missing(fs::metadata(&self.path)).map_err(unreadable)? else {
            // Between a rotation's two steps. The old file may still be written to.
            return Ok(Change::None);
        };
        if FileId::of(&named) == self.file {
            self.stage = Stage::Named;
            let is_cut = named.len() < read_up_to;
            return if is_cut { self.restart() } else { Ok(Change::None) };
        }
        match self.stage {
            Stage::Draining => self.next_file(read_up_to, now),
            Stage::Named | Stage::Settling { .. } => {
                let length = self.open.metadata().map_err(unreadable)?.len();
                self.stage = self.stage.after(now, length, self.settle);
                Ok(if self.is_draining() { Change::Draining } else { Change::None })
            }
        }
    }

    /// Waits until another check may be useful.
    pub(super) fn wait(&self) {
        thread::sleep(LOOK_EVERY);
    }

    /// The same file is shorter than the bytes read of it.
    fn restart(&mut self) -> anyhow::Result<Change> {
        let Some(file) = unless_missing(File::open(&self.path)).map_err(unreadable)? else {
            return Ok(Change::None);
        };
        self.open = file.try_clone().map_err(unreadable)?;
        self.file = FileId::of(&file.metadata().map_err(unreadable)?);
        Ok(Change::Replaced(file))
    }

    /// The file is read to its end: continues with the one after it.
    fn next_file(&mut self, read_up_to: u64, now: Instant) -> anyhow::Result<Change> {
        // Opened before others are searched for: should it lose the name now, it is still the last of them.
        let Some(named) = unless_missing(File::open(&self.path)).map_err(unreadable)? else {
            return Ok(Change::None);
        };
        let named_id = FileId::of(&named.metadata().map_err(unreadable)?);
        let old = self.open.metadata().map_err(unreadable)?;
        let Successors { next, unread } = rotation::successors(&self.path, &old, named_id).map_err(unreadable)?;
        let (file, id, stage) = match next {
            None => (named, named_id, Stage::Named),
            Some((path, id)) => {
                let file = unless_missing(File::open(path)).map_err(unreadable)?;
                let Some(file) = file else { return Ok(Change::None) };
                let metadata = file.metadata().map_err(unreadable)?;
                if FileId::of(&metadata) != id {
                    // It was renamed in between: the next check finds it.
                    return Ok(Change::None);
                }
                (file, id, Stage::settling(now, metadata.len()))
            }
        };
        for path in unread {
            self.gaps.report(&format!(
                "{} was never read: it had the name {} for a short time, between two other files. Its lines are missing: load it separately",
                path.display(),
                self.path.display()
            ));
        }
        let open = file.try_clone().map_err(unreadable)?;
        self.left = Some(Left { file: std::mem::replace(&mut self.open, open), read_up_to });
        (self.file, self.stage) = (id, stage);
        Ok(Change::Replaced(file))
    }

    /// Reports a file that was written to after it was left.
    fn check_left_file(&mut self) -> anyhow::Result<()> {
        let Some(left) = &self.left else { return Ok(()) };
        let metadata = left.file.metadata().map_err(unreadable)?;
        let missed = metadata.len().saturating_sub(left.read_up_to);
        if missed > 0 {
            self.gaps.report(&format!(
                "the file that had the name {} before was written to after its end was loaded: its lines from byte {} on are missing. Its \
                 writer must open the new file within {} seconds of a rotation",
                self.path.display(),
                left.read_up_to,
                self.settle.as_secs()
            ));
        }
        // Of one that was removed the space would never be freed.
        if missed > 0 || metadata.nlink() == 0 {
            self.left = None;
        }
        Ok(())
    }
}

impl Stage {
    const fn settling(now: Instant, length: u64) -> Self {
        Self::Settling { since: now, grown_at: now, length }
    }

    /// The files after this one that have lost its name.
    fn after(self, now: Instant, length: u64, settle: Duration) -> Self {
        let Self::Settling { since, grown_at, length: before } = self else { return Self::settling(now, length) };
        let grown_at = if length == before { grown_at } else { now };
        let is_over = now.saturating_duration_since(grown_at) >= settle;
        if is_over || now.saturating_duration_since(since) >= SETTLE_MAX {
            return Self::Draining;
        }
        Self::Settling { since, grown_at, length }
    }
}

#[cfg(test)]
mod tests;
