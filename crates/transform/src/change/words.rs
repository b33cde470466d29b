//! Changes of texts and of lists of texts.

use super::{Changed, check_room, string, unfit};
use json::{parts, text};

/// Lowercase.
pub(super) fn lower(json: &str, out: &mut String) -> Changed {
    if is_plain(json) {
        out.push_str(json);
        out.make_ascii_lowercase();
        return Ok(());
    }
    each(json, out, str::to_lowercase)
}

/// Uppercase.
pub(super) fn upper(json: &str, out: &mut String) -> Changed {
    if is_plain(json) {
        out.push_str(json);
        out.make_ascii_uppercase();
        return Ok(());
    }
    each(json, out, str::to_uppercase)
}

/// Whether it is a string that is written as it is read, of ASCII alone.
fn is_plain(json: &str) -> bool {
    json.starts_with('"') && json.bytes().all(|byte| byte.is_ascii() && byte != b'\\')
}

/// Changes a string, or each string of an array.
pub(super) fn each(json: &str, out: &mut String, change: impl Fn(&str) -> String) -> Changed {
    if !json.starts_with('[') {
        text::write_string(&change(&string(json)?), out);
        return Ok(());
    }
    out.push('[');
    for (number, element) in parts::elements(json).enumerate() {
        out.push_str(if number == 0 { "" } else { "," });
        match text::read_string(element) {
            Some(text) => text::write_string(&change(&text), out),
            None => {
                return Err(format!("an element is {}, but every element should be a string", text::kind(element)));
            }
        }
    }
    out.push(']');
    Ok(())
}

/// An array of the parts between.
pub(super) fn split(json: &str, by: &str, out: &mut String) -> Changed {
    out.push('[');
    let text = string(json)?;
    // An empty text has no parts: `split` after `join` returns the original.
    for (number, part) in text.split(by).take(if text.is_empty() { 0 } else { usize::MAX }).enumerate() {
        out.push_str(if number == 0 { "" } else { "," });
        text::write_string(part, out);
    }
    out.push(']');
    Ok(())
}

/// One string of the elements of an array.
pub(super) fn join(json: &str, by: &str, out: &mut String) -> Changed {
    if !json.starts_with('[') {
        return unfit(json, "an array");
    }
    let mut joined = String::new();
    for (number, element) in parts::elements(json).enumerate() {
        joined.push_str(if number == 0 { "" } else { by });
        match text::scalar(element) {
            Some(text) => joined.push_str(&text),
            None => {
                return Err(format!(
                    "an element is {}, but every element should be a string, a number or a boolean",
                    text::kind(element)
                ));
            }
        }
        check_room(&joined)?;
    }
    text::write_string(&joined, out);
    Ok(())
}

/// Replaces other characters by one.
#[derive(Clone, Debug)]
pub(crate) struct Mask {
    pub(crate) with: char,
    pub(crate) first: usize,
    pub(crate) last: usize,
}

impl Mask {
    /// If a value is so short that nothing between the visible ends is hidden, all of it is.
    pub(super) fn apply(&self, json: &str, out: &mut String) -> Changed {
        let Some(text) = text::scalar(json) else { return unfit(json, "a string, a number or a boolean") };
        let count = text.chars().count();
        let stays = |number: usize| {
            self.first.saturating_add(self.last) < count && (number < self.first || number >= count - self.last)
        };
        let masked: String =
            text.chars().enumerate().map(|(number, is)| if stays(number) { is } else { self.with }).collect();
        text::write_string(&masked, out);
        Ok(())
    }
}

/// Leaves a text or an array no longer than so.
#[derive(Clone, Debug)]
pub(crate) enum Truncate {
    Characters(usize, String),
    Bytes(usize, String),
    Elements(usize),
}

impl Truncate {
    pub(super) fn apply(&self, json: &str, out: &mut String) -> Changed {
        match self {
            Self::Characters(most, end) => {
                let text = string(json)?;
                let at = text.char_indices().nth(*most).map_or(text.len(), |(at, _)| at);
                write_cut(json, &text, at, end, out);
            }
            Self::Bytes(most, end) => {
                let text = string(json)?;
                write_cut(json, &text, text.floor_char_boundary(*most), end, out);
            }
            Self::Elements(_) if !json.starts_with('[') => return unfit(json, "an array"),
            Self::Elements(most) if parts::elements(json).nth(*most).is_none() => out.push_str(json),
            Self::Elements(most) => {
                let kept: Vec<_> = parts::elements(json).take(*most).collect();
                out.push('[');
                out.push_str(&kept.join(","));
                out.push(']');
            }
        }
        Ok(())
    }
}

/// A text that is short enough stays as it is written.
fn write_cut(json: &str, text: &str, at: usize, end: &str, out: &mut String) {
    if at == text.len() {
        out.push_str(json);
    } else {
        text::write_string(&format!("{}{end}", &text[..at]), out);
    }
}
