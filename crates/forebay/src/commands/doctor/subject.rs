//! What is examined: the parts of a role's configuration that checks read.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::thread;

use config::port::tls_files::TlsFiles;
use config::token_file::TokenFile;
use config::{Configuration, Role, SinkConfig, SinkName, SinkSettings, WriterConfiguration};
use settings::Environment;

use crate::configuration_report::shown;
use crate::memory_plan::{Plan, WriterPlan};
use cli::Examined;

/// The parts of a configuration.
pub(crate) struct Subject {
    pub(super) role: Role,
    pub(super) data: PathBuf,
    pub(super) sinks: Vec<(String, SinkConfig)>,
    pub(super) tokens: TokenFile,
    /// The tables of ports with TLS, and their certificates.
    pub(super) certificates: Vec<(&'static str, PathBuf)>,
    /// The setting `keep_free`. `None` for a role without a journal.
    pub(super) keep_free: Option<Option<u64>>,
    /// Threads that accept events.
    pub(super) shards: usize,
    /// Connections on the intake port, if the configuration says how many.
    pub(super) connections: Option<usize>,
    /// Why the memory may not suffice.
    pub(super) memory_warning: Option<String>,
    /// How a limit of memory is divided, if it lowers a budget.
    pub(super) memory_summary: Option<String>,
}

impl Subject {
    /// Reads the configuration of the role. `None` after its errors were shown.
    pub(crate) fn load(flags: &Examined, role: Role, environment: &Environment) -> Option<Self> {
        let common = flags.common(role);
        common.warn_of_overlooked();
        let data = common.directory();
        if role == Role::Writer {
            return shown(common.load_writer(environment)).map(|configuration| Self::of_writer(&configuration, data));
        }
        shown(common.load(environment)).map(|configuration| Self::of_server(&configuration, role, data))
    }

    fn of_server(configuration: &Configuration, role: Role, data: &Path) -> Self {
        let Configuration { gateway, admin, journal, .. } = configuration;
        let shards = gateway.shards_for(thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)).get().into();
        let plan = Plan::of(configuration, shards);
        let certificate = |table, tls: &Option<TlsFiles>| Some((table, tls.as_ref()?.certificate.clone()));
        let certificates = [certificate("gateway.tls", &gateway.tls), certificate("admin.tls", &admin.tls)];
        Self {
            role,
            data: data.to_owned(),
            sinks: configuration.sinks.iter().map(named).collect(),
            tokens: gateway.tokens.clone(),
            certificates: certificates.into_iter().flatten().collect(),
            keep_free: Some(journal.keep_free),
            shards,
            connections: gateway.max_connections.map(NonZeroUsize::get),
            memory_warning: plan.warning(),
            memory_summary: plan.summary(),
        }
    }

    fn of_writer(configuration: &WriterConfiguration, data: &Path) -> Self {
        let plan = WriterPlan::of(configuration);
        let certificate = configuration.tls.as_ref().map(|tls| ("writer.tls", tls.certificate.clone()));
        Self {
            role: Role::Writer,
            data: data.to_owned(),
            sinks: configuration.sinks.iter().map(named).collect(),
            tokens: configuration.tokens.clone(),
            certificates: certificate.into_iter().collect(),
            keep_free: None,
            shards: 0,
            connections: None,
            memory_warning: plan.warning(),
            memory_summary: plan.summary(),
        }
    }
}

fn named((name, settings): (&SinkName, &SinkSettings)) -> (String, SinkConfig) {
    (name.to_string(), settings.store.clone())
}
