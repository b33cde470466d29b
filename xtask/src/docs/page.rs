//! The marks of a page that say which of its blocks run. They are HTML comments, so a reader doesn't see them.

use anyhow::{Result, bail, ensure};

/// Something that a page asks the runner to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Action {
    /// Of the block, or of the mark that needs none.
    pub(super) line: usize,
    pub(super) what: What,
}

/// What to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum What {
    /// The commands of a block, which end with this exit code.
    Run { script: String, exit: i32 },
    /// The commands of a block that run in a separate terminal until the session ends.
    Background { script: String },
    /// Commands that the page doesn't show.
    Setup { script: String },
    /// A block that the reader saves as a file.
    File { path: String, text: String },
    /// What the last commands print.
    Output { text: String, is_json: bool },
    /// An empty folder, a new shell, and free ports.
    Session,
}

/// The actions of a page, in its order.
pub(super) fn actions(page: &str) -> Result<Vec<Action>> {
    let mut lines = (1..).zip(page.lines()).peekable();
    let mut actions: Vec<Action> = Vec::new();
    let mut waiting: Option<(usize, Mark)> = None;
    while let Some((number, line)) = lines.next() {
        if let Some((indent, language)) = fence(line) {
            let mut text = String::new();
            for (_, line) in lines.by_ref().take_while(|(_, line)| line.trim() != "```") {
                text.push_str(line.get(indent..).unwrap_or_default());
                text.push('\n');
            }
            if let Some((_, mark)) = waiting.take() {
                actions.push(Action { line: number, what: mark.of_block(text, language, &actions, number)? });
            }
            continue;
        }
        if let Some((at, _)) = waiting.as_ref().filter(|_| !line.trim().is_empty()) {
            bail!("line {at}: the mark isn't directly before a block of code");
        }
        match line.trim() {
            "" => {}
            "<!-- setup" => {
                let script = lines.by_ref().map(|(_, line)| line).take_while(|line| line.trim() != "-->");
                let script = script.fold(String::new(), |script, line| script + line + "\n");
                actions.push(Action { line: number, what: What::Setup { script } });
            }
            "<!-- session -->" => actions.push(Action { line: number, what: What::Session }),
            line => waiting = mark(line, number)?.map(|mark| (number, mark)),
        }
    }
    match waiting {
        Some((at, _)) => bail!("line {at}: no block of code follows the mark"),
        None => Ok(actions),
    }
}

/// A mark of the block below it.
#[derive(Debug)]
enum Mark {
    Run { exit: i32 },
    Background,
    Output,
    File(String),
}

fn mark(line: &str, number: usize) -> Result<Option<Mark>> {
    let Some(inside) = line.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->")) else { return Ok(None) };
    let (name, value) = inside.split_once(": ").unwrap_or((inside, ""));
    Ok(Some(match (name, value) {
        ("run", "") => Mark::Run { exit: 0 },
        ("run", "in background") => Mark::Background,
        ("run", value) => match value.strip_prefix("exits ").map(str::parse) {
            Some(Ok(exit)) => Mark::Run { exit },
            _ => bail!("line {number}: `{value}` isn't `in background` or `exits CODE`"),
        },
        ("output", "") => Mark::Output,
        ("file", path) if path.starts_with('/') || path.contains("..") => {
            bail!("line {number}: `{path}` isn't in the reader's folder")
        }
        ("file", path) if !path.is_empty() => Mark::File(path.to_owned()),
        _ => return Ok(None),
    }))
}

impl Mark {
    fn of_block(self, text: String, language: &str, before: &[Action], number: usize) -> Result<What> {
        let runs = matches!(self, Self::Run { .. } | Self::Background);
        ensure!(!runs || language == "sh", "line {number}: a block that runs is marked as `sh`");
        Ok(match self {
            Self::Run { exit } => What::Run { script: text, exit },
            Self::Background => What::Background { script: text },
            Self::File(path) => What::File { path, text },
            Self::Output => {
                let last = before.last().map(|action| &action.what);
                let follows = matches!(last, Some(What::Run { .. } | What::Background { .. } | What::Output { .. }));
                ensure!(follows, "line {number}: no block that runs is before this output");
                What::Output { text, is_json: language == "json" }
            }
        })
    }
}

/// The indent and the language of a block's first line.
fn fence(line: &str) -> Option<(usize, &str)> {
    let trimmed = line.trim_start();
    let language = trimmed.strip_prefix("```")?;
    Some((line.len() - trimmed.len(), language.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marked_blocks_are_found() {
        let page = "# A\n```sh\nnot run\n```\n<!-- file: a/b.toml -->\n```toml\n[a]\n```\n<!-- setup\nx=1\ny=2\n-->\n\
                    * item\n  <!-- run: exits 3 -->\n\n  ```sh\n  forebay\n    two\n  ```\n<!-- output -->\n```json\n{}\n```\n\
                    <!-- a comment -->\n<!-- session -->\n<!-- run: in background -->\n```sh\nforebay\n```\n";
        let found = actions(page).unwrap();
        assert_eq!(found.iter().map(|action| action.line).collect::<Vec<_>>(), [6, 9, 16, 21, 25, 27]);
        assert_eq!(
            found.into_iter().map(|action| action.what).collect::<Vec<_>>(),
            [
                What::File { path: "a/b.toml".into(), text: "[a]\n".into() },
                What::Setup { script: "x=1\ny=2\n".into() },
                What::Run { script: "forebay\n  two\n".into(), exit: 3 },
                What::Output { text: "{}\n".into(), is_json: true },
                What::Session,
                What::Background { script: "forebay\n".into() },
            ]
        );
    }

    #[test]
    fn misplaced_mark_is_an_error() {
        for (page, expected) in [
            ("<!-- run -->\ntext\n", "line 1: the mark isn't directly before a block of code"),
            ("a\n<!-- run -->\n", "line 2: no block of code follows the mark"),
            ("<!-- run: exit 3 -->\n```sh\n```\n", "line 1: `exit 3` isn't `in background` or `exits CODE`"),
            ("<!-- run -->\n```text\n```\n", "line 2: a block that runs is marked as `sh`"),
            ("<!-- file: /etc/a -->\n```text\n```\n", "line 1: `/etc/a` isn't in the reader's folder"),
            ("<!-- output -->\n```text\n```\n", "line 2: no block that runs is before this output"),
        ] {
            assert_eq!(actions(page).unwrap_err().to_string(), expected);
        }
    }
}
