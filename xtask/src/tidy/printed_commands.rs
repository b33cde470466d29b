//! Commands in messages are rendered by `text::OperatorCommand`: a literal lacks the flags that lead the command to the server.

use super::Finding;
use super::source::Source;

const COMMANDS: [&str; 6] = ["dead", "journal", "reload", "route", "status", "token"];
/// The renderer, the help texts, and answers to clients that are no operators of the server.
const EXCEPT: [&str; 6] = [
    "crates/text/src/operator_command.rs",
    "crates/cli/src/flags/",
    "crates/forebay/src/admin/csrf.rs",
    "crates/gateway/src/ack/response.rs",
    "crates/gateway/src/auth/allowed_hosts.rs",
    "crates/writer/src/auth.rs",
];

/// The rule.
pub(super) fn literal_commands(source: &Source) -> Vec<Finding> {
    if !source.path.starts_with("crates/") || EXCEPT.iter().any(|path| source.path.starts_with(path)) {
        return Vec::new();
    }
    let lines = source.text.lines().take(source.production().lines().count()).enumerate();
    let found = lines.filter(|(_, line)| !line.trim_start().starts_with("//") && has_command(line));
    let message = "write `text::OperatorCommand` into the message: it adds the flags of the server";
    found.map(|(number, _)| source.finding(number + 1, message)).collect()
}

fn has_command(line: &str) -> bool {
    let after = line.match_indices("forebay ").map(|(at, found)| &line[at + found.len()..]);
    let mut commands = after.filter_map(|rest| rest.split(' ').next());
    commands.any(|word| COMMANDS.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literal_commands_are_found() {
        let lines = |path: &str, text: &str| -> Vec<usize> {
            literal_commands(&Source::new(path, text.into())).into_iter().map(|finding| finding.line).collect()
        };
        let text = "// forebay route list\nfn a() { f(\"run forebay route list\") }\nlet x = \"`forebay token`\";\n";
        assert_eq!(lines("crates/delivery/src/a.rs", text), [2]);
        assert!(lines("crates/cli/src/flags/route.rs", text).is_empty());
        let tests = format!("#[cfg(test)]\nmod tests {{\n{text}}}\n");
        assert!(lines("crates/delivery/src/a.rs", &tests).is_empty());
    }
}
