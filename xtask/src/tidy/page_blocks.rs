//! What pages show in addition to prose: JSON that can be read, paths of requests that a port has, and commands of `cargo xtask`.

use std::collections::BTreeSet;

#[cfg(test)]
use clap::Command;
use serde_json::Value;

use super::Finding;
use super::source::Source;

/// Files with the paths of all ports.
const PATHS: &[&str] =
    &["crates/admin_api/src/paths.rs", "crates/gateway/src/route.rs", "crates/writer_protocol/src/wire.rs"];
/// The beginnings of paths that are Forebay's.
const OURS: &[&str] = &["/api/", "/ingest/", "/events", "/healthz", "/readyz", "/metrics"];
#[cfg(test)]
const XTASK: &str = "cargo xtask ";

/// Blocks of JSON that are neither a value nor a value a line.
pub(super) fn broken_json(sources: &[Source]) -> Vec<Finding> {
    let is_json = |text: &str| serde_json::from_str::<Value>(text).is_ok();
    let is_good = |text: &str| is_json(text) || text.lines().all(is_json);
    let broken = pages(sources).flat_map(|page| {
        let blocks = blocks(&page.text).into_iter().filter(|block| block.language == "json" && !is_good(&block.text));
        blocks.map(|block| page.finding(block.line, "the block isn't JSON: correct it, or mark it as text"))
    });
    broken.collect()
}

/// Paths in commands and code spans that no port has.
pub(super) fn unknown_paths(sources: &[Source]) -> Vec<Finding> {
    let texts = sources.iter().filter(|source| PATHS.contains(&source.path.as_str())).map(|source| &source.text);
    let known: BTreeSet<&str> = texts.flat_map(|text| text.split('"')).filter(|part| part.starts_with('/')).collect();
    if known.is_empty() {
        return Vec::new();
    }
    let is_known = |path: &str| {
        let is_below = |rest: &str| rest.is_empty() || rest.starts_with(['/', '?']);
        known.iter().any(|known| path.strip_prefix(known.trim_end_matches('/')).is_some_and(is_below))
    };
    let named = pages(sources).flat_map(|page| shown(&page.text).map(move |(line, text)| (page, line, text)));
    let paths = named.flat_map(|(page, line, text)| request_paths(text).map(move |path| (page, line, path)));
    let unknown = paths.filter(|(.., path)| !is_known(path));
    unknown.map(|(page, line, path)| page.finding(line, format!("no port has the path `{path}`"))).collect()
}

/// The paths of requests in a text: after a method, a space or the port of an address.
fn request_paths(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split([' ', '"', '\'', '`', '(', ')', ',']);
    words.filter_map(|word| {
        let path = match word.split_once("://") {
            Some((_, address)) => &address[address.find('/')?..],
            None => word,
        };
        OURS.iter().any(|ours| path.starts_with(ours)).then_some(path)
    })
}

#[cfg(test)]
/// Commands of `cargo xtask` that don't exist, and flags that they don't have.
pub(super) fn unknown_xtask_commands(sources: &[Source], xtask: &Command) -> Vec<Finding> {
    let named = pages(sources).flat_map(|page| shown(&page.text).map(move |(line, text)| (page, line, text)));
    let unknown = named.flat_map(|(page, line, text)| {
        let commands = text.match_indices(XTASK).map(|(at, _)| &text[at + XTASK.len()..]);
        commands.filter_map(|words| unknown_word(words, xtask)).map(move |word| (page, line, word)).collect::<Vec<_>>()
    });
    unknown.map(|(page, line, word)| page.finding(line, format!("`cargo xtask` has no `{word}`"))).collect()
}

#[cfg(test)]
/// The first word of a command that nothing defines.
fn unknown_word(words: &str, xtask: &Command) -> Option<String> {
    let mut command = xtask;
    let mut name = String::new();
    for word in words.split_whitespace().take_while(|word| !["|", ">", "&&", "#", "--", "…"].contains(word)) {
        let has_values = command.get_positionals().next().is_some();
        if let Some(flag) = word.strip_prefix("--") {
            let flag = flag.split('=').next().unwrap_or(flag);
            let is_known = command
                .get_arguments()
                .any(|argument| argument.get_long_and_visible_aliases().is_some_and(|names| names.contains(&flag)));
            if !is_known && !has_values && flag != "help" {
                return Some(format!("{name}--{flag}"));
            }
        } else if let Some(next) = command.find_subcommand(word) {
            command = next;
            name += &format!("{word} ");
        } else if command.has_subcommands() && !word.chars().all(|c| c.is_ascii_uppercase()) {
            return Some(format!("{name}{word}"));
        }
    }
    None
}

fn pages(sources: &[Source]) -> impl Iterator<Item = &Source> {
    sources.iter().filter(|source| source.path.ends_with(".md"))
}

/// A block of code.
struct Block {
    /// Of its first line.
    line: usize,
    language: String,
    text: String,
}

fn blocks(page: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut is_open = false;
    for (number, line) in (1..).zip(page.lines()) {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            is_open = !is_open;
            if is_open {
                blocks.push(Block { line: number, language: language.trim().to_owned(), text: String::new() });
            }
        } else if let Some(block) = blocks.last_mut().filter(|_| is_open) {
            block.text += line;
            block.text.push('\n');
        }
    }
    blocks
}

/// The numbered lines of shell blocks, and the code spans of all other lines.
fn shown(page: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut block: Option<&str> = None;
    (1..).zip(page.lines()).flat_map(move |(number, line)| {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            block = if block.is_none() { Some(language.trim()) } else { None };
            return Vec::new();
        }
        match block {
            Some("sh") => vec![(number, line)],
            Some(_) => Vec::new(),
            None => line.split('`').skip(1).step_by(2).map(|span| (number, span)).collect(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(findings: &[Finding]) -> Vec<usize> {
        findings.iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn block_that_is_no_json_is_found() {
        let page =
            "```json\n{\"a\": 1}\n```\n```json\n{\"a\": 1}\n[2]\n```\n```json\n{\"a\": 1,}\n```\n```text\n{\n```\n";
        assert_eq!(lines(&broken_json(&[Source::new("docs/a.md", page.into())])), [8]);
    }

    #[test]
    fn path_that_no_port_has_is_found() {
        let paths =
            "pub const DEAD: &str = \"/api/dead\";\nlet x = below(\"/ingest/event\");\n\"/events\" \"/objects/\"\n";
        let page = "`GET /api/dead/ID?sink=` `/ingest/event/access` `/var/api/x` `/events?type=a`\n`POST /api/deads`\n\
                    ```sh\ncurl -d '{}' http://127.0.0.1:8080/ingest/evnt\ncurl \"http://127.0.0.1:8080/events/1\"\n```\n`/eventsx`\n";
        let sources = [Source::new(PATHS[0], paths.into()), Source::new("docs/a.md", page.into())];
        assert_eq!(lines(&unknown_paths(&sources)), [2, 4, 7]);
    }

    #[test]
    fn unknown_command_of_xtask_is_found() {
        let xtask = Command::new("xtask").subcommand(Command::new("ci")).subcommand(
            Command::new("campaign").subcommand(Command::new("kills").arg(clap::Arg::new("rounds").long("rounds"))),
        );
        let page = "`cargo xtask ci` `cargo xtask campaign kills --rounds 3`\n`cargo xtask cl`\n```sh\ncargo xtask campaign kils\n\
                    cargo xtask campaign kills --turns 3\ncargo xtask NAME | head\n```\n`cargo xtask campaign`\n";
        let findings = unknown_xtask_commands(&[Source::new("docs/a.md", page.into())], &xtask);
        assert_eq!(lines(&findings), [2, 4, 5]);
        assert_eq!(findings[2].message, "`cargo xtask` has no `campaign kills --turns`");
    }
}
