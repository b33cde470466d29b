//! The labels of a stream as text: `{job="app", level="info"}`.

use json::text;

/// Writes the labels as a JSON object. `None` if the text is no set of labels.
pub(super) fn write(labels: &str, out: &mut String) -> Option<()> {
    let mut rest = labels.trim_ascii().strip_prefix('{')?.trim_ascii_start();
    out.push('{');
    let mut is_first = true;
    while let Some(after) = begin(rest, is_first) {
        let (name, after) = name(after)?;
        let (value, after) = quoted(after.trim_ascii_start().strip_prefix('=')?.trim_ascii_start())?;
        if !is_first {
            out.push(',');
        }
        text::write_string(&name, out);
        out.push(':');
        text::write_string(&value, out);
        (rest, is_first) = (after.trim_ascii_start(), false);
    }
    let end = rest.strip_prefix(',').unwrap_or(rest).trim_ascii();
    out.push('}');
    (end == "}").then_some(())
}

/// The text from the next label on; `None` after the last.
fn begin(rest: &str, is_first: bool) -> Option<&str> {
    let rest = if is_first { rest } else { rest.strip_prefix(',')?.trim_ascii_start() };
    (!rest.starts_with(['}', ','])).then_some(rest)
}

fn name(text: &str) -> Option<(String, &str)> {
    if text.starts_with(['"', '\'', '`']) {
        return quoted(text);
    }
    let (name, _) = text.split_once('=')?;
    let is_name = |name: &str| !name.is_empty() && !name.contains(['"', ',', '{', '}', '\n']);
    is_name(name.trim_ascii()).then(|| (name.trim_ascii().to_owned(), &text[name.len()..]))
}

/// A string as Go writes it, and the text after it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let quote = text.chars().next().filter(|quote| matches!(quote, '"' | '\'' | '`'))?;
    let mut bytes = Vec::new();
    let mut rest = &text[1..];
    loop {
        let at = rest.find([quote, '\\'])?;
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        rest = &rest[at..];
        if rest.starts_with(quote) {
            // Escapes of bytes may be no UTF-8.
            return Some((String::from_utf8_lossy(&bytes).into_owned(), &rest[1..]));
        }
        rest = &rest[1..];
        if quote == '`' {
            bytes.push(b'\\');
        } else {
            rest = unescape(rest, &mut bytes)?;
        }
    }
}

/// Reads an escape without its backslash, and returns the text after it.
fn unescape<'a>(text: &'a str, out: &mut Vec<u8>) -> Option<&'a str> {
    let letter = text.chars().next()?;
    let rest = &text[letter.len_utf8()..];
    let byte = match letter {
        'a' => 7,
        'b' => 8,
        'f' => 12,
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'v' => 11,
        '\\' | '"' | '\'' => u8::try_from(letter).ok()?,
        'x' => u8::try_from(number(rest, 2, 16)?).ok()?,
        '0'..='7' => u8::try_from(number(text, 3, 8)?).ok()?,
        'u' | 'U' => {
            let digits = if letter == 'u' { 4 } else { 8 };
            let character = char::from_u32(number(rest, digits, 16)?)?;
            out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            return rest.get(digits..);
        }
        _ => return None,
    };
    out.push(byte);
    match letter {
        'x' => rest.get(2..),
        '0'..='7' => rest.get(2..),
        _ => Some(rest),
    }
}

fn number(text: &str, digits: usize, radix: u32) -> Option<u32> {
    let digits = text.get(..digits).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    u32::from_str_radix(digits, radix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(labels: &str) -> Option<String> {
        let mut out = String::new();
        write(labels, &mut out).map(|()| out)
    }

    #[test]
    fn labels_become_objects() {
        for (labels, expected) in [
            ("{}", "{}"),
            (r#"{job="app"}"#, r#"{"job":"app"}"#),
            (r#" { job = "a,b}" , level="x", } "#, r#"{"job":"a,b}","level":"x"}"#),
            (r#"{a="\"\\\n\t\x41\101\u00e9\U0001F600"}"#, r#"{"a":"\"\\\n\tAAé😀"}"#),
            (r#"{a="\xff"}"#, "{\"a\":\"\u{fffd}\"}"),
            (r"{a=`\n`,b='c'}", r#"{"a":"\\n","b":"c"}"#),
            (r#"{"a.b"="c"}"#, r#"{"a.b":"c"}"#),
        ] {
            assert_eq!(written(labels).as_deref(), Some(expected), "{labels}");
        }
    }

    #[test]
    fn invalid_labels_are_rejected() {
        for labels in [
            "",
            "{",
            "}",
            "a=\"b\"",
            "{a}",
            "{a=b}",
            "{a=\"b}",
            "{=\"b\"}",
            "{a=\"b\" c=\"d\"}",
            "{a=\"b\"}x",
            "{a=\"\\q\"}",
            "{a=\"\\ud800\"}",
            "{a=\"\\x4\"}",
            "{a=\"\\x+4\"}",
            "{a=\"\\777\"}",
            "{a=\"\\é\"}",
            "{,a=\"b\"}",
            "{a=\"b\",,}",
        ] {
            assert_eq!(written(labels), None, "{labels}");
        }
    }
}
