//! Runs the marked blocks of a page, and compares what they print with what the page shows.
//!
//! `docs/internals/testing.md#runnable-pages` describes the marks.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::expected::is_as_shown;
use super::page::{Action, What, actions};
use super::session::Session;
use crate::machine::Machine;

/// A server on a machine with few file descriptors logs it at its start.
const OF_SMALL_MACHINES: &str = "connections can be open at a time";

/// A reader is slower than a program. In this time, stores get what was posted.
const READING: Duration = Duration::from_millis(400);

/// Runs a page with this server, in sessions below `scratch`. Returns the number of blocks that ran; zero if the page has no marks.
pub(crate) fn run_page(page: &Path, binary: &Path, scratch: &Path) -> Result<usize> {
    run_sessions(page, |number| Session::start(&scratch.join(number.to_string()), binary))
}

/// Runs a page in a machine. Its only session is in `share`, which the machine has at `/mnt`.
pub(crate) fn run_page_in(machine: &Machine, page: &Path, share: &Path) -> Result<usize> {
    run_sessions(page, |_| Session::start_in(machine, share, Path::new("/mnt")))
}

fn run_sessions(page: &Path, start: impl Fn(usize) -> Result<Session>) -> Result<usize> {
    let text = fs::read_to_string(page).with_context(|| format!("reading {}", page.display()))?;
    let actions = actions(&text).with_context(|| page.display().to_string())?;
    let begun = Instant::now();
    let mut blocks = 0;
    for (number, session) in sessions(&actions).enumerate() {
        blocks +=
            start(number).and_then(|shell| run_session(session, shell)).with_context(|| page.display().to_string())?;
    }
    if blocks > 0 {
        println!("{}: {blocks} blocks ran in {:.1} s", page.display(), begun.elapsed().as_secs_f64());
    }
    Ok(blocks)
}

fn sessions(actions: &[Action]) -> impl Iterator<Item = &[Action]> {
    actions.split(|action| action.what == What::Session).filter(|session| !session.is_empty())
}

fn run_session(actions: &[Action], mut session: Session) -> Result<usize> {
    let mut last = Printed::Nothing;
    let mut blocks = 0;
    for Action { line, what } in actions {
        let done = act(&mut session, what, &mut last).with_context(|| format!("line {line}"))?;
        blocks += usize::from(done);
    }
    Ok(blocks)
}

/// Where the output of the last block is.
enum Printed {
    Nothing,
    Text(String),
    Terminal(String),
}

/// Does one thing. Returns whether it was a block with commands.
fn act(session: &mut Session, what: &What, last: &mut Printed) -> Result<bool> {
    match what {
        What::Session => Ok(false),
        What::File { path, text } => session.save(path, text).map(|()| false),
        What::Setup { script } => session.run(script, 0).map(|_| false),
        What::Run { script, exit } => {
            thread::sleep(READING);
            *last = Printed::Text(session.run(script, *exit)?);
            Ok(true)
        }
        What::Background { script } => {
            *last = Printed::Terminal(session.start_in_background(script)?);
            Ok(true)
        }
        What::Output { text, is_json } => {
            let printed = match last {
                Printed::Nothing => bail!("no block that runs is before this output"),
                Printed::Text(printed) => printed.clone(),
                Printed::Terminal(name) => {
                    session.wait_for(name, |shown| is_as_shown(text, &of_any_machine(shown), *is_json))
                }
            };
            let printed = of_any_machine(&printed);
            if !is_as_shown(text, &printed, *is_json) {
                bail!("the page shows:\n{text}\nThe command printed:\n{printed}");
            }
            Ok(false)
        }
    }
}

fn of_any_machine(printed: &str) -> String {
    printed.split_inclusive('\n').filter(|line| !line.contains(OF_SMALL_MACHINES)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::has_program;

    /// Whether sessions can start here.
    fn can_run() -> bool {
        let missing = ["unshare", "script", "ip", "ss"].iter().find(|program| !has_program(program));
        missing.iter().for_each(|program| testkit::skipped::report(&format!("{program} is missing")));
        missing.is_none()
    }

    /// Runs a page with `true` as the server.
    fn run(name: &str, page: &str) -> Result<usize> {
        let folder = std::env::temp_dir().join(format!("forebay-page-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("page.md");
        fs::write(&path, page).unwrap();
        let done = run_page(&path, Path::new("/bin/true"), &folder.join("scratch"));
        fs::remove_dir_all(folder).unwrap();
        done
    }

    #[test]
    fn page_runs_as_shown() {
        if !can_run() {
            return;
        }
        let page = "<!-- file: a.txt -->\n```json\n{\"a\": 1}\n```\n<!-- setup\nx=5\n-->\n<!-- run -->\n```sh\nforebay\n\
                    cat a.txt; echo $x; test -t 1 && pwd\n```\n<!-- output -->\n```text\n{\"a\": 1}\n5\n…/work\n```\n\
                    <!-- run: in background -->\n```sh\nsleep 0.2; echo late\n```\n<!-- output -->\n```text\nlate\n```\n\
                    <!-- run: exits 3 -->\n```sh\n(exit 3)\n```\n<!-- session -->\n<!-- run -->\n```sh\nls\necho \"$x.\"\n```\n\
                    <!-- output -->\n```text\n.\n```\n";
        assert_eq!(run("good", page).unwrap(), 4);
        assert_eq!(run("none", "# A\n```sh\nfalse\n```\n").unwrap(), 0);
    }

    #[test]
    fn planted_mistakes_fail() {
        if !can_run() {
            return;
        }
        for (name, page, expected) in [
            (
                "command",
                "<!-- run -->\n```sh\necho so far\nfalse\necho not this\n```\n",
                "the exit code is 1, not 0; the commands printed:\nso far",
            ),
            ("unknown", "<!-- run -->\n```sh\nforebay-typo\n```\n", "the exit code is 127"),
            (
                "output",
                "<!-- run -->\n```sh\necho one\n```\n<!-- output -->\n```text\ntwo\n```\n",
                "the page shows:\ntwo",
            ),
            ("code", "<!-- run: exits 3 -->\n```sh\n(exit 2)\n```\n", "the exit code is 2, not 3"),
            ("setup", "<!-- setup\nfalse\n-->\n", "line 1"),
        ] {
            let error = format!("{:#}", run(name, page).unwrap_err());
            assert!(error.contains(expected), "{name}: {error}");
            assert!(!error.contains("not this"), "{error}");
        }
    }
}
