//! A name with a condition, as `{ to = "search", when = "status >= 500" }`: what routes and rules of types are made of.

use std::fmt::Display;
use std::str::FromStr;

use expression::InvalidExpression;
use toml::de::DeTable;

use super::reader::Reader;
use super::report::{Mistake, Spot};
use super::section::Found;
use super::suggest::nearest;

const WHEN: &str = "when";

/// What one kind of them is called.
pub(super) struct Form {
    /// The key of the name.
    pub(super) key: &'static str,
    /// What the name is of: "sink".
    pub(super) what: &'static str,
    /// One that is right, in full words.
    pub(super) example: &'static str,
}

/// A condition with what was written, for whoever has more to say of it.
pub(super) struct Worded<T> {
    /// The setting.
    pub(super) path: String,
    pub(super) text: Found<String>,
    pub(super) condition: T,
}

/// The name, and its condition if it has one, in the table that stands as `name` at `spot`.
pub(super) fn read<T: FromStr<Err = InvalidExpression>>(
    reader: &mut Reader<'_>,
    form: &Form,
    (name, spot): (&dyn Display, Spot),
    entries: &DeTable<'_>,
) -> Option<(Found<String>, Option<Worded<T>>)> {
    let (mut named, mut when) = (None, None);
    let mistakes_before = reader.mistakes();
    for (key, value) in entries {
        let at = |span| Spot { source: spot.source, span };
        let part: &str = key.get_ref();
        let path = format!("{name}.{part}");
        if part == form.key {
            named = reader.string(&path, at(value.span()), value.get_ref());
        } else if part == WHEN {
            let text = reader.string(&path, at(value.span()), value.get_ref());
            when = text.and_then(|text| condition(reader, path, text));
        } else {
            let help = match nearest(part, [form.key, WHEN].into_iter()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => form.example.to_owned(),
            };
            let title = format!("`{path}` is not a setting");
            reader.push(Mistake::new(title, at(key.span()), "unknown").help(help));
        }
    }
    if named.is_none() && reader.mistakes() == mistakes_before {
        let title = format!("`{name}` names no {}", form.what);
        let label = format!("has no `{}`", form.key);
        reader.push(Mistake::new(title, spot, label).help(form.example.to_owned()));
    }
    Some((named?, when))
}

fn condition<T: FromStr<Err = InvalidExpression>>(
    reader: &mut Reader<'_>,
    path: String,
    text: Found<String>,
) -> Option<Worded<T>> {
    match text.value.parse() {
        Ok(condition) => Some(Worded { path, text, condition }),
        Err(invalid) => {
            let at = reader.within(&text.spot, &text.value, invalid.place());
            reader.push(Mistake::new(format!("`{path}` is no condition"), at, invalid.message()));
            None
        }
    }
}
