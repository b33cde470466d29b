//! `schema` of a type: the file is compiled with all that it refers to, and each error is shown at its place.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use schema::{Documents, InvalidSchema, Schema};
use settings::{Diagnostic, Located, Section, SettingsReader, SourceSpan, path};

use crate::event_types::schema_files::{Compiled, SchemaError, SchemaFolder};

const WANTED: &str = "expected the path of a file with a JSON Schema";

/// The schema of a type.
#[derive(Clone, Debug)]
pub struct TypeSchema {
    /// As the configuration names it.
    pub path: PathBuf,
    /// Whether `format` is checked.
    pub formats: bool,
    /// The compiled schema.
    pub compiled: Arc<Schema>,
    /// The documents that it refers to.
    documents: Arc<Documents>,
}

impl PartialEq for TypeSchema {
    fn eq(&self, other: &Self) -> bool {
        (&self.path, self.formats, self.compiled.text(), &self.documents)
            == (&other.path, other.formats, other.compiled.text(), &other.documents)
    }
}

impl Eq for TypeSchema {}

impl fmt::Display for TypeSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let formats = if self.formats { " with formats" } else { "" };
        write!(f, "{}{formats}", self.path.display())
    }
}

/// The schemas of one configuration: types may share one, which is compiled once.
pub(crate) struct Schemas<'f> {
    folder: SchemaFolder<'f>,
    known: HashMap<(OsString, bool), TypeSchema>,
}

impl<'f> Schemas<'f> {
    pub(crate) fn new(folder: &'f Path) -> Self {
        Self { folder: SchemaFolder::new(folder), known: HashMap::new() }
    }
}

/// The schema of a type, if it has one.
pub(crate) fn read(
    reader: &mut SettingsReader<'_>,
    section: &Section<'_>,
    schemas: &mut Schemas<'_>,
) -> Option<TypeSchema> {
    let formats = reader.boolean(section, "schema_formats");
    let errors_before = reader.errors();
    let Some(found) = reader.text(section, "schema", |text| path::parse(text, WANTED)) else {
        if let Some(formats) = formats.filter(|_| reader.errors() == errors_before) {
            let title = format!("unused setting `{}` without `schema`", section.key_path("schema_formats"));
            reader.push(Diagnostic::new(title, formats.span, "the type has no schema"));
        }
        return None;
    };
    let formats = formats.is_some_and(|found| found.value);
    // Paths are compared as texts: comparing them part by part takes ten times as long.
    let key = (found.value.clone().into_os_string(), formats);
    if let Some(known) = schemas.known.get(&key) {
        return Some(known.clone());
    }
    match schemas.folder.compile(&found.value, formats) {
        Ok(Compiled { schema, documents }) => {
            warn_of_slips(reader, &found, &schema, &documents, &schemas.folder.shown(&found.value));
            let (compiled, documents) = (Arc::new(schema), Arc::new(documents));
            let schema = TypeSchema { path: found.value, formats, compiled, documents };
            schemas.known.insert(key, schema.clone());
            Some(schema)
        }
        Err(error) => {
            report(reader, section, &found, error);
            None
        }
    }
}

/// Warns of names that are nearly keywords: the standard allows them.
fn warn_of_slips(
    reader: &mut SettingsReader<'_>,
    found: &Located<PathBuf>,
    schema: &Schema,
    documents: &Documents,
    path: &Path,
) {
    for InvalidSchema { document, span, message, .. } in schema.remarks() {
        let (name, text) = match documents.get(document) {
            Some(text) => (document.clone(), text.as_str()),
            None => (path.display().to_string(), schema.text()),
        };
        let at = SourceSpan { source: reader.source(name, text), range: span.clone() };
        let slip = Diagnostic::warning(message, at, "here").also(found.span.clone(), "the schema is named here");
        reader.push(slip);
    }
}

fn report(reader: &mut SettingsReader<'_>, section: &Section<'_>, found: &Located<PathBuf>, error: SchemaError) {
    let key = section.key_path("schema");
    match error {
        SchemaError::Unreadable { path, why } => {
            let title = format!("invalid value for `{key}`: {why}");
            reader.push(Diagnostic::new(title, found.span.clone(), format!("this is {}", path.display())));
        }
        SchemaError::Wrong { mistakes, texts } => {
            let sources: BTreeMap<&String, _> = texts
                .iter()
                .map(|(name, (path, text))| (name, reader.source(path.display().to_string(), text)))
                .collect();
            for InvalidSchema { document, span, message, .. } in mistakes {
                let title = format!("invalid value for `{key}`: {message}");
                let mistake = match sources.get(&document) {
                    Some(source) => Diagnostic::new(title, SourceSpan { source: *source, range: span }, "here")
                        .also(found.span.clone(), "the schema is named here"),
                    None => Diagnostic::new(title, found.span.clone(), "in this schema"),
                };
                reader.push(mistake);
            }
        }
    }
}
