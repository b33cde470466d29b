//! Settings that commands need before or without the whole configuration. They are the role, the data directory, the format of the log,
//! the admin address and the file of tokens.
//!
//! A mistake elsewhere in the file, or a secret that this user can't read, doesn't keep a command from them.

use std::path::{Path, PathBuf};

use settings::{Environment, PATH, Section, Setting, SettingsReader, Unset, expand, files, path};
use toml::Table;

use crate::log::{self, LogFormat};
use crate::role::Role;

/// The top-level setting of the data directory. A flag and a variable win over it.
const DATA: &str = "data";
/// The top-level setting of the role. A command and a variable override it.
const ROLE: &str = "role";
/// Both.
pub(crate) const SETTINGS: &[Setting] = &[
    Setting::new(
        DATA,
        PATH,
        "the [data directory](../../concepts/glossary.md#data-directory): [journal](../../concepts/glossary.md#journal), cursors, the \
         embedded store; relative to the folder of the file. Also `--data DIR`",
    )
    .or(Unset::Described("`./forebay-data`; for a writer `./forebay-writer`"))
    .example("\"/var/lib/forebay\"")
    .restart(),
    Setting::choice(ROLE, &["serve", "gateway", "writer"], "the role that `forebay` runs without a command")
        .or(Unset::Text("serve"))
        .restart(),
];
const DATA_WANTED: &str = "expected the path of a data directory";

/// A configuration file, or none.
#[derive(Clone, Debug, Default)]
pub struct ConfigurationFile {
    folder: PathBuf,
    table: Table,
}

impl ConfigurationFile {
    /// Reads the file.
    ///
    /// # Errors
    /// It can't be read, or isn't TOML: the reason.
    pub fn read(path: &Path) -> Result<Self, String> {
        let failed = |error: &dyn std::fmt::Display| format!("cannot use {}: {error}", path.display());
        let bytes = files::read(path).map_err(|error| failed(&error))?;
        let text = std::str::from_utf8(files::content(&bytes)).map_err(|error| failed(&error))?;
        // The line itself may hold a secret: `check` shows it masked.
        let table = text.parse().map_err(|error: toml::de::Error| {
            let line = error.span().map_or(1, |span| text[..span.start.min(text.len())].lines().count().max(1));
            failed(&format!("line {line} is not valid TOML: {}. `forebay check` shows the place", error.message()))
        })?;
        Ok(Self { folder: path.parent().unwrap_or(Path::new("")).to_owned(), table })
    }

    /// The role that it names.
    ///
    /// # Errors
    /// It is no role.
    pub fn role(&self, environment: &Environment) -> Result<Option<Role>, String> {
        let Some(value) = self.table.get(ROLE) else { return Ok(None) };
        let text = filled(ROLE, value, environment)?;
        let wrong = || format!("invalid value for `role`: {text:?}. Set it to serve, gateway or writer");
        Role::of_name(&text).map(Some).ok_or_else(wrong)
    }

    /// The data directory that it names. A relative one starts at the file's folder.
    ///
    /// # Errors
    /// It is not a path.
    pub fn data(&self, environment: &Environment) -> Result<Option<PathBuf>, String> {
        let Some(value) = self.table.get(DATA) else { return Ok(None) };
        let text = filled(DATA, value, environment)?;
        let found = path::parse(&text, DATA_WANTED).map_err(|_| format!("invalid value for `data`: {DATA_WANTED}"))?;
        Ok(Some(self.folder.join(found)))
    }

    /// The file of tokens that a role uses instead of the one in its data directory.
    ///
    /// # Errors
    /// It is not a path.
    pub fn token_file(&self, role: Role, environment: &Environment) -> Result<Option<PathBuf>, String> {
        const KEY: &str = crate::token_file::SETTING;
        let table = role.table();
        let variable = settings::variable_name([table, KEY]);
        if let Some(value) = environment.get(&variable) {
            return value
                .map(|value| Some(value.text.as_ref().into()))
                .map_err(|_| format!("invalid value for `{variable}`"));
        }
        let Some(value) = self.get(table, KEY) else { return Ok(None) };
        filled(KEY, value, environment).map(|text| Some(self.folder.join(text)))
    }

    /// A text in a table, with its variables.
    ///
    /// # Errors
    /// A variable isn't set, or the value isn't a text.
    pub fn text(&self, table: &str, key: &str, environment: &Environment) -> Result<Option<String>, String> {
        self.get(table, key).map(|value| filled(key, value, environment)).transpose()
    }

    /// Whether there is anything at this place.
    pub fn has(&self, table: &str, key: &str) -> bool {
        self.get(table, key).is_some()
    }

    fn get(&self, table: &str, key: &str) -> Option<&toml::Value> {
        self.table.get(table)?.get(key)
    }
}

fn filled(name: &str, value: &toml::Value, environment: &Environment) -> Result<String, String> {
    let text = value.as_str().ok_or_else(|| format!("invalid value for `{name}`: expected a string"))?;
    expand(text, environment)
        .map_err(|_| format!("invalid value for `{name}`: a variable in it is not set or can't be used"))
}

/// The format of the log before the configuration is valid: also from a file that isn't valid TOML throughout.
pub fn log_format(path: Option<&Path>, environment: &Environment) -> Option<LogFormat> {
    if let Some(value) = environment.get("FOREBAY_LOG_FORMAT") {
        return log::format_of(&value.ok()?.text);
    }
    let bytes = files::read(path?).ok()?;
    let text = String::from_utf8_lossy(files::content(&bytes));
    let (document, _) = toml::de::DeTable::parse_recoverable(&text);
    let found = document.get_ref().get("log")?.get_ref().get("format")?;
    log::format_of(&expand(found.as_ref().as_str()?, environment).ok()?)
}

/// Reports mistakes in the top-level settings.
pub(crate) fn check(reader: &mut SettingsReader<'_>, file: &Section<'_>) {
    for (key, wanted) in [(DATA, DATA_WANTED), (ROLE, "expected serve, gateway or writer")] {
        let Some((span, value)) = file.get(key) else { continue };
        let Some(found) = reader.string(&key, span, value) else { continue };
        let is_valid =
            if key == DATA { path::parse(&found.value, wanted).is_ok() } else { Role::of_name(&found.value).is_some() };
        if !is_valid {
            let title = format!("invalid value for `{key}`");
            reader.push(settings::Diagnostic::new(title, found.span, wanted));
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails loudly")]
mod tests {
    use super::*;

    #[test]
    fn error_of_broken_file_shows_line_without_value() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("forebay.toml");
        for text in [
            "[sinks.a]\npassword = TOPS",
            "[sinks.a]\nurl = \"postgres://u:TOPS@h/d\nx = 1",
            "[sinks.a]\nsecret = \"TOPS\"\nsecret = \"TOPS\"",
            "[sinks.a]\nsecret = \"TOPS\\q\"",
            "[sinks.a] password = \"TOPS\"",
        ] {
            std::fs::write(&file, text).unwrap();
            let said = ConfigurationFile::read(&file).unwrap_err();
            assert!(said.contains("is not valid TOML") && said.contains("line ") && !said.contains("TOPS"), "{said}");
        }
    }
}
