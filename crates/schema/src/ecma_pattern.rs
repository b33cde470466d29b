//! Regular expressions of schemas: in the syntax of ECMAScript, matched in linear time. Patterns that can't be, such as look-around, are
//! rejected when the schema is compiled.

use regex::{Regex, RegexBuilder};

use pattern::find_fault;

/// Kibibytes that a compiled pattern may have, tried from the smallest: the size is the cost of a character at worst.
const PATTERN_KIB: [usize; 5] = [4, 16, 64, 256, 1024];
/// Bytes of text that are read in a step.
const BYTES_PER_STEP: usize = 32;

/// The cost of a search in addition to its bytes.
const STEPS_TO_BEGIN: usize = 4;

/// How a pattern is searched.
#[derive(Clone, Debug)]
enum Engine {
    /// It is a literal at the beginning.
    Prefix(Box<str>),
    Regex(Regex),
}

/// A compiled pattern.
#[derive(Clone, Debug)]
pub struct SchemaPattern {
    /// The pattern as it is written.
    pub text: Box<str>,
    engine: Engine,
    /// The cost of a few bytes at worst.
    steps: usize,
}

impl SchemaPattern {
    /// # Errors
    /// The message, if the text isn't a supported pattern.
    pub(super) fn new(text: &str) -> Result<Self, String> {
        if let Some(prefix) = text.strip_prefix('^').filter(|rest| *rest == regex::escape(rest)) {
            return Ok(Self { text: text.into(), engine: Engine::Prefix(prefix.into()), steps: 1 });
        }
        let translated = translate(text)?;
        let mut failure = None;
        for kib in PATTERN_KIB {
            match RegexBuilder::new(&translated).size_limit(kib * 1024).build() {
                Ok(regex) => return Ok(Self { text: text.into(), engine: Engine::Regex(regex), steps: kib }),
                Err(error) => failure = Some(error),
            }
        }
        Err(match failure {
            Some(regex::Error::CompiledTooBig(_)) => {
                "the regular expression is too large: repeat less, or name fewer characters".to_owned()
            }
            other => {
                // If it was rewritten, the place is one in the original.
                let fault = find_fault(text).or_else(|| find_fault(&translated));
                let fault = fault.or_else(|| other.map(|error| error.to_string())).unwrap_or_default();
                format!("this is not a regular expression: {fault}")
            }
        })
    }

    /// Whether it is found in a text.
    #[must_use]
    pub fn is_in(&self, text: &str) -> bool {
        match &self.engine {
            Engine::Prefix(prefix) => text.starts_with(&**prefix),
            Engine::Regex(regex) => regex.is_match(text),
        }
    }

    /// The maximum cost of searching so many bytes.
    pub(super) fn steps(&self, bytes: usize) -> usize {
        STEPS_TO_BEGIN + bytes / BYTES_PER_STEP * self.steps
    }
}

/// The characters of `\s` in ECMAScript.
const SPACE: &str = r"\t\n\x0B\x0C\r \u{A0}\u{1680}\u{2000}-\u{200A}\u{2028}\u{2029}\u{202F}\u{205F}\u{3000}\u{FEFF}";

/// Translates the pattern for the engine here. Most syntax is the same; the engine's digits, words and spaces include more characters, and
/// its nested brackets mean something else.
fn translate(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len() + 16);
    let (mut characters, mut in_class) = (text.chars().peekable(), false);
    while let Some(character) = characters.next() {
        match character {
            '\\' => escape(&mut characters, in_class, &mut out)?,
            '[' if in_class => out.push_str(r"\["),
            '&' | '~' if in_class => {
                out.push('\\');
                out.push(character);
            }
            '[' => {
                in_class = true;
                out.push('[');
                if characters.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
            }
            ']' if in_class => {
                in_class = false;
                out.push(']');
            }
            '(' => {
                out.push('(');
                if !in_class && characters.peek() == Some(&'?') {
                    group(&mut characters, &mut out)?;
                }
            }
            other => out.push(other),
        }
    }
    Ok(out)
}

type Characters<'t> = std::iter::Peekable<std::str::Chars<'t>>;

fn group(characters: &mut Characters<'_>, out: &mut String) -> Result<(), String> {
    characters.next();
    out.push('?');
    let mut ahead = characters.clone();
    match (ahead.next(), ahead.next()) {
        (Some('=' | '!'), _) => Err(look("lookahead")),
        (Some('<'), Some('=' | '!')) => Err(look("lookbehind")),
        _ => Ok(()),
    }
}

fn look(kind: &str) -> String {
    format!("the regular expression has a {kind}, which has no time bound: use several schemas in `allOf` and `not`")
}

fn escape(characters: &mut Characters<'_>, in_class: bool, out: &mut String) -> Result<(), String> {
    let Some(character) = characters.next() else {
        return Err("the regular expression ends with `\\`: remove it, or double it".to_owned());
    };
    match character {
        'd' => out.push_str("[0-9]"),
        'D' => out.push_str("[^0-9]"),
        'w' => out.push_str("[0-9A-Za-z_]"),
        'W' => out.push_str("[^0-9A-Za-z_]"),
        's' => out.push_str(&format!("[{SPACE}]")),
        'S' => out.push_str(&format!("[^{SPACE}]")),
        'b' if in_class => out.push_str(r"\x08"),
        'b' => out.push_str(r"(?-u:\b)"),
        'B' => out.push_str(r"(?-u:\B)"),
        'c' => match characters.next() {
            Some(control) if control.is_ascii_alphabetic() => {
                out.push_str(&format!("\\x{:02X}", u32::from(control) % 32));
            }
            _ => return Err("`\\c` must be followed by an ASCII letter".to_owned()),
        },
        '0' => out.push_str(r"\x00"),
        '1'..='9' | 'k' => {
            return Err("the regular expression refers back to a group, which has no time bound: remove the reference"
                .to_owned());
        }
        // Half of a surrogate pair isn't a character here: both halves together are one.
        'u' => out.push_str(&unit(characters)?),
        't' | 'n' | 'r' | 'f' | 'v' | 'x' | 'p' | 'P' => {
            out.push('\\');
            out.push(character);
        }
        escaped if escaped.is_ascii_alphanumeric() => {
            return Err(format!("`\\{escaped}` is not an escape in a regular expression: leave out the backslash"));
        }
        other => out.push_str(&regex::escape(other.encode_utf8(&mut [0; 4]))),
    }
    Ok(())
}

/// The digits after `\u`.
fn unit(characters: &mut Characters<'_>) -> Result<String, String> {
    if characters.peek() == Some(&'{') {
        return Ok(r"\u".to_owned());
    }
    let wrong = || "`\\u` must be followed by four hexadecimal digits".to_owned();
    let hex = |characters: &mut Characters<'_>| {
        let digits: String = characters.by_ref().take(4).collect();
        u32::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 4)
    };
    let first = hex(characters).ok_or_else(wrong)?;
    if !(0xd800..0xdc00).contains(&first) {
        return Ok(format!("\\u{{{first:X}}}"));
    }
    let mut ahead = characters.clone();
    let second = if ahead.next() == Some('\\') && ahead.next() == Some('u') { hex(&mut ahead) } else { None };
    let second = second.filter(|second| (0xdc00..0xe000).contains(second)).ok_or_else(wrong)?;
    *characters = ahead;
    Ok(format!("\\u{{{:X}}}", 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_those_of_ecmascript() {
        for (pattern, text, is_in) in [
            ("^a*$", "aaa", true),
            ("^/a", "/ab", true),
            ("^/a", "x/a", false),
            ("^", "", true),
            (r"^\d+$", "1٣", false),
            (r"^\w+$", "é", false),
            (r"^\s$", "\u{a0}", true),
            (r"[[a]", "[", true),
            (r"^[\d\s&&x]+$", "1 &x", true),
            (r"^\/a\-b$", "/a-b", true),
            (r"^\u00e9\uD83D\uDE00$", "é😀", true),
            (r"^\p{Letter}$", "é", true),
            (r"^\cJ$", "\n", true),
            (r"\bb\b", "a b c", true),
            (r"^(?<year>[0-9]{4})$", "2026", true),
        ] {
            assert_eq!(SchemaPattern::new(pattern).unwrap().is_in(text), is_in, "{pattern} on {text:?}");
        }
    }

    #[test]
    fn unbounded_patterns_are_rejected() {
        for (pattern, why) in [
            ("(?=a)", "ahead"),
            ("(?<!a)b", "behind"),
            (r"(a)\1", "back"),
            ("((a{1000}){1000}){1000}", "too large"),
            ("(", "not a regular"),
            (r"\", "ends with"),
            (r"\a", "is not an escape"),
            (r"\u12", "four"),
        ] {
            let refused = SchemaPattern::new(pattern).unwrap_err();
            assert!(refused.contains(why), "{pattern}: {refused}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in r"[\\\[\]()?<=!duwsckp0-9{}A-F^a&~*+é-]{0,24}") {
            let _ = SchemaPattern::new(&text);
        }
    }
}
