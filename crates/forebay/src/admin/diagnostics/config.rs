//! `GET /api/config`: the configuration as it is in its file and in the variables now, with stars instead of secrets.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use cli::Common;
use config::{masked, masked_variables};
use hyper::StatusCode;
use serde::Serialize;
use settings::Environment;

use super::super::response::{AdminResponse, json};

/// The sources of the configuration. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ConfigurationSources(Arc<Sources>);

struct Sources {
    file: Option<PathBuf>,
    /// Each with its masked value.
    variables: Vec<String>,
}

#[derive(Serialize)]
struct ConfigJson<'s> {
    /// The path; none if the process runs without a file.
    file: Option<String>,
    text: Option<String>,
    /// Why there is no text.
    error: Option<String>,
    variables: &'s [String],
}

impl ConfigurationSources {
    /// Those of a process with these flags and variables.
    pub(crate) fn new(common: &Common, environment: &Environment) -> Self {
        Self(Arc::new(Sources { file: common.config.clone(), variables: masked_variables(environment) }))
    }

    /// Reads the file.
    pub(super) async fn respond(&self) -> AdminResponse {
        let Sources { file, variables } = &*self.0;
        let path = file.clone();
        // A file system may hang.
        let read = tokio::task::spawn_blocking(move || path.map(fs::read)).await.ok().flatten();
        let (text, error) = match read {
            Some(Ok(bytes)) => (Some(masked(&String::from_utf8_lossy(&bytes))), None),
            Some(Err(error)) => (None, Some(error.to_string())),
            None => (None, None),
        };
        let file = file.as_ref().map(|path| path.display().to_string());
        json(StatusCode::OK, &ConfigJson { file, text, error, variables })
    }
}
