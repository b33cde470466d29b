//! Schemas as files: a schema may refer to files in the folder of the configuration, and to no others.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use limits::{SCHEMA_BYTES_MAX, SCHEMA_DOCUMENTS_MAX};
use schema::{Documents, InvalidSchema, Schema, SchemaOptions};
use schema_tools::misspelt_keyword;
use serde::Deserialize;
use settings::Folder;
use text::percent;

/// The folder of the files.
#[derive(Debug)]
pub struct SchemaFolder<'f> {
    folder: Folder<'f>,
    /// Documents that earlier schemas have referred to by their paths alone: later ones mostly refer to the same.
    common: RefCell<Documents>,
}

/// A schema, and the documents that it refers to by the names that it gives them.
#[derive(Debug)]
pub struct Compiled {
    /// The schema.
    pub schema: Schema,
    /// The documents.
    pub documents: Documents,
}

/// Why there is none.
#[derive(Debug)]
pub enum SchemaError {
    /// The file can't be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why it can't be read.
        why: String,
    },
    /// The schema has errors.
    Wrong {
        /// The errors.
        mistakes: Vec<InvalidSchema>,
        /// The paths and texts of the documents that have errors, by the documents' names.
        texts: BTreeMap<String, (PathBuf, String)>,
    },
}

/// The name that a schema gives itself.
#[derive(Default, Deserialize)]
struct Head {
    #[serde(rename = "$id")]
    id: Option<String>,
    #[serde(rename = "id")]
    old_id: Option<String>,
}

impl<'f> SchemaFolder<'f> {
    /// The folder at a path.
    #[must_use]
    pub fn new(folder: &'f Path) -> Self {
        Self { folder: Folder::new(folder), common: RefCell::new(Documents::new()) }
    }

    /// A file of the folder as messages name it.
    pub fn shown(&self, path: &Path) -> PathBuf {
        self.folder.path().join(path)
    }

    /// Compiles the schema in a file, and reads the documents that it refers to.
    ///
    /// # Errors
    /// It can't be read, or is wrong.
    pub fn compile(&self, path: &Path, formats: bool) -> Result<Compiled, SchemaError> {
        let unreadable = |why| SchemaError::Unreadable { path: self.shown(path), why };
        let text = self.read(path).map_err(unreadable)?;
        let name = path.to_string_lossy().into_owned();
        let mut named = Named { own: named_by_itself(&text, path).into_iter().collect() };
        if named.own.is_empty()
            && let Some(compiled) = self.with_common(&name, &text, formats)
        {
            return Ok(compiled);
        }
        let mut documents = Documents::new();
        let mut texts = BTreeMap::from([(name.clone(), (self.shown(path), text.clone()))]);
        loop {
            let options = SchemaOptions { documents: &documents, formats };
            let mut mistakes = match Schema::compile_with_remarks(&name, &text, &options, misspelt_keyword) {
                Ok(schema) => {
                    if named.own.is_empty() {
                        self.common.borrow_mut().extend(documents.clone());
                    }
                    return Ok(Compiled { schema, documents });
                }
                Err(mistakes) => mistakes,
            };
            let known = documents.len();
            for mistake in &mut mistakes {
                let Some(uri) = mistake.missing.clone().filter(|uri| !documents.contains_key(uri)) else { continue };
                if documents.len() >= SCHEMA_DOCUMENTS_MAX {
                    mistake.message = format!("the schema refers to more than {SCHEMA_DOCUMENTS_MAX} documents");
                    continue;
                }
                let found = named.path(&uri).and_then(|path| Ok((self.read(&path)?, path)));
                match found {
                    Ok((text, path)) => {
                        named.own.extend(named_by_itself(&text, &path));
                        texts.insert(uri.clone(), (self.shown(&path), text.clone()));
                        documents.insert(uri, text);
                    }
                    Err(why) => mistake.message = format!("cannot resolve the reference `{uri}`: {why}"),
                }
            }
            if documents.len() == known {
                return Err(SchemaError::Wrong { mistakes, texts });
            }
        }
    }

    /// Compiles a schema that refers to nothing but what others have referred to.
    fn with_common(&self, name: &str, text: &str, formats: bool) -> Option<Compiled> {
        let common = self.common.borrow();
        let options = SchemaOptions { documents: &common, formats };
        let schema = Schema::compile_with_remarks(name, text, &options, misspelt_keyword).ok()?;
        let referred_to = |name: &str| common.get(name).map(|text| (name.to_owned(), text.clone()));
        let documents = schema.documents().filter_map(referred_to).collect();
        Some(Compiled { schema, documents })
    }

    /// Reads a file of the folder.
    fn read(&self, path: &Path) -> Result<String, String> {
        self.folder.read_text(path, SCHEMA_BYTES_MAX)
    }
}

/// The folders of documents with a name: such a document refers to files relative to its folder.
struct Named {
    own: Vec<(String, PathBuf)>,
}

impl Named {
    /// The file that a name means.
    fn path(&self, uri: &str) -> Result<PathBuf, String> {
        let next_to =
            self.own.iter().find_map(|(folder, path)| Some(path.join(decoded(uri.strip_prefix(folder.as_str())?))));
        if let Some(path) = next_to {
            return Ok(path);
        }
        if uri.contains(':') {
            return Err("it must be a file in the configuration's folder; Forebay downloads no schemas".to_owned());
        }
        Ok(decoded(uri.trim_start_matches('/')))
    }
}

fn decoded(name: &str) -> PathBuf {
    percent::decode(name).unwrap_or_else(|| name.to_owned()).into()
}

/// The folder that a document names, and the place of that name in the document.
fn named_by_itself(text: &str, path: &Path) -> Option<(String, PathBuf)> {
    // Most have no such name, and needn't be read for it.
    if !text.contains("://") && !text.contains('\\') {
        return None;
    }
    let head: Head = serde_json::from_str(text).unwrap_or_default();
    let id = head.id.or(head.old_id)?;
    let folder = &id[..=id.rfind('/')?];
    let is_whole = folder.contains("://");
    is_whole.then(|| (folder.to_owned(), path.parent().unwrap_or(Path::new("")).to_owned()))
}
