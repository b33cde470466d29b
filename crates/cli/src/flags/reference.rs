//! `docs/reference/cli.md`, as the definition of the command line says it.

use clap::{Arg, Command, CommandFactory};
use testkit::generated::generated_block;

use super::Cli;

const NO_FLAGS: &[&str] = &["help", "version"];

#[test]
fn cli_page_matches_the_definition() {
    let mut cli = Cli::command();
    cli.build();
    let mut page = String::new();
    add(&cli, &mut page);
    generated_block("docs/reference/cli.md", "commands", &page);
}

/// Adds a section for the command, and for each of its commands.
fn add(command: &Command, page: &mut String) {
    let name = command.get_bin_name().unwrap_or(command.get_name());
    *page += &format!("## {name}\n\n");
    if let Some(about) = command.get_long_about().or(command.get_about()) {
        // Clap leaves out the full stop of the first sentence.
        let about = about.to_string();
        let (first, rest) = about.split_once("\n\n").unwrap_or((&about, ""));
        *page += &format!("{}.\n\n{rest}", first.trim_end_matches('.'));
        *page += if rest.is_empty() { "" } else { "\n\n" };
    }
    let usage = command.clone().render_usage().to_string();
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let (note, examples) = after.split_once("Example: ").unwrap_or(("", &after));
    if !note.is_empty() {
        *page += &format!("{}\n\n", note.trim_end());
    }
    let usage = usage.trim_start_matches("Usage: ").lines().map(str::trim).collect::<Vec<_>>().join("\n");
    *page += &format!("```text\n{usage}\n```\n\nExample:\n\n```text\n");
    examples.lines().for_each(|line| *page += &format!("{}\n", line.trim_start()));
    *page += "```\n\n";
    let rows: String =
        command.get_arguments().filter(|flag| !NO_FLAGS.contains(&flag.get_id().as_str())).map(row).collect();
    if !rows.is_empty() {
        *page += &format!("| flag | meaning | default | variable |\n|---|---|---|---|\n{rows}\n");
    }
    command.get_subcommands().filter(|command| command.get_name() != "help").for_each(|command| add(command, page));
}

fn row(flag: &Arg) -> String {
    let values = flag.get_value_names().unwrap_or_default().iter().map(|name| format!(" {name}")).collect::<String>();
    let takes_value = flag.get_action().takes_values();
    let name = match flag.get_long() {
        Some(long) => format!("--{long}{}", if takes_value { &values } else { "" }),
        None => values.trim_start().to_owned(),
    };
    let help = flag.get_help().map(ToString::to_string).unwrap_or_default();
    let (help, said_default) = without(&help, "[default: ");
    let (help, said_variable) = without(&help, "[env: ");
    let defaults = flag.get_default_values().iter().filter(|_| takes_value && !flag.is_hide_default_value_set());
    let default =
        defaults.map(|value| value.to_string_lossy().into_owned()).next().or(said_default).unwrap_or_default();
    let variable = flag.get_env().map(|name| name.to_string_lossy().into_owned()).or(said_variable).unwrap_or_default();
    let possible: Vec<String> =
        flag.get_possible_values().iter().map(|value| format!("`{}`", value.get_name())).collect();
    let possible =
        if possible.is_empty() || !takes_value { String::new() } else { format!(": {}", possible.join(", ")) };
    format!("| `{name}` | {}{possible} | {} | {} |\n", cell(&help), code(&default), code(&variable))
}

/// A text without `[NAME: value]`, and the value.
fn without(text: &str, name: &str) -> (String, Option<String>) {
    let Some((before, rest)) = text.split_once(name) else { return (text.to_owned(), None) };
    let (value, after) = rest.split_once(']').unwrap();
    (format!("{}{after}", before.trim_end()), Some(value.to_owned()))
}

/// A text that separates no cells and is no link.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// A value as code, unless it is a sentence.
fn code(value: &str) -> String {
    if value.is_empty() || value.contains(' ') { value.to_owned() } else { format!("`{value}`") }
}

#[test]
fn default_and_variable_leave_the_help() {
    let help = "The address [default: 127.0.0.1:9000] [env: FOREBAY_ADMIN]";
    let (help, default) = without(help, "[default: ");
    let (help, variable) = without(&help, "[env: ");
    let (default, variable) = (default.unwrap(), variable.unwrap());
    assert_eq!([&*help, &*default, &*variable], ["The address", "127.0.0.1:9000", "FOREBAY_ADMIN"]);
}
