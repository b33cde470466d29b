//! A file of tokens: `tokens.json` in the data directory, or another one that a configuration names. It has all tokens,
//! each with the SHA-256 of its secret. A change writes and syncs a new file and renames it: a reader sees the old one
//! or the new one. A process that changes it holds a lock, so no change is lost.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use access::{Scope, Scopes, Token, TokenSet, TypePatterns};
use serde::{Deserialize, Serialize};
use settings::files;
use text::rfc3339;

use crate::owner_file::{self, OWNER_ONLY};

/// The setting that names another file.
pub(crate) const SETTING: &str = "token_file";
const FILE: &str = "tokens.json";
/// The lock of [`FILE`], which is held while it is changed: each change replaces the file itself. Other files of tokens
/// have separate locks.
const LOCK_FILE: &str = "tokens.lock";
const OWNER_ONLY_DIRECTORY: u32 = 0o700;
/// The form of the file that is written and read here.
const VERSION: u32 = 1;

/// Why the file can't be used. Its content is never part of the message: it may be a secret.
#[derive(Debug, thiserror::Error)]
pub enum TokenFileError {
    /// The operating system reported an error.
    #[error("cannot {what} {path}: {source}{}", files::denied(source, path).map_or_else(String::new, |advice| format!("; {advice}")))]
    Io {
        /// The operation.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The file isn't in the format that is written here.
    #[error("{path} is damaged: {reason}. Restore a copy of it, or remove it and create new tokens")]
    Wrong {
        /// The file.
        path: PathBuf,
        /// The error.
        reason: String,
    },
}

#[derive(Serialize, Deserialize)]
struct Document {
    version: u32,
    tokens: Vec<Entry>,
    /// The scopes of all tokens that were ever created. A file of an earlier release has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scopes_made: Option<Vec<String>>,
}

/// The content of the file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// The tokens that there are.
    pub tokens: Vec<Token>,
    /// The scopes of all tokens that were ever created, including revoked ones.
    made: Scopes,
}

impl Kept {
    /// The set of these tokens. It remembers what revoked ones allowed.
    pub fn into_set(self) -> TokenSet {
        TokenSet::new(self.tokens).remembering(self.made)
    }
}

#[derive(Serialize, Deserialize)]
struct Entry {
    name: String,
    sha256: String,
    scopes: Vec<String>,
    source: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    origin: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    partial: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    types: Option<Vec<String>>,
    created: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires: Option<String>,
}

/// A file of tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenFile {
    directory: PathBuf,
    path: PathBuf,
}

impl TokenFile {
    /// The file of this data directory, which may have none.
    pub fn within(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), path: directory.join(FILE) }
    }

    /// The file of this path.
    pub fn at(path: &Path) -> Self {
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Self { directory: directory.to_owned(), path: path.to_owned() }
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its content; `None` if there is no file, because no token was ever created.
    ///
    /// # Errors
    /// [`TokenFileError`]: the file can't be read.
    pub fn read(&self) -> Result<Option<Kept>, TokenFileError> {
        match files::read(&self.path) {
            Ok(bytes) => {
                let wrong = |reason| TokenFileError::Wrong { path: self.path.clone(), reason };
                parse(&bytes).map(Some).map_err(wrong)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed("read", &self.path)(error)),
        }
    }

    /// Changes the tokens; durable when it returns. If `change` or another step fails, the file stays unchanged.
    ///
    /// # Errors
    /// Those of `change`, and [`TokenFileError`].
    pub fn change<E: From<TokenFileError>>(
        &self,
        change: impl FnOnce(&mut Vec<Token>) -> Result<(), E>,
    ) -> Result<(), E> {
        let made = DirBuilder::new().recursive(true).mode(OWNER_ONLY_DIRECTORY).create(&self.directory);
        made.map_err(failed("make the directory", &self.directory))?;
        let _lock = self.lock()?;
        let mut kept = self.read()?.unwrap_or_default();
        change(&mut kept.tokens)?;
        kept.made = kept.made.and(Scopes::of_all(&kept.tokens));
        Ok(self.write(&kept)?)
    }

    /// Waits for other processes that change the file. The lock ends with the process.
    fn lock(&self) -> Result<File, TokenFileError> {
        let is_usual = self.path.file_name().is_some_and(|name| name == FILE);
        let path = if is_usual { self.directory.join(LOCK_FILE) } else { owner_file::next_to(&self.path, "lock") };
        let open = OpenOptions::new().create(true).truncate(false).write(true).mode(OWNER_ONLY).open(&path);
        open.and_then(|file| file.lock().map(|()| file)).map_err(failed("lock", &path))
    }

    fn write(&self, kept: &Kept) -> Result<(), TokenFileError> {
        let tokens = kept.tokens.iter().map(Entry::of).collect();
        let document = Document { version: VERSION, tokens, scopes_made: Some(names(kept.made)) };
        let text = serde_json::to_string_pretty(&document).map_err(io::Error::from);
        let text = text.map_err(failed("write", &self.path))? + "\n";
        owner_file::replace(&self.path, &text).map_err(failed("replace", &self.path))
    }
}

fn failed(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> TokenFileError {
    let path = path.to_owned();
    move |source| TokenFileError::Io { what, path, source }
}

fn parse(bytes: &[u8]) -> Result<Kept, String> {
    // The errors of serde would show the file's content.
    let wrong = |error: serde_json::Error| {
        format!("it has another format than `forebay token` writes, at line {} column {}", error.line(), error.column())
    };
    let document: Document = serde_json::from_slice(bytes).map_err(wrong)?;
    if document.version != VERSION {
        return Err(format!("it has version {}, but this release knows only {VERSION}", document.version));
    }
    let mut tokens: Vec<Token> = Vec::with_capacity(document.tokens.len());
    for (index, entry) in document.tokens.into_iter().enumerate() {
        let number = index + 1;
        let token = entry.token().ok_or_else(|| format!("its token number {number} is invalid"))?;
        if tokens.iter().any(|known| known.name == token.name || known.digest == token.digest) {
            return Err(format!("its token number {number} occurs twice"));
        }
        tokens.push(token);
    }
    let made = match document.scopes_made {
        Some(names) => scopes(&names).ok_or_else(|| "it names an unknown scope".to_owned())?,
        // An earlier release emptied the file. It doesn't say what its tokens allowed: they may have allowed anything.
        None if tokens.is_empty() => Scope::ALL.into_iter().collect(),
        None => Scopes::default(),
    };
    let made = made.and(Scopes::of_all(&tokens));
    Ok(Kept { tokens, made })
}

fn names(scopes: Scopes) -> Vec<String> {
    scopes.iter().map(|scope| scope.to_string()).collect()
}

/// `None` if a name isn't one of a scope.
fn scopes(names: &[String]) -> Option<Scopes> {
    names.iter().map(|name| name.parse::<Scope>().ok()).collect()
}

/// `None` if one isn't a pattern, or there is none: a token without types would have no limit.
fn types(patterns: &[String]) -> Option<Arc<TypePatterns>> {
    let patterns = patterns.iter().map(|pattern| pattern.parse().ok()).collect::<Option<_>>()?;
    TypePatterns::new(patterns).map(Arc::new)
}

impl Entry {
    fn of(token: &Token) -> Self {
        Self {
            name: token.name.to_string(),
            sha256: token.digest.to_string(),
            scopes: names(token.scopes),
            source: token.source.to_string(),
            origin: token.origin.map(|origin| origin.to_string()),
            partial: token.partial.map(|partial| partial.to_string()),
            types: token.types.as_ref().map(|types| types.iter().map(str::to_owned).collect()),
            created: rfc3339::format(token.created),
            expires: token.expires.map(rfc3339::format),
        }
    }

    fn token(&self) -> Option<Token> {
        Some(Token {
            name: self.name.parse().ok()?,
            digest: self.sha256.parse().ok()?,
            scopes: scopes(&self.scopes)?,
            source: self.source.parse().ok()?,
            origin: self.origin.as_deref().map(str::parse).transpose().ok()?,
            partial: self.partial.as_deref().map(str::parse).transpose().ok()?,
            types: match &self.types {
                Some(patterns) => Some(types(patterns)?),
                None => None,
            },
            created: rfc3339::parse(&self.created).ok()?,
            expires: self.expires.as_deref().map(rfc3339::parse).transpose().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use access::{NewToken, PartialStatus, RANDOM_BYTES};
    use event::Origin;
    use std::os::unix::fs::PermissionsExt;

    fn token(number: u8) -> Token {
        let name: access::Name = format!("t{number}").parse().unwrap();
        Token {
            name: name.clone(),
            digest: NewToken::of_random([number; RANDOM_BYTES]).digest(),
            scopes: [Scope::Ingest, Scope::Admin].into_iter().collect(),
            source: name,
            origin: (number > 0).then_some(Origin([number; 16])),
            partial: (number > 0).then_some(PartialStatus::Ok),
            types: if number > 0 { types(&["segment.*".to_owned(), "a".to_owned()]) } else { None },
            created: 1_000_001,
            expires: (number > 0).then_some(2_000_000),
        }
    }

    fn add(file: &TokenFile, number: u8) {
        let add = |tokens: &mut Vec<Token>| {
            tokens.push(token(number));
            Ok::<_, TokenFileError>(())
        };
        file.change(add).unwrap();
    }

    #[test]
    fn written_tokens_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = TokenFile::within(&folder.path().join("a/b"));
        assert!(file.read().unwrap().is_none());
        add(&file, 0);
        // As a crash would leave it.
        fs::write(folder.path().join("a/b/tokens.json.new"), "{").unwrap();
        add(&file, 1);
        assert_eq!(file.read().unwrap().unwrap().tokens, [token(0), token(1)]);
        for name in [FILE, LOCK_FILE] {
            let mode = fs::metadata(folder.path().join("a/b").join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, OWNER_ONLY, "{name}");
        }
    }

    #[test]
    fn file_of_another_name_has_a_separate_lock() {
        let folder = tempfile::tempdir().unwrap();
        let file = TokenFile::at(&folder.path().join("gateways.lock"));
        add(&file, 1);
        assert_eq!(file.read().unwrap().unwrap().tokens, [token(1)]);
        let mut names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["gateways.lock", "gateways.lock.lock"]);
    }

    #[test]
    fn concurrent_changes_are_all_kept() {
        let folder = tempfile::tempdir().unwrap();
        let file = TokenFile::within(folder.path());
        std::thread::scope(|scope| {
            for number in 0..32 {
                let file = &file;
                scope.spawn(move || add(file, number));
            }
        });
        assert_eq!(file.read().unwrap().unwrap().tokens.len(), 32);
    }

    #[test]
    fn a_change_that_fails_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = TokenFile::within(folder.path());
        add(&file, 0);
        let fail = |tokens: &mut Vec<Token>| {
            tokens.clear();
            Err(failed("think of", Path::new("x"))(io::Error::other("no")))
        };
        assert!(file.change(fail).is_err());
        assert_eq!(file.read().unwrap().unwrap().tokens, [token(0)]);
    }

    #[test]
    fn scopes_of_revoked_tokens_are_remembered() {
        let folder = tempfile::tempdir().unwrap();
        let file = TokenFile::within(folder.path());
        add(&file, 0);
        let clear = |tokens: &mut Vec<Token>| {
            tokens.clear();
            Ok::<_, TokenFileError>(())
        };
        file.change(clear).unwrap();
        let made = || file.read().unwrap().unwrap().into_set().made().iter().collect::<Vec<_>>();
        assert_eq!(made(), [Scope::Ingest, Scope::Admin]);
        fs::write(file.path(), "{\"version\": 1, \"tokens\": []}").unwrap();
        assert_eq!(made(), Scope::ALL, "an earlier release has emptied it");
        add(&file, 0);
        assert_eq!(made(), Scope::ALL);
    }

    #[test]
    fn invalid_file_is_rejected_without_showing_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = TokenFile::within(folder.path());
        add(&file, 0);
        let valid = fs::read_to_string(file.path()).unwrap();
        let entry = &valid[valid.find("    {").unwrap()..=valid.rfind("    }").unwrap() + 4];
        for wrong in [
            String::new(),
            valid[..valid.len() / 2].to_owned(),
            valid.replace("\"version\": 1", "\"version\": 2"),
            valid.replace("\"admin\"", "\"secret\""),
            valid.replace("\"t0\"", "\"secret t0\""),
            valid.replace("\"scopes_made\": [", "\"scopes_made\": [\"secret\", "),
            valid.replace("\"version\": 1", "\"version\": \"secret\""),
            valid.replace("1970", "secret"),
            valid.replace("\"created\"", "\"types\": [\"Secret\"], \"created\""),
            valid.replace("\"created\"", "\"types\": [], \"created\""),
            valid.replace(entry, &format!("{entry},\n{entry}")),
        ] {
            assert_ne!(wrong, valid);
            fs::write(file.path(), &wrong).unwrap();
            let error = file.read().unwrap_err().to_string();
            assert!(error.contains("is damaged") && !error.contains("secret"), "{error}");
        }
    }
}
