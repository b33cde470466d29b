//! A shell in an empty folder, with a separate network and process tree. So a page has the real default ports, and all that it starts ends with it.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::machine::Machine;
use crate::workspace::{empty_directory, root};

/// The longest time of one block.
const LIMIT: Duration = Duration::from_secs(120);
/// The longest time until a program in the background has printed what the page shows.
const START_LIMIT: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(20);
/// A terminal prints it before and after the exit code of each block.
const END: char = '\u{1e}';

/// Defines what the shell needs.
const PRELUDE: &str = include_str!("session.sh");

/// A running shell.
pub(super) struct Session {
    shell: Child,
    commands: ChildStdin,
    /// The folder that a reader would be in.
    folder: PathBuf,
    /// Scripts and terminals.
    own: PathBuf,
    blocks: usize,
    /// The length of the screen's log that earlier blocks printed.
    seen: usize,
}

impl Session {
    /// Starts a shell in a new folder. The `PATH` has the server.
    pub(super) fn start(folder: &Path, binary: &Path) -> Result<Self> {
        let programs = folder.join("bin");
        empty_directory(&programs)?;
        std::os::unix::fs::symlink(binary, programs.join("forebay")).context("putting the server into the PATH")?;
        let mut command = Command::new("unshare");
        if !rustix::process::geteuid().is_root() {
            command.arg("--map-root-user");
        }
        command.args(["--net", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", "--noprofile", "--norc"]);
        command.env_clear().env("PATH", path_with(&programs)?).env("REPOSITORY", root()?);
        Self::begin(command, folder, folder)
            .context("starting a shell with its own network, which needs root or user namespaces")
    }

    /// Starts a shell in a machine. `folder` is on this machine what `inside` is in the machine.
    pub(super) fn start_in(machine: &Machine, folder: &Path, inside: &Path) -> Result<Self> {
        let mut command = machine.command("env");
        command.args(["--ignore-environment", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]);
        command.args(["DEBIAN_FRONTEND=noninteractive", "bash", "--noprofile", "--norc"]);
        Self::begin(command, folder, inside).context("starting a shell in the machine")
    }

    /// Runs `command`, a shell, which sees `folder` as `inside`.
    fn begin(mut command: Command, folder: &Path, inside: &Path) -> Result<Self> {
        let [work, own, home] = ["work", "own", "home"].map(|name| folder.join(name));
        [&work, &own, &home].into_iter().try_for_each(fs::create_dir_all)?;
        let errors = fs::File::create(own.join("shell.log")).context("creating the log of the shell")?;
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(errors);
        let mut shell = command.spawn().context("starting `bash`")?;
        let commands = shell.stdin.take().context("the shell reads commands")?;
        let mut session = Self { shell, commands, folder: work, own, blocks: 0, seen: 0 };
        let inside = inside.display();
        session.order(&format!(
            "export LC_ALL=C.UTF-8 TZ=UTC TERM=xterm HOME={inside}/home\nOWN={inside}/own\ncd {inside}/work\n{PRELUDE}"
        ))?;
        session.finish(0)?;
        Ok(session)
    }

    /// Saves a file in the reader's folder.
    pub(super) fn save(&self, path: &str, text: &str) -> Result<()> {
        let path = self.folder.join(path);
        crate::workspace::create_folder_of(&path)?;
        fs::write(&path, text).with_context(|| format!("writing {}", path.display()))
    }

    /// Runs commands, and returns what they print. Fails if they end with another exit code.
    pub(super) fn run(&mut self, script: &str, exit: i32) -> Result<String> {
        let name = self.write_script(script)?;
        let sourced = format!(". \"$OWN/{name}.sh\" > \"$SCREEN\" 2>&1 < /dev/null");
        // Any failed command ends the shell, unless the page expects it.
        let or_code = if exit == 0 { "" } else { "|| code=$?" };
        self.order(&format!("code=0; {sourced} {or_code}\nended $code\n"))?;
        self.finish(exit)
    }

    /// Starts commands in a new terminal, and returns when they listen on a port, or have ended. Returns the terminal's name.
    pub(super) fn start_in_background(&mut self, script: &str) -> Result<String> {
        let name = self.write_script(script)?;
        self.order(&format!("background {name}\nended 0\n"))?;
        self.finish(0)?;
        Ok(name)
    }

    /// What a terminal in the background shows, when it is as expected or the time is over.
    pub(super) fn wait_for(&self, terminal: &str, is_expected: impl Fn(&str) -> bool) -> String {
        let begun = Instant::now();
        loop {
            let shown = self.log(terminal);
            if is_expected(&shown) || begun.elapsed() > START_LIMIT {
                return shown;
            }
            thread::sleep(POLL);
        }
    }

    fn write_script(&mut self, script: &str) -> Result<String> {
        self.blocks += 1;
        let name = format!("block-{}", self.blocks);
        fs::write(self.own.join(format!("{name}.sh")), script).context("writing the commands of a block")?;
        Ok(name)
    }

    fn order(&mut self, commands: &str) -> Result<()> {
        // A shell that has ended is noticed by its exit code.
        let _ = self.commands.write_all(commands.as_bytes());
        self.commands.flush().context("giving the shell commands")
    }

    /// Waits for the end of a block. Returns what the screen shows of it.
    fn finish(&mut self, exit: i32) -> Result<String> {
        let begun = Instant::now();
        loop {
            let log = self.log("screen");
            let new = log.get(self.seen..).unwrap_or_default();
            let mut parts = new.splitn(3, END);
            if let (Some(printed), Some(code), Some(_)) = (parts.next(), parts.next(), parts.next()) {
                ensure!(
                    code == exit.to_string(),
                    "the exit code is {code}, not {exit}; the commands printed:\n{printed}"
                );
                self.seen += printed.len() + code.len() + 2 * END.len_utf8();
                return Ok(printed.to_owned());
            }
            if let Some(status) = self.shell.try_wait().context("asking for the shell's exit code")? {
                let own = fs::read_to_string(self.own.join("shell.log")).unwrap_or_default();
                bail!("the shell has ended ({status}): {}", own.trim());
            }
            ensure!(begun.elapsed() < LIMIT, "the commands still run after {LIMIT:?}; they printed:\n{new}");
            thread::sleep(POLL);
        }
    }

    /// What a terminal shows, without the first line of `script`.
    fn log(&self, terminal: &str) -> String {
        let log = fs::read(self.own.join(format!("{terminal}.log"))).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        log.split_once('\n').map(|(_, shown)| without_styles(shown).replace('\r', "")).unwrap_or_default()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // `--kill-child` ends the shell, and with it everything in its namespace.
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

/// The text without bold and colours, which a page can't show: `ESC [ … m`.
fn without_styles(shown: &str) -> String {
    let mut parts = shown.split("\x1b[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once('m').map_or(part, |(_, rest)| rest))
}

fn path_with(programs: &Path) -> Result<std::ffi::OsString> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(programs.to_owned()).chain(std::env::split_paths(&path));
    std::env::join_paths(folders).context("making the PATH")
}
