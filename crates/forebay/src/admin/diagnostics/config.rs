//! `GET /api/config`: the configuration as it is in its file and in the variables now, with stars instead of secrets; where each setting of the
//! running configuration comes from; and the errors that a reload would report. `GET /api/config/history`: its last changes.

use config::{SettingOrigin, SettingSource, masked};
use hyper::StatusCode;
use serde::Serialize;
use settings::Mistake;
use text::rfc3339;

use crate::admin::response::{AdminResponse, json, stopping};
use crate::configuration_sources::{ConfigurationChange, ConfigurationSources};

/// Bytes of a file that is shown.
const SHOWN_BYTES_MAX: usize = 4 * 1024 * 1024;

#[derive(Serialize)]
struct ConfigJson<'s> {
    /// The path; none if the process runs without a file.
    file: Option<String>,
    text: Option<String>,
    /// Why there is no text.
    error: Option<String>,
    variables: &'s [String],
    settings: Vec<SettingJson>,
    mistakes: Vec<MistakeJson>,
    /// Whether the file differs from the running configuration.
    changed: bool,
    loaded: String,
}

#[derive(Serialize)]
struct SettingJson {
    name: String,
    value: String,
    from: &'static str,
    line: Option<usize>,
}

#[derive(Serialize)]
struct MistakeJson {
    line: Option<usize>,
    column: Option<usize>,
    title: String,
    text: String,
}

#[derive(Serialize)]
struct HistoryJson {
    /// The newest first.
    history: Vec<ConfigurationChange>,
}

/// The configuration.
pub(super) async fn respond(sources: &ConfigurationSources) -> AdminResponse {
    let Some((read, mistakes)) = sources.check().await else { return stopping() };
    let (changed, loaded) = sources.compare(&read);
    let (text, error) = match read {
        Some(Ok(bytes)) if bytes.len() > SHOWN_BYTES_MAX => {
            (None, Some(format!("the file has {} bytes, more than the {SHOWN_BYTES_MAX} that are shown", bytes.len())))
        }
        Some(Ok(bytes)) => (Some(masked(&String::from_utf8_lossy(&bytes))), None),
        Some(Err(error)) => (None, Some(error.to_string())),
        None => (None, None),
    };
    let answer = ConfigJson {
        file: sources.file().map(|path| path.display().to_string()),
        text,
        error,
        variables: sources.variables(),
        settings: sources.settings().into_iter().map(SettingJson::of).collect(),
        mistakes: mistakes.into_iter().map(MistakeJson::of).collect(),
        changed,
        loaded: rfc3339::format(loaded),
    };
    json(StatusCode::OK, &answer)
}

/// The last changes.
pub(super) fn history(sources: &ConfigurationSources) -> AdminResponse {
    json(StatusCode::OK, &HistoryJson { history: sources.history() })
}

impl SettingJson {
    fn of(origin: SettingOrigin) -> Self {
        let SettingOrigin { name, value, source } = origin;
        let (from, line) = match source {
            SettingSource::Default => ("default", None),
            SettingSource::File { line } => ("file", Some(line)),
            SettingSource::Environment => ("environment", None),
            SettingSource::Flag => ("flag", None),
        };
        Self { name, value, from, line }
    }
}

impl MistakeJson {
    fn of(mistake: Mistake) -> Self {
        let Mistake { line, column, title, text } = mistake;
        Self { line, column, title, text }
    }
}
