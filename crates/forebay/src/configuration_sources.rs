//! The sources of the configuration: its file, the variables and the flags; and the text that is in use.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cli::Common;
use config::{ConfigError, Role, SettingOrigin, masked_variables, setting_origins};
use serde::Serialize;
use settings::{Environment, Mistake, files};
use text::rfc3339;
use tokio::sync::Semaphore;

/// Changes that are kept.
const HISTORY_MAX: usize = 64;
/// Sentences of a change that are kept.
const SENTENCES_MAX: usize = 50;

/// The sources of the configuration. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ConfigurationSources(Arc<Sources>);

struct Sources {
    common: Common,
    environment: Environment,
    /// Each with its masked value.
    variables: Vec<String>,
    running: Mutex<Running>,
    /// One check at a time: it costs CPU.
    checks: Semaphore,
}

/// The configuration in use.
struct Running {
    /// Its file's content; empty without a file.
    bytes: Box<[u8]>,
    /// When it was loaded: microseconds since 1970.
    loaded: i64,
    /// The newest first.
    history: VecDeque<ConfigurationChange>,
}

/// A change of the configuration in use.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ConfigurationChange {
    at: String,
    by: String,
    changes: Vec<String>,
}

/// The content of the file, or why there is none; none without a file.
type FileContent = Option<io::Result<Vec<u8>>>;

impl ConfigurationSources {
    /// Those of a process that has just started with these flags and variables.
    pub(crate) fn new(common: &Common, environment: &Environment) -> Self {
        let variables = masked_variables(environment);
        let running = Running { bytes: Box::default(), loaded: 0, history: VecDeque::new() };
        let (common, environment) = (common.clone(), environment.clone());
        let sources = Self(Arc::new(Sources {
            common,
            environment,
            variables,
            running: Mutex::new(running),
            checks: Semaphore::new(1),
        }));
        sources.show(sources.read(), "start", vec!["started".to_owned()]);
        sources
    }

    /// The configuration with this content of its file is in use.
    pub(crate) fn show(&self, read: FileContent, by: &str, mut changes: Vec<String>) {
        let more = changes.len().saturating_sub(SENTENCES_MAX);
        changes.truncate(SENTENCES_MAX);
        changes.extend((more > 0).then(|| format!("{more} more")));
        let loaded = clock::unix_microseconds();
        let change = ConfigurationChange { at: rfc3339::format(loaded), by: by.to_owned(), changes };
        let mut running = self.running();
        (running.bytes, running.loaded) = (content(&read).into(), loaded);
        running.history.truncate(HISTORY_MAX - 1);
        running.history.push_front(change);
    }

    /// Reads the file. Blocks.
    pub(crate) fn read(&self) -> FileContent {
        self.file().map(files::read)
    }

    /// The file's content, and the errors that a reload would find now. `None` if the process ends.
    pub(crate) async fn check(&self) -> Option<(FileContent, Vec<Mistake>)> {
        let _permit = self.0.checks.acquire().await.ok()?;
        let sources = self.clone();
        // A file system may hang.
        tokio::task::spawn_blocking(move || (sources.read(), sources.mistakes())).await.ok()
    }

    fn mistakes(&self) -> Vec<Mistake> {
        let Sources { common, environment, .. } = &*self.0;
        let loaded = match common.role() {
            Some(Role::Writer) => common.load_writer(environment).map(drop),
            _ => common.load(environment).map(drop),
        };
        match loaded {
            Ok(()) => Vec::new(),
            Err(ConfigError::Invalid(report)) => report.mistakes(),
            Err(error) => {
                let title = "the configuration can't be read".to_owned();
                vec![Mistake { line: None, column: None, title, text: error.to_string() }]
            }
        }
    }

    /// Whether this content differs from the configuration in use, and when that was loaded.
    pub(crate) fn compare(&self, read: &FileContent) -> (bool, i64) {
        let running = self.running();
        (content(read) != &*running.bytes, running.loaded)
    }

    /// The settings of the configuration in use.
    pub(crate) fn settings(&self) -> Vec<SettingOrigin> {
        setting_origins(&self.running().bytes, &self.0.environment, &self.0.common.flags())
    }

    pub(crate) fn history(&self) -> Vec<ConfigurationChange> {
        self.running().history.iter().cloned().collect()
    }

    pub(crate) fn file(&self) -> Option<&Path> {
        self.0.common.config.as_deref()
    }

    pub(crate) fn variables(&self) -> &[String] {
        &self.0.variables
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.0.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn content(read: &FileContent) -> &[u8] {
    match read {
        Some(Ok(bytes)) => bytes,
        Some(Err(_)) | None => b"",
    }
}
