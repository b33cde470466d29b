//! A wall clock that a script moves: `clock.c` of `xtask/console`, built as a library and preloaded into processes.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::workspace::{root, run};

/// The dynamic linker that preloads libraries of the C compiler. Its path is in the first bytes of each program that it loads.
const LINKER: &[u8] = b"/ld-linux";
const FIRST_BYTES: u64 = 4096;

/// A clock. Any number of processes may have it.
pub(super) struct MovedClock {
    library: PathBuf,
    /// Its only byte is how many hours the clock is ahead.
    file: PathBuf,
}

impl MovedClock {
    /// A clock that isn't moved yet, for processes of a program. Its files are in `folder`.
    pub(super) fn new(program: &Path, folder: &Path) -> Result<Self> {
        require_linker(program)?;
        let (library, file) = (folder.join("clock.so"), folder.join("clock"));
        std::fs::write(&file, [0]).with_context(|| format!("writing {}", file.display()))?;
        let source = root()?.join("xtask").join("console").join("clock.c");
        run(Command::new("cc").args(["-O2", "-shared", "-fPIC", "-o"]).arg(&library).arg(source).arg("-ldl"))?;
        Ok(Self { library, file })
    }

    /// The variables of a process that has this clock.
    pub(super) fn environment(&self) -> [(String, OsString); 2] {
        [("LD_PRELOAD".into(), self.library.clone().into()), ("CLOCK_FILE".into(), self.file.clone().into())]
    }

    /// Moves the clock. The file isn't replaced, since the processes have mapped it.
    pub(super) fn set(&self, hours: u8) -> Result<()> {
        let file = File::options().write(true).open(&self.file);
        let set = file.and_then(|file| file.write_all_at(&[hours], 0));
        set.with_context(|| format!("writing {}", self.file.display()))
    }
}

/// A static program would ignore the library.
fn require_linker(program: &Path) -> Result<()> {
    let mut head = Vec::new();
    let read = File::open(program).and_then(|file| file.take(FIRST_BYTES).read_to_end(&mut head));
    read.with_context(|| format!("reading {}", program.display()))?;
    if !head.windows(LINKER.len()).any(|bytes| bytes == LINKER) {
        bail!(
            "the clock of {} can't be moved: it is a static program. Give a dynamically linked one",
            program.display()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn static_program_is_rejected() {
        require_linker(Path::new("/bin/sh")).unwrap();
        let folder = std::env::temp_dir().join(format!("console-clock-{}", std::process::id()));
        std::fs::write(&folder, b"\x7fELF without an interpreter").unwrap();
        let error = require_linker(&folder).unwrap_err();
        std::fs::remove_file(&folder).unwrap();
        assert!(error.to_string().contains("static program"), "{error}");
    }
}
