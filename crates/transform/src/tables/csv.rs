//! Lines of CSV (RFC 4180): commas between fields, quotes around those that hold commas, quotes or line ends.

use super::InvalidTable;

/// Each record with the line on which it begins, from 1. Empty lines are skipped.
pub(super) fn records(text: &str) -> impl Iterator<Item = Result<(usize, Vec<String>), InvalidTable>> {
    let (mut rest, mut line) = (text.strip_prefix('\u{feff}').unwrap_or(text), 1);
    std::iter::from_fn(move || {
        while let Some(behind) = rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix('\n')) {
            (rest, line) = (behind, line + 1);
        }
        if rest.is_empty() {
            return None;
        }
        let begun = line;
        let mut fields = Vec::new();
        loop {
            let (field, behind) = match rest.strip_prefix('"') {
                Some(quoted) => match read_quoted(quoted) {
                    Some(read) => read,
                    None => {
                        rest = "";
                        return Some(Err(InvalidTable::Line(begun, "a quote isn't closed, or something follows one")));
                    }
                },
                None => read_plain(rest),
            };
            line += field.matches('\n').count();
            fields.push(field);
            let Some(behind_comma) = behind.strip_prefix(',') else {
                rest = behind;
                return Some(Ok((begun, fields)));
            };
            rest = behind_comma;
        }
    })
}

fn read_plain(text: &str) -> (String, &str) {
    let end = text.find([',', '\n']).unwrap_or(text.len());
    let field = &text[..end];
    let is_last = !text[end..].starts_with(',');
    let trimmed = if is_last { field.strip_suffix('\r').unwrap_or(field) } else { field };
    (trimmed.to_owned(), &text[end..])
}

/// A field whose first quote has been read, and the rest; `None` if its end is invalid.
fn read_quoted(text: &str) -> Option<(String, &str)> {
    let (mut field, mut rest) = (String::new(), text);
    loop {
        let (part, behind) = rest.split_once('"')?;
        field.push_str(part);
        match behind.strip_prefix('"') {
            Some(more) => {
                field.push('"');
                rest = more;
            }
            None => {
                let behind = if behind.starts_with("\r\n") { &behind[1..] } else { behind };
                let is_end = behind.is_empty() || behind.starts_with([',', '\n']);
                return is_end.then_some((field, behind));
            }
        }
    }
}
