//! Configuration: one TOML file, the environment and flags become one typed, checked [`Configuration`], or a
//! [`Diagnostics`] of all that is wrong with them.
//!
//! It is read in two steps. First every setting is looked up and made a value of its own kind; then the values
//! are held against each other. Mistakes are gathered through both, so that one run shows them all.

mod admin;
mod aggregate;
mod conditional;
mod directory;
#[cfg(feature = "elasticsearch")]
mod elasticsearch;
mod etcd;
mod event_time;
mod event_type;
mod gateway;
mod host;
mod journal;
mod log;
mod masked;
mod naming;
#[cfg(feature = "nats")]
mod nats;
mod needs_restart;
mod objects;
mod objects_over_http;
mod origin;
#[cfg(feature = "postgres")]
mod postgres;
mod proxies;
mod reach;
#[cfg(feature = "redis")]
mod redis;
mod remote;
mod remote_parts;
mod route;
#[cfg(feature = "s3")]
mod s3;
mod schema;
mod secrets;
mod serving;
#[cfg(feature = "postgres")]
mod shards;
mod sink;
mod stopping;
#[cfg(feature = "swift")]
mod swift;
mod table;
mod tables;
#[cfg(test)]
mod tests;
mod tls;
mod tokens;
mod transform;
mod upstream;
#[cfg(feature = "webhook")]
mod webhook;
mod writer;
mod writer_etcd;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use access::Scopes;
use event::TypeName;
use toml::de::DeTable;

use settings::{Diagnostic, Diagnostics, Environment, Section, SettingsReader, SourceId, SourceSpan, files};

use crate::role::Role;
use crate::tls_files::TlsFiles;
use crate::token_file::{Kept, TokenFile, TokenFileError};
pub(crate) use admin::Admin;
pub(crate) use aggregate::AggregateConfig;
pub(crate) use directory::is_own;
pub(crate) use event_type::TypeConfig;
pub(crate) use gateway::{ADMIN, Gateway};
pub(crate) use journal::Journal;
pub(crate) use log::Log;
pub(crate) use needs_restart::needs_restart;
pub(crate) use route::Route;
pub(crate) use schema::TypeSchema;
pub(crate) use sink::{SinkConfig, SinkName, SinkSettings};
pub(crate) use stopping::Stopping;
use tables::IsOfRole;
pub(crate) use writer::{ADMIN as WRITER_ADMIN, WriterConfiguration, load as load_writer};
pub(crate) use writer_etcd::WriterEtcd;

/// Variables of flags that are no settings.
pub(crate) const OF_FLAGS: &[&str] = &["FOREBAY_CA", "FOREBAY_CONFIG", "FOREBAY_DATA", "FOREBAY_ROLE", "FOREBAY_TOKEN"];

/// What stands for the types and sinks of a file that has neither.
const BUILT_IN: &str = r#"[types."*"]
routes = ["local"]

[sinks.local]
kind = "sqlite"
path = "events.db"
table = "events"
"#;

/// The same for a gateway whose writers are named by a flag or a variable.
const BUILT_IN_OF_GATEWAY: &str = r#"[types."*"]
routes = ["local"]

[sinks.local]
kind = "writer"
upstream = "writers"
store = "sqlite"
"#;

/// Everything that Forebay was told, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Configuration {
    /// Where Forebay listens, and how it takes events.
    pub(crate) gateway: Gateway,
    /// The admin port.
    pub(crate) admin: Admin,
    /// What the journal may use of its disk.
    pub(crate) journal: Journal,
    /// What is said on stderr, and how.
    pub(crate) log: Log,
    /// The types that have a table of their own.
    pub(crate) types: BTreeMap<TypeName, TypeConfig>,
    /// What becomes of all other types; without it they are unknown.
    pub(crate) other_types: Option<TypeConfig>,
    /// The stores, those too that no type has a route to.
    pub(crate) sinks: BTreeMap<SinkName, SinkSettings>,
    /// The writers that sinks of kind `writer` use.
    pub(crate) upstreams: Vec<::sink::remote::Upstream>,
}

/// Settings from the command line, as they were typed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flags {
    /// `--listen`.
    pub(crate) listen: Option<String>,
    /// `--admin`.
    pub(crate) admin: Option<String>,
    /// `--log-level`.
    pub(crate) log_level: Option<String>,
    /// `--writer`, each time that it was given.
    pub(crate) writers: Vec<String>,
    /// The role of the process; none for a command that serves any role.
    pub(crate) role: Option<Role>,
}

/// Where a configuration comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inputs<'a> {
    /// The file's name, for messages, and its bytes.
    pub(crate) file: Option<(&'a str, &'a [u8])>,
    /// Where the file is: its relative paths lead from there.
    pub(crate) folder: &'a Path,
    /// The process's variables.
    pub(crate) environment: &'a Environment,
    /// The command line.
    pub(crate) flags: &'a Flags,
    /// The data directory, from which the relative paths of sinks lead.
    pub(crate) data: &'a Path,
    /// What the tokens allow that there are.
    pub(crate) scopes: Scopes,
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    /// The file can't be read.
    #[error("can't read the configuration file {path}: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the file system says.
        source: std::io::Error,
    },
    /// The tokens can't be read.
    #[error(transparent)]
    Tokens(#[from] TokenFileError),
    /// The configuration has errors.
    #[error("{0}")]
    Invalid(Diagnostics),
}

/// Reads the file at `path`, if there is one to read, looks which tokens there are, and goes on as [`read`] does.
///
/// # Errors
/// The file or the tokens can't be read, or something in the configuration is wrong.
pub(crate) fn load(
    path: Option<&Path>,
    environment: &Environment,
    flags: &Flags,
    data: &Path,
) -> Result<(Configuration, Diagnostics), LoadError> {
    load_by(read, path, environment, flags, data)
}

/// The same for the configuration that `read` makes.
fn load_by<T>(
    read: impl FnOnce(&Inputs<'_>) -> Result<(T, Diagnostics), Diagnostics>,
    path: Option<&Path>,
    environment: &Environment,
    flags: &Flags,
    data: &Path,
) -> Result<(T, Diagnostics), LoadError> {
    let unreadable = |path: &Path, source| LoadError::Unreadable { path: path.to_owned(), source };
    let bytes = path.map(|path| std::fs::read(path).map_err(|error| unreadable(path, error))).transpose()?;
    let name = path.map(|path| path.display().to_string());
    let file = name.as_deref().zip(bytes.as_deref());
    let scopes = TokenFile::within(data).read()?.map(Kept::into_set).unwrap_or_default().scopes();
    let folder = path.and_then(Path::parent).unwrap_or(Path::new(""));
    read(&Inputs { file, folder, environment, flags, data, scopes }).map_err(LoadError::Invalid)
}

/// Makes a configuration of all that is given. A flag wins over the environment, that over the file, and that
/// over the defaults.
///
/// # Errors
/// The report of all mistakes and warnings, where there is a mistake; else the configuration comes with a
/// report that has warnings only, or nothing.
pub(crate) fn read(inputs: &Inputs<'_>) -> Result<(Configuration, Diagnostics), Diagnostics> {
    let names_writers = !inputs.flags.writers.is_empty() || inputs.environment.get(upstream::VARIABLE).is_some();
    let is_of_gateway = names_writers && inputs.flags.role != Some(Role::Serve);
    read_by(inputs, if is_of_gateway { BUILT_IN_OF_GATEWAY } else { BUILT_IN }, tables::check_of_gateway, read_tables)
}

/// Reads the file's tables and the built-in ones with `read_tables`, unless `check` finds that the file is another role's.
fn read_by<T>(
    inputs: &Inputs<'_>,
    built_in_text: &'static str,
    check: impl FnOnce(&mut SettingsReader<'_>, &Section<'_>) -> IsOfRole,
    read_tables: impl FnOnce(&mut SettingsReader<'_>, &Inputs<'_>, &Section<'_>, &Section<'_>) -> T,
) -> Result<(T, Diagnostics), Diagnostics> {
    let (mut report, text, source) = open(inputs)?;
    let (document, errors) = DeTable::parse_recoverable(&text);
    report_syntax(&mut report, source, &errors);
    if !errors.is_empty() {
        // What the parser made of a broken text would only be reported as further, false mistakes.
        return Err(report);
    }
    let built_in_source = report.source("built in", built_in_text);
    let (built_in, _) = DeTable::parse_recoverable(built_in_text);

    let mut reader = SettingsReader::new(inputs.environment, report).with_dotted_names("types");
    let file = Section::root(source, document.get_ref());
    let built_in = Section::root(built_in_source, built_in.get_ref());
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
    let mut report = Diagnostics::new(secrets::hidden);
    let (name, bytes) = inputs.file.unwrap_or(("no file", b""));
    let bytes = files::content(bytes);
    let text = String::from_utf8_lossy(bytes);
    let source = report.source(name, &*text);
    if let Err(error) = std::str::from_utf8(bytes) {
        // The valid part is the same in both; the first bad byte has become a replacement character.
        let range = error.valid_up_to()..error.valid_up_to() + char::REPLACEMENT_CHARACTER.len_utf8();
        report.push(Diagnostic::new("the file is not UTF-8", SourceSpan { source, range }, "the first bad byte"));
        return Err(report);
    }
    Ok((report, text, source))
}

fn report_syntax(report: &mut Diagnostics, source: SourceId, errors: &[toml::de::Error]) {
    for error in errors {
        let at = SourceSpan { source, range: error.span().unwrap_or(0..0) };
        report.push(Diagnostic::new("this is not TOML", at, error.message()));
    }
}

fn read_tables(
    reader: &mut SettingsReader<'_>,
    inputs: &Inputs<'_>,
    file: &Section<'_>,
    built_in: &Section<'_>,
) -> Configuration {
    let section = reader.table(file, "gateway");
    let mut gateway = gateway::read(reader, &section, inputs);
    let gateway_section = section;
    let section = reader.table(file, "admin");
    let admin = admin::read(reader, &section, inputs.folder);
    let section = reader.table(file, "journal");
    let journal = journal::read(reader, &section);
    let section = reader.table(file, "log");
    let log = log::read(reader, &section, inputs.flags);

    let named = |table: &str| file.get(table).is_some();
    let document = if named("types") || named("sinks") { file } else { built_in };
    let tables = reader.table(document, "sinks");
    let tables = reader.tables(&tables);
    let section = reader.table(file, "upstreams");
    let upstreams = upstream::read(reader, &section, inputs.flags, inputs.folder);
    if inputs.flags.role == Some(Role::Gateway) && upstreams.is_empty() {
        let title = "a gateway has no writer";
        let help =
            "name one with --writer http://127.0.0.1:8081 or FOREBAY_WRITERS, or in the file as [upstreams.NAME]";
        reader.push(Diagnostic::new(title, file.span().clone(), "no [upstreams.…]").help(help.to_owned()));
    }
    let sinks = sink::read(reader, &tables, inputs.folder, inputs.data, &upstreams);
    let errors_before = reader.errors();
    let tables = reader.table(document, "types");
    let tables = reader.tables(&tables);
    if tables.is_empty() && reader.errors() == errors_before {
        no_types(reader, document);
    }
    let lookup = reader.table(file, "tables");
    let lookup = reader.tables(&lookup);
    let lookup = table::read(reader, &lookup, inputs.folder);
    let types = event_type::read(reader, &tables, &sinks, &lookup, inputs.folder);
    gateway.naming = naming::read(reader, &gateway_section, &types);
    if reader.errors() == 0 {
        warn_of_unused(reader, &types, &sinks);
    }
    reader.check_variables(OF_FLAGS);
    Configuration {
        gateway,
        admin,
        journal,
        log,
        types: types.named,
        other_types: types.others,
        sinks: sinks.valid,
        upstreams: upstreams.into_valid(),
    }
}

fn no_types(reader: &mut SettingsReader<'_>, document: &Section<'_>) {
    if let Some((key, _)) = document.entry("types").or(document.entry("sinks")) {
        let help = "add a table [types.NAME] with routes, or [types.\"*\"] for events of any type";
        let title = "no event would be taken: there is no type";
        reader.push(Diagnostic::new(title, document.span_of(key), "no [types.…] beside it").help(help.to_owned()));
    }
}

fn warn_of_unused(reader: &mut SettingsReader<'_>, types: &event_type::Types, sinks: &sink::Sinks) {
    for name in sinks.valid.keys().filter(|name| !types.have_route_to(name)) {
        if let Some(at) = sinks.span(name) {
            let title = format!("nothing goes to the sink `{name}`");
            let help = format!("add \"{name}\" to the routes of a type, or remove the sink");
            reader.push(Diagnostic::warning(title, at.clone(), "in no type's routes").help(help));
        }
    }
}

impl Configuration {
    /// Upstreams whose sinks can stay share the state of the ones that run.
    pub(crate) fn keep_upstreams_of(&mut self, before: &Self) {
        let of_sinks = self.sinks.values_mut().filter_map(|settings| Some(&mut settings.store.remote_mut()?.upstream));
        for upstream in self.upstreams.iter_mut().chain(of_sinks) {
            if let Some(running) = before.upstreams.iter().find(|running| *running == upstream) {
                upstream.join(running);
            }
        }
    }

    /// Steps that are the same as before go on with what they remember, and schemas are the ones that they were: by that the gateway knows
    /// the types whose rules stay.
    pub(crate) fn keep_rules_of(&mut self, before: &Self) {
        let known = before.types.iter().map(|(name, config)| (Some(name), config));
        let known = known.chain(before.other_types.iter().map(|config| (None, config)));
        for (name, before) in known {
            let config = name.map_or(self.other_types.as_mut(), |name| self.types.get_mut(name));
            let Some(config) = config else { continue };
            if config.transform == before.transform {
                config.transform.clone_from(&before.transform);
            } else if let (Some(now), Some(before)) = (&mut config.transform, &before.transform) {
                now.remember_as(before);
            }
            if config.schema == before.schema {
                config.schema.clone_from(&before.schema);
            }
        }
    }
}

impl fmt::Display for Configuration {
    /// A short summary, one fact a line: addresses, types with their routes, sinks.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tls = |files: &Option<TlsFiles>| {
            files.as_ref().map_or_else(String::new, |files| format!(", TLS as {}", files.certificate.display()))
        };
        writeln!(f, "listen  {}{}", self.gateway.listen, tls(&self.gateway.tls))?;
        writeln!(f, "admin   {}{}", self.gateway.admin, tls(&self.admin.tls))?;
        let named = self.types.iter().map(|(name, config)| (name.as_str(), config));
        for (name, config) in named.chain(self.other_types.iter().map(|config| ("*", config))) {
            let routes = route::listed(&config.routes);
            let schema = config.schema.as_ref().map_or_else(String::new, |schema| format!(", schema {schema}"));
            let transform = config.transform.as_ref().map_or_else(String::new, |transform| format!(", {transform}"));
            let ack = if config.ack_stored { ", answered when stored" } else { "" };
            writeln!(f, "type    {name} → {routes}{schema}{transform}{ack}")?;
            for AggregateConfig { window, rules, routes, .. } in &config.aggregates {
                let routes = route::listed(routes);
                writeln!(f, "type    {} → {routes}, of {name} in windows of {window}", rules.name())?;
            }
        }
        for (name, config) in &self.sinks {
            writeln!(f, "sink    {name}: {config}")?;
        }
        Ok(())
    }
}
