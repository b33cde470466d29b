//! Rules about the signatures of functions.

use super::Finding;
use super::code::is_word;
use super::source::Source;

const QUESTIONS: [&str; 4] = ["is_", "has_", "was_", "can_"];

/// A function as it is declared.
#[derive(Debug, PartialEq, Eq)]
struct Signature<'a> {
    line: usize,
    name: &'a str,
    parameters: &'a str,
    returns: &'a str,
}

/// A function whose name asks a question answers it and changes nothing.
pub(super) fn lying_names(source: &Source) -> Vec<Finding> {
    let asks = |name: &str| QUESTIONS.iter().any(|question| name.starts_with(question));
    let lies = signatures(&source.code).into_iter().filter(|found| asks(found.name)).filter_map(|found| {
        let what = match (changes_self(found.parameters), is_answer(found.returns)) {
            (true, _) => "takes `&mut self`: name it after what it does",
            (false, false) => "returns no bool: name it after what it returns or does",
            (false, true) => return None,
        };
        Some(source.finding(found.line, format!("`{}` {what}", found.name)))
    });
    lies.collect()
}

fn changes_self(parameters: &str) -> bool {
    let Some(rest) = parameters.trim_start().strip_prefix('&') else { return false };
    let rest = rest.trim_start();
    let rest = if rest.starts_with('\'') { rest.split_once(' ').map_or("", |(_, rest)| rest) } else { rest };
    rest.strip_prefix("mut").is_some_and(|rest| rest.trim_start().starts_with("self"))
}

/// Whether a type is `bool`, or something that holds one, such as `Option<bool>` or `impl Future<Output = bool>`.
fn is_answer(returns: &str) -> bool {
    let inner = returns.split_once('<').map(|(_, inner)| inner.split([',', '>']).next().unwrap_or_default().trim());
    returns == "bool" || inner.is_some_and(|inner| inner == "bool" || inner == "Output = bool")
}

/// The functions that code without comments and literals declares.
fn signatures(code: &str) -> Vec<Signature<'_>> {
    let starts = code.match_indices("fn ").filter(|(at, _)| !code[..*at].ends_with(is_word));
    starts
        .filter_map(|(at, keyword)| {
            let rest = &code[at + keyword.len()..];
            let (name, rest) = rest.split_at(rest.find(|character| !is_word(character))?);
            let rest = if rest.starts_with('<') { &rest[length_of_group(rest)..] } else { rest };
            let (parameters, rest) = rest.split_at(length_of_group(rest));
            let parameters = parameters.strip_prefix('(')?.strip_suffix(')')?;
            let end = rest.find(['{', ';']).unwrap_or(rest.len());
            let head =
                rest[..end].split(" where").next().unwrap_or_default().split("\nwhere").next().unwrap_or_default();
            let returns = head.trim().strip_prefix("->").unwrap_or_default().trim();
            Some(Signature { line: code[..at].matches('\n').count() + 1, name, parameters, returns })
        })
        .filter(|found| !found.name.is_empty())
        .collect()
}

/// The bytes of the group in brackets that begins `text`. The `>` of an arrow ends none.
fn length_of_group(text: &str) -> usize {
    let (mut depth, mut before) = (0_usize, ' ');
    for (at, character) in text.char_indices() {
        match character {
            '(' | '[' | '<' => depth += 1,
            '>' if before == '-' => {}
            ')' | ']' | '>' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return at + character.len_utf8();
        }
        before = character;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str) -> usize {
        lying_names(&Source::new("crates/event/src/a.rs", text.to_owned())).len()
    }

    #[test]
    fn question_that_changes_or_returns_no_bool_is_found() {
        for text in [
            "fn is_dead(&mut self) {}",
            "pub(crate) async fn has_stored(&self, id: u8) -> Result<(), String> {}",
            "fn was_rejected<'a>(&'a mut self) -> bool {}",
            "fn can_write<F: Fn(u8) -> bool>(&self, act: F) -> Problem\nwhere\n    F: Clone,\n{}",
            "trait A {\n    fn is_key(&self) -> &str;\n}",
        ] {
            assert_eq!(count(text), 1, "{text}");
        }
    }

    #[test]
    fn question_that_is_answered_is_allowed() {
        for text in [
            "const fn is_dead(&self) -> bool { true }",
            "fn is_dead<F: Fn(u8) -> u8>(act: F, other: &mut u8) -> bool {}",
            "async fn has_table(self) -> io::Result<bool> {}",
            "fn can_write(&self) -> impl Future<Output = bool> {}",
            "fn was_there(&self) -> Option<bool>;",
            "fn issue(&mut self) {}\n// fn is_dead() {}\nlet is_dead: fn() = f;",
        ] {
            assert_eq!(count(text), 0, "{text}");
        }
    }
}
