//! A name with a condition, as `{ to = "search", when = "status >= 500" }`, for routes and rules of types.

use std::fmt::Display;
use std::str::FromStr;

use expression::InvalidExpression;
use settings::{Diagnostic, Located, SettingsReader, SourceSpan, nearest};
use toml::de::DeTable;

const WHEN: &str = "when";

/// The words for one kind of them.
pub(crate) struct Form {
    /// The key of the name.
    pub(crate) key: &'static str,
    /// The word for the name's object: "sink".
    pub(crate) what: &'static str,
    /// One that is right, in full words.
    pub(crate) example: &'static str,
}

/// A condition and its text, for further diagnostics.
pub(crate) struct Worded<T> {
    /// The setting.
    pub(crate) path: String,
    pub(crate) text: Located<String>,
    pub(crate) condition: T,
}

/// The name, and its condition if it has one, in the table `name` at `span`.
pub(crate) fn read<T: FromStr<Err = InvalidExpression>>(
    reader: &mut SettingsReader<'_>,
    form: &Form,
    (name, span): (&dyn Display, SourceSpan),
    entries: &DeTable<'_>,
) -> Option<(Located<String>, Option<Worded<T>>)> {
    let (mut named, mut when) = (None, None);
    let errors_before = reader.errors();
    for (key, value) in entries {
        let at = |range| SourceSpan { source: span.source, range };
        let part: &str = key.get_ref();
        let path = format!("{name}.{part}");
        if part == form.key {
            named = reader.string(&path, at(value.span()), value.get_ref());
        } else if part == WHEN {
            let text = reader.string(&path, at(value.span()), value.get_ref());
            when = text.and_then(|text| condition(reader, path, text));
        } else {
            let help = match nearest(part, [form.key, WHEN]) {
                Some(near) => format!("did you mean `{near}`?"),
                None => form.example.to_owned(),
            };
            let title = format!("unknown setting `{path}`");
            reader.push(Diagnostic::new(title, at(key.span()), "unknown").help(help));
        }
    }
    if named.is_none() && reader.errors() == errors_before {
        let title = format!("invalid value for `{name}`: it names no {}", form.what);
        let label = format!("has no `{}`", form.key);
        reader.push(Diagnostic::new(title, span, label).help(form.example.to_owned()));
    }
    Some((named?, when))
}

fn condition<T: FromStr<Err = InvalidExpression>>(
    reader: &mut SettingsReader<'_>,
    path: String,
    text: Located<String>,
) -> Option<Worded<T>> {
    match text.value.parse() {
        Ok(condition) => Some(Worded { path, text, condition }),
        Err(invalid) => {
            let at = reader.within(&text.span, &text.value, invalid.place());
            reader.push(Diagnostic::new(format!("invalid value for `{path}`"), at, invalid.message()));
            None
        }
    }
}
