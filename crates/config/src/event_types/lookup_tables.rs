//! `[tables.X]`: files that steps look values up in.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use limits::TABLE_BYTES_MAX;
use settings::Folder;
use settings::{Diagnostic, InvalidValue, PATH, Section, Setting, SettingsReader, Unset, names};
use transform::{InvalidTable, Tables};

/// The settings of `[tables.X]`.
pub(crate) const SETTINGS: &[Setting] = &[
    Setting::new(
        "path",
        PATH,
        "a file in the folder of the configuration file or below, at most 64 MiB. `.json`: one object; its names are the keys. `.csv`: the \
         first line names the columns",
    )
    .required()
    .example("\"countries.csv\""),
    Setting::text("key", "the column with the keys").or(Unset::Described("the first column")).example("\"code\""),
    Setting::text("value", "the column with the values")
        .or(Unset::Described("an object of all other columns"))
        .example("\"name\""),
];

/// How a table is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Csv,
    Json,
}

/// The tables of one configuration.
#[derive(Debug, Default)]
pub(crate) struct LookupTables {
    pub(crate) tables: Tables,
    /// The content of their files.
    pub(crate) fingerprint: u64,
    /// For what steps remember.
    pub(crate) seed: u64,
}

pub(crate) fn read(reader: &mut SettingsReader<'_>, sections: &[Section<'_>], folder: &Path) -> LookupTables {
    let (mut tables, mut hasher) = (Tables::default(), DefaultHasher::new());
    let folder = Folder::new(folder);
    for section in sections {
        if read_one(reader, section, &folder, &mut tables, &mut hasher).is_none() {
            // Steps may name it: that it isn't there would be a further, false mistake. It is empty, and never asked.
            drop(tables.add_json(section.name(), "{}"));
        }
    }
    // If the system has no randomness Forebay doesn't start at all.
    LookupTables { tables, fingerprint: hasher.finish(), seed: getrandom::u64().unwrap_or_default() }
}

/// Adds a table. `None` after an error, which is reported.
fn read_one(
    reader: &mut SettingsReader<'_>,
    section: &Section<'_>,
    folder: &Folder<'_>,
    tables: &mut Tables,
    hasher: &mut DefaultHasher,
) -> Option<()> {
    reader.check_keys(section, names(SETTINGS));
    let errors_before = reader.errors();
    let path = reader.text(section, "path", path);
    let [key, value] = ["key", "value"].map(|key| reader.text(section, key, |text| Ok(text.to_owned())));
    let Some(path) = path else {
        if reader.errors() == errors_before {
            let title = format!("missing setting `{}`", section.key_path("path"));
            let mistake = Diagnostic::new(title, section.span().clone(), "has no `path`");
            reader.push(mistake.help("name its file, as in path = \"countries.csv\"".to_owned()));
        }
        return None;
    };
    let (path, form, span) = (path.value.0, path.value.1, path.span);
    if let (Form::Json, Some(column)) = (form, key.as_ref().or(value.as_ref())) {
        let title = format!("conflict: `{}` is a JSON file, but columns are set", section.key_path("path"));
        reader.push(Diagnostic::new(title, column.span.clone(), "only tables in CSV have columns"));
        return None;
    }
    let [key, value] = [key, value].map(|found| found.map(|found| found.value));
    let added = folder.read_text(&path, TABLE_BYTES_MAX).and_then(|text| {
        (section.name(), &text, &key, &value).hash(hasher);
        let added = match form {
            Form::Csv => tables.add_csv(section.name(), &text, key.as_deref(), value.as_deref()),
            Form::Json => tables.add_json(section.name(), &text),
        };
        added.map_err(|error: InvalidTable| error.to_string())
    });
    if let Err(why) = &added {
        let title = format!("invalid value for `{}`: {why}", section.key_path("path"));
        reader.push(Diagnostic::new(title, span, format!("this is {}", folder.path().join(path).display())));
    }
    added.ok()
}

fn path(text: &str) -> Result<(PathBuf, Form), InvalidValue> {
    let path = PathBuf::from(text);
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("csv") => Ok((path, Form::Csv)),
        Some("json") => Ok((path, Form::Json)),
        _ => Err(InvalidValue::new("is not a table", "expected the path of a file whose name ends in .csv or .json")),
    }
}
