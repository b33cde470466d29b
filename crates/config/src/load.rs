//! Reads a configuration's file, and reports errors of the whole file.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use settings::{Diagnostic, Diagnostics, Environment, Section, SettingsReader, SourceId, SourceSpan, files};
use toml::de::DeTable;

use crate::flags::Flags;
use crate::inputs::Inputs;
use crate::masking;
use crate::old_names::OLD_NAMES;
use crate::role_tables::IsOfRole;
use crate::token_file::{Kept, TokenFile, TokenFileError};

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file can't be read.
    #[error("cannot read the configuration file {path}: {source}{}", files::denied(source, path).map_or_else(String::new, |advice| format!("; {advice}")))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The file system's error.
        source: std::io::Error,
    },
    /// The tokens can't be read.
    #[error(transparent)]
    Tokens(#[from] TokenFileError),
    /// The configuration has errors.
    #[error("{0}")]
    Invalid(Diagnostics),
}

/// The same for the configuration that `read` makes.
pub(crate) fn load_by<T>(
    read: impl FnOnce(&Inputs<'_>) -> Result<(T, Diagnostics), Diagnostics>,
    path: Option<&Path>,
    environment: &Environment,
    flags: &Flags,
    data: &Path,
) -> Result<(T, Diagnostics), ConfigError> {
    let unreadable = |path: &Path, source| ConfigError::Unreadable { path: path.to_owned(), source };
    let bytes = path.map(|path| std::fs::read(path).map_err(|error| unreadable(path, error))).transpose()?;
    let name = path.map(|path| path.display().to_string());
    let file = name.as_deref().zip(bytes.as_deref());
    let scopes = TokenFile::within(data).read()?.map(Kept::into_set).unwrap_or_default().scopes();
    let folder = path.and_then(Path::parent).unwrap_or(Path::new(""));
    read(&Inputs { file, folder, environment, flags, data, scopes }).map_err(ConfigError::Invalid)
}

/// Reads the file's tables and the built-in ones with `read_tables`, unless `check` finds that the file is another role's.
pub(crate) fn read_by<T>(
    inputs: &Inputs<'_>,
    built_in_text: &'static str,
    check: impl FnOnce(&mut SettingsReader<'_>, &Section<'_>) -> IsOfRole,
    read_tables: impl FnOnce(&mut SettingsReader<'_>, &Inputs<'_>, &Section<'_>, &Section<'_>) -> T,
) -> Result<(T, Diagnostics), Diagnostics> {
    let (mut report, text, source) = open(inputs)?;
    let (document, errors) = DeTable::parse_recoverable(&text);
    report_syntax(&mut report, source, &errors);
    if !errors.is_empty() {
        // The parser's result for a broken text would only be reported as further, false mistakes.
        return Err(report);
    }
    let built_in_source = report.source("built in", built_in_text);
    let (built_in, _) = DeTable::parse_recoverable(built_in_text);

    let mut reader = SettingsReader::new(inputs.environment, report).with_dotted_names("types");
    let file = Section::root(source, document.get_ref()).with_old_names(OLD_NAMES);
    let built_in = Section::root(built_in_source, built_in.get_ref()).with_old_names(OLD_NAMES);
    if check(&mut reader, &file) == IsOfRole::No {
        // Further mistakes would follow from that one.
        return Err(reader.finish());
    }
    let configuration = read_tables(&mut reader, inputs, &file, &built_in);
    let report = reader.finish();
    if report.errors() == 0 { Ok((configuration, report)) } else { Err(report) }
}

/// The file's text, with the report to which its mistakes go.
fn open<'i>(inputs: &Inputs<'i>) -> Result<(Diagnostics, Cow<'i, str>, SourceId), Diagnostics> {
    let mut report = Diagnostics::new(masking::hidden);
    let (name, bytes) = inputs.file.unwrap_or(("no file", b""));
    let bytes = files::content(bytes);
    let text = String::from_utf8_lossy(bytes);
    let source = report.source(name, &*text);
    if let Err(error) = std::str::from_utf8(bytes) {
        // The valid part is the same in both; the first bad byte has become a replacement character.
        let range = error.valid_up_to()..error.valid_up_to() + char::REPLACEMENT_CHARACTER.len_utf8();
        report.push(Diagnostic::new(
            "invalid configuration file: not UTF-8",
            SourceSpan { source, range },
            "the first invalid byte",
        ));
        return Err(report);
    }
    Ok((report, text, source))
}

fn report_syntax(report: &mut Diagnostics, source: SourceId, errors: &[toml::de::Error]) {
    for error in errors {
        let at = SourceSpan { source, range: error.span().unwrap_or(0..0) };
        report.push(Diagnostic::new("invalid configuration file: not TOML", at, error.message()));
    }
}
