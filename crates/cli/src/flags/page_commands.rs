//! Commands that pages show: each is one that Forebay accepts.

use clap::error::ErrorKind;
use clap::{Command, CommandFactory};
use testkit::pages::of_users;

use super::Cli;

#[test]
fn pages_show_commands_that_are_accepted() {
    let wrong: Vec<String> = of_users()
        .iter()
        .flat_map(|(path, text)| {
            let wrong = wrong_commands(text, &Cli::command());
            wrong.into_iter().map(move |fault| format!("{path}: {fault}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn wrong_command_of_a_page_is_found() {
    let page = "```sh\nforebay deda list\nsudo -u forebay forebay dead show\nforebay load a --where 'b && c || d' | forebay statsu\n\
                X=$(forebay token new a) forebay token new a --scope ingest --expires soon\n\
                forebay token new NAME --scope SCOPE # forebay nope\nforebay token \\\n  list\npsql -U forebay events; docker build --tag forebay .\nsudo forebay check --data /var/lib/forebay\nzcat a | forebay load - > b\n\
                forebay load a --follow --count && kill $(pidof forebay)\n```\n\
                `forebay dead show`, `forebay dead shwo`, `forebay dead list | show`, `forebay route accept SINK`\n```text\nforebay nope\n```\n";
    let expected = [
        "forebay deda list",
        "forebay dead show",
        "forebay statsu",
        "forebay token new a",
        "forebay token new a --scope ingest --expires soon",
        "forebay load a --follow --count",
        "forebay dead shwo",
    ];
    let found = wrong_commands(page, &Cli::command());
    let commands: Vec<&str> = found.iter().filter_map(|fault| fault.split(':').next()).collect();
    assert_eq!(commands, expected, "{found:#?}");
}

/// Programs that run the command in their arguments.
const RUNNERS: &[&str] = &["sudo", "runuser", "docker", "exec", "env", "time"];

/// The commands that aren't accepted: whole ones in blocks of shell commands, the names in code spans.
fn wrong_commands(page: &str, cli: &Command) -> Vec<String> {
    let (mut wrong, mut block) = (Vec::new(), None);
    for line in page.replace("\\\n", " ").lines() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            block = if block.is_none() { Some(language.trim().to_owned()) } else { None };
        } else if block.as_deref() == Some("sh") {
            wrong.extend(commands(line).iter().filter_map(|words| fault(words, cli, is_wrong)));
        } else if block.is_none() {
            let spans = line.split('`').skip(1).step_by(2).filter(|span| span.starts_with("forebay "));
            wrong.extend(spans.flat_map(commands).filter_map(|words| fault(&words, cli, is_unknown)));
        }
    }
    wrong
}

fn is_unknown(error: ErrorKind) -> bool {
    matches!(error, ErrorKind::InvalidSubcommand | ErrorKind::UnknownArgument)
}

fn is_wrong(error: ErrorKind) -> bool {
    !matches!(error, ErrorKind::DisplayHelp | ErrorKind::DisplayVersion)
}

/// What is wrong with a command, if it is one of Forebay.
fn fault(words: &[String], cli: &Command, is_fault: fn(ErrorKind) -> bool) -> Option<String> {
    let begin = words.iter().position(|word| !word.contains('='))?;
    let is_value_of_flag = |at: usize| words[at - 1].starts_with('-') && words[at - 1] != "--";
    let at = match words[begin].as_str() {
        runner if RUNNERS.contains(&runner) => {
            (begin + 1..words.len()).rfind(|at| words[*at] == "forebay" && !is_value_of_flag(*at))?
        }
        program => Some(begin).filter(|_| program == "forebay" || program.ends_with("/forebay"))?,
    };
    let command = &words[at..];
    let error = cli.clone().try_get_matches_from(command).err().filter(|error| is_fault(error.kind()))?;
    let is_value = matches!(error.kind(), ErrorKind::InvalidValue | ErrorKind::ValueValidation);
    let is_placeholder = |word: &String| word.contains('…') || word.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    if is_value && command.iter().any(is_placeholder) {
        return None;
    }
    let text = error.to_string();
    Some(format!("{}: {}", command.join(" "), text.lines().next().unwrap_or_default()))
}

/// The simple commands of a line of shell, without comments and redirections.
fn commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let (mut word, mut quote, mut is_redirected) = (None::<String>, None, false);
    for letter in line.chars().chain([' ']) {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(letter),
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, ' ' | '|' | ';' | '&' | '(' | ')' | '<' | '>') => {
                if let (Some(word), Some(command)) = (word.take(), commands.last_mut())
                    && !std::mem::take(&mut is_redirected)
                {
                    command.push(word);
                }
                match letter {
                    ' ' => {}
                    '<' | '>' => is_redirected = true,
                    _ => commands.push(Vec::new()),
                }
            }
            (None, _) => word.get_or_insert_default().push(letter),
        }
    }
    commands
}
