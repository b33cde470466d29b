//! `forebay dead edit`: replaces a dead letter's payload, from a file or an editor.

use std::env;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{anyhow, bail};

use super::{EXIT_SOME_STAY, order, query, read_event};
use crate::errors::{at, cannot};
use crate::flags::{DeadChoice, DeadEvent};
use crate::input;

/// The dead letters of one event to read: one too many for an editor.
const SHOWN_MAX: u64 = 2;
const OWNER_ONLY: u32 = 0o600;

pub(super) fn run(event: &DeadEvent, payload: Option<&Path>) -> anyhow::Result<u8> {
    let payload = match payload {
        Some(path) => Some(read_payload(path)?),
        None => edited(event)?,
    };
    let Some(payload) = payload else { return Ok(EXIT_SOME_STAY) };
    // The id is in the path.
    let choice = DeadChoice { sink: event.sink.clone(), ..DeadChoice::default() };
    order(&event.at, "PUT", &event.id.to_string(), query(&choice, None, false), &payload)
}

fn read_payload(path: &Path) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input::open(path).and_then(|mut input| input.read_to_end(&mut bytes)).map_err(at(path))?;
    Ok(bytes)
}

/// The payload as edited; `None` if it is unchanged, or there is no such dead letter.
fn edited(event: &DeadEvent) -> anyhow::Result<Option<Vec<u8>>> {
    let found = read_event(event, SHOWN_MAX)?;
    let payload = match found.letters.as_slice() {
        [] => return Ok(None),
        [letter] => letter.payload.as_ref().map_or("", |payload| payload.get()),
        _ => {
            bail!(
                "several sinks hold this event: choose one with --sink, or set the same payload in all with --payload FILE"
            )
        }
    };
    let text = in_editor(payload)?;
    let is_changed = text.trim_ascii() != payload.trim().as_bytes();
    if !is_changed {
        tracing::warn!("the payload is unchanged: nothing was saved");
    }
    Ok(is_changed.then_some(text))
}

/// Opens a text in the user's editor, in a file that no other user may read.
fn in_editor(text: &str) -> anyhow::Result<Vec<u8>> {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty());
    let editor = set("VISUAL").or_else(|| set("EDITOR")).ok_or_else(|| {
        anyhow!("neither VISUAL nor EDITOR names an editor: set one, or give the payload with --payload FILE")
    })?;
    let kept = Kept::write(text)?;
    // As other programs do it: the variable may hold flags too.
    let mut command = Command::new("sh");
    command.arg("-c").arg("eval \"$0 \\\"\\$1\\\"\"").arg(&editor).arg(&kept.0);
    let ended = command.status().map_err(cannot("start the editor"))?;
    if !ended.success() {
        bail!(
            "the editor {} ended with {ended}: nothing was saved. Edit again, or give the payload with --payload \
             FILE",
            editor.display()
        );
    }
    read_payload(&kept.0)
}

/// A file that is removed on drop.
struct Kept(PathBuf);

impl Kept {
    fn write(text: &str) -> anyhow::Result<Self> {
        let path = env::temp_dir().join(format!("forebay-letter-{}.json", std::process::id()));
        let mut options = File::options();
        // Never one that is there already: it may be another's link.
        let opened = options.write(true).create_new(true).mode(OWNER_ONLY).open(&path);
        let mut file = opened.map_err(at(&path))?;
        let kept = Self(path.clone());
        file.write_all(text.as_bytes()).map_err(at(&path))?;
        Ok(kept)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // It may be gone, if the editor or its user took it away.
        let _ = std::fs::remove_file(&self.0);
    }
}
