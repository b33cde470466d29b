//! `aliases` and `lowercase` of a type: under which other names its events are sent.

use std::collections::BTreeMap;
use std::fmt::Display;

use settings::{Diagnostic, Located, Section, Setting, SettingsReader, SourceSpan, TEXTS};

const KEY: &str = "aliases";
/// Their declaration.
pub(crate) const ALIASES: Setting = Setting::new(
    KEY,
    TEXTS,
    "[other names](types.md#other-names-of-a-type) under which clients send events of the type: at most 64, each of 1 to 256 bytes",
)
.example("[\"Access Logged\"]");
/// Whether case matters.
pub(crate) const LOWERCASE: Setting =
    Setting::flag("lowercase", "`true` ignores the case of the type's name and of its `aliases`");
/// Other names of a type.
const NAMES_MAX: usize = 64;
/// Bytes of a name.
const NAME_BYTES_MAX: usize = 256;
const OTHERS: &str = "*";

/// The other names of each of the types, and whether case doesn't matter in them.
pub(crate) fn read(reader: &mut SettingsReader<'_>, tables: &[Section<'_>]) -> Vec<(Vec<String>, bool)> {
    let mut taken: BTreeMap<String, SourceSpan> = BTreeMap::new();
    tables.iter().map(|section| of_type(reader, section, tables, &mut taken)).collect()
}

fn of_type(
    reader: &mut SettingsReader<'_>,
    section: &Section<'_>,
    tables: &[Section<'_>],
    taken: &mut BTreeMap<String, SourceSpan>,
) -> (Vec<String>, bool) {
    let lowercase = reader.boolean_or_default(section, &LOWERCASE);
    let Some(Located { value: names, span }) = reader.texts(section, KEY) else { return (Vec::new(), lowercase) };
    let path = section.key_path(KEY);
    if section.name() == OTHERS {
        let title = format!("conflict: `{path}` can't be set for `*`");
        let help = "add a separate table for the type, or set lowercase = true";
        reader.push(Diagnostic::new(title, span, "of `*`").help(help.to_owned()));
        return (Vec::new(), lowercase);
    }
    if names.len() > NAMES_MAX {
        let title = format!("invalid value for `{path}`: {} names", names.len());
        reader.push(Diagnostic::new(title, span, format!("a type has at most {NAMES_MAX} other names")));
        return (Vec::new(), lowercase);
    }
    for name in &names {
        check(reader, &path, name, tables);
        let compared = if lowercase { name.value.to_lowercase() } else { name.value.clone() };
        if let Some(first) = taken.insert(compared, name.span.clone()) {
            let title = format!("conflict: `{path}` has the name of another type");
            reader.push(Diagnostic::new(title, name.span.clone(), "here again").also(first, "named here"));
        }
    }
    (names.into_iter().map(|name| name.value).collect(), lowercase)
}

/// A name that a client can send, and that isn't the name of a type.
fn check(reader: &mut SettingsReader<'_>, path: &dyn Display, name: &Located<String>, tables: &[Section<'_>]) {
    let Located { value, span } = name;
    if access::contains_token(value) {
        reader.push(token_diagnostic(path, span.clone()));
    } else if value.is_empty() || value.len() > NAME_BYTES_MAX || value.trim() != value {
        let title = format!("invalid value for `{path}`");
        let label = format!("a name has 1 to {NAME_BYTES_MAX} bytes, without spaces at its ends");
        reader.push(Diagnostic::new(title, span.clone(), label));
    } else if tables.iter().any(|table| table.name() == value) {
        let title = format!("conflict: `{path}` is the name of another type");
        reader.push(Diagnostic::new(
            title,
            span.clone(),
            "this type has its own [types] table: rename the alias, or remove one of them",
        ));
    }
}

/// The error of a type whose name contains a token: the name would be in stores and metrics.
pub(crate) fn token_diagnostic(path: &dyn Display, span: SourceSpan) -> Diagnostic {
    let title = format!("invalid value for `{path}`: a token instead of the name of a type");
    Diagnostic::new(title, span, "a token").help("give the type another name, and revoke the token".to_owned())
}
