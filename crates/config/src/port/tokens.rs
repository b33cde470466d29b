//! The file of tokens: `tokens.json` of the data directory, unless `token_file` names another one.

use access::{Scope, Scopes};
use settings::{Diagnostic, PATH, Section, Setting, SettingsReader, Unset, path};
use text::OperatorCommand;

use crate::inputs::Inputs;
use crate::role::Role;
use crate::token_file::{Kept, SETTING as KEY, TokenFile};

/// The file of tokens of both ports.
pub(crate) const TOKEN_FILE: Setting = Setting::new(
    KEY,
    PATH,
    "the file of tokens for both ports, as [`token new --file`](../../guides/authenticate.md#one-file-for-several-processes) \
     writes it; relative to the configuration file. Several processes may share it. A running server follows it",
)
.or(Unset::Described("`tokens.json` of the data directory"))
.example("\"tokens.json\"")
.restart();

/// Reads the setting, and from the file the scopes of its tokens.
pub(crate) fn read(reader: &mut SettingsReader<'_>, section: &Section<'_>, inputs: &Inputs<'_>) -> (TokenFile, Scopes) {
    let Some(found) = path::read(reader, section, KEY, inputs.folder, "expected the path of a file of tokens") else {
        return (TokenFile::within(inputs.data), inputs.scopes);
    };
    let tokens = TokenFile::at(&found.value);
    let (what, label) = match tokens.read() {
        Ok(Some(kept)) => return (tokens, Kept::into_set(kept).scopes()),
        // Without tokens a port on loopback would be open.
        Ok(None) => ("there is no such file", format!("no {}", found.value.display())),
        Err(error) => ("cannot use the file", error.to_string()),
    };
    let title = format!("invalid value for `{}`: {what}", section.key_path(KEY));
    let scope = if section.name() == Role::Writer.table() { Scope::Deliver } else { Scope::Ingest };
    let file = found.value.to_string_lossy();
    let help = format!("create it with a token: {}", OperatorCommand::TokenNewAt(scope.as_str(), &file));
    reader.push(Diagnostic::new(title, found.span, label).help(help));
    // The file's scopes are unknown: assume all, so no second mistake is reported.
    (tokens, Scope::ALL.into_iter().collect())
}
