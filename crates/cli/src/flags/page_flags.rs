//! Flags that pages name: each exists for the command that has it there.

use clap::{Command, CommandFactory};
use testkit::pages::of_users;

use super::Cli;

#[test]
fn pages_name_flags_that_their_commands_have() {
    let wrong: Vec<String> = of_users()
        .iter()
        .flat_map(|(path, text)| {
            unknown_flags(text, &Cli::command()).into_iter().map(move |fault| format!("{path}: {fault}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn unknown_flag_of_a_page_is_found() {
    let page = "```sh\nforebay --data D # --none\nFOREBAY_ROLE=writer sudo forebay health --ready --data D | grep --quiet x\n\
                forebay token new a \\\n  --scop ingest\njournalctl --unit forebay --since today\ndocker run --rm forebay serve --listen A --nope\n```\n\
                `forebay dead list --sink X`, `forebay dead list --sinc X`\n\n| option of `forebay health` | meaning |\n|---|---|\n\
                | `--ready`, `--datta` | `--x` |\n\n`--free`\n```toml\nforebay --toml\n```\n";
    let expected = ["health --data", "token new --scop", "serve --nope", "dead list --sinc", "health --datta"]
        .map(|flag| format!("forebay {flag}"));
    let mut found = unknown_flags(page, &Cli::command());
    found.sort();
    let mut expected = expected.to_vec();
    expected.sort();
    assert_eq!(found, expected);
}

/// Programs that have the name `forebay` as an argument, followed by their flags.
const OTHERS: &[&str] = &[
    "systemctl",
    "journalctl",
    "apt",
    "apt-get",
    "dpkg",
    "adduser",
    "useradd",
    "kubectl",
    "git",
    "cargo",
    "docker-compose",
];

/// Commands of a page with a flag that they don't have: in blocks of shell commands, in code spans, and in tables of their options.
fn unknown_flags(page: &str, cli: &Command) -> Vec<String> {
    let (mut unknown, mut block, mut table) = (Vec::new(), None, None);
    for line in page.replace("\\\n", " ").lines() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            block = if block.is_none() { Some(language.to_owned()) } else { None };
            continue;
        }
        match block.as_deref() {
            Some("sh") => {
                let command = line.split(" #").next().unwrap_or_default();
                command.split(['|', ';', '&', '(']).for_each(|command| check_command(command, cli, &mut unknown));
                continue;
            }
            Some(_) => continue,
            None => {}
        }
        let spans = || line.split('`').skip(1).step_by(2);
        spans().filter(|span| span.starts_with("forebay ")).for_each(|span| check_command(span, cli, &mut unknown));
        if !line.starts_with('|') {
            table = None;
        } else if table.is_none() {
            // The first cell of a table's head names the command.
            table = Some(line.split('|').nth(1).and_then(|cell| cell.strip_prefix(" option of `")).map(str::to_owned));
        } else if let Some(Some(head)) = &table {
            let flags = line.split('|').nth(1).unwrap_or_default().replace(['`', ','], " ");
            check_command(&format!("{} {flags}", head.trim_end_matches(['`', ' '])), cli, &mut unknown);
        }
    }
    unknown
}

fn check_command(text: &str, cli: &Command, unknown: &mut Vec<String>) {
    let words: Vec<&str> = text.split_whitespace().collect();
    if words.iter().any(|word| OTHERS.contains(word)) {
        return;
    }
    // The value of a flag may be a path that ends with the same name.
    let is_program = |at: &usize| {
        words[*at] == "forebay" || words[*at].ends_with("/forebay") && (*at == 0 || !words[*at - 1].starts_with('-'))
    };
    let Some(at) = (0..words.len()).rfind(is_program) else { return };
    let (mut command, mut name) = (cli, "forebay".to_owned());
    for word in words[at + 1..].iter().map(|word| word.trim_matches(['"', '\'', '[', ']', '…'])) {
        if word == "--" {
            return;
        }
        if let Some(flag) = word.strip_prefix("--") {
            let flag = flag.split('=').next().unwrap_or(flag);
            let is_known = command.get_arguments().any(|argument| argument.get_long() == Some(flag));
            if !is_known && !["help", "version"].contains(&flag) && flag.contains(char::is_alphabetic) {
                unknown.push(format!("{name} --{flag}"));
            }
        } else if let Some(next) = command.find_subcommand(word) {
            command = next;
            name = format!("{name} {word}");
        }
    }
}
