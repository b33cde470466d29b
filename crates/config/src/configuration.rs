//! The configuration of a gateway, or of all in one process.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use ::gateway::{BridgeRule, IdRule};
use access::{Demand, PartialStatus};
use event::TypeName;

use settings::{Diagnostic, Diagnostics, Environment, Section, SettingsReader};

use crate::admin::{self, Admin};
use crate::bridge;
use crate::bus::{self, BusConfig, Uses};
use crate::console::{self, Console};
use crate::event_types::aggregate::AggregateConfig;
use crate::event_types::event_type::{self, TypeConfig, Types};
use crate::event_types::{lookup_tables, type_rules};
use crate::flags::Flags;
use crate::gateway::{self, GatewayConfig};
use crate::inputs::{Inputs, OF_FLAGS};
use crate::intakes::{self, IntakeConfig};
use crate::journal::{self, Journal};
use crate::load::{ConfigError, load_by, read_by};
use crate::log::{self, Log};
use crate::port::tls_files::TlsFiles;
use crate::push::{self, Push};
use crate::result_paths;
use crate::role::Role;
use crate::role_tables;
use crate::sinks::route;
use crate::sinks::{self, SinkName, SinkSettings, Sinks};
use crate::upstreams::{self, Upstreams};

/// The types and sinks of a file that has neither.
pub(crate) const BUILT_IN: &str = r#"[types."*"]
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

/// The validated configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configuration {
    /// The intake port and its limits.
    pub gateway: GatewayConfig,
    /// The admin port.
    pub admin: Admin,
    /// The page of the admin port.
    pub console: Console,
    /// How much of its disk the journal may use.
    pub journal: Journal,
    /// The messages on stderr, and their format.
    pub log: Log,
    /// The types that have separate tables.
    pub types: BTreeMap<TypeName, TypeConfig>,
    /// The rules of all other types; without it they are unknown.
    pub other_types: Option<TypeConfig>,
    /// The stores, those too that no type has a route to.
    pub sinks: BTreeMap<SinkName, SinkSettings>,
    /// The sinks with shards, each with the sinks of its shards by the values of their events.
    pub shards: BTreeMap<SinkName, BTreeMap<String, SinkName>>,
    /// The writers that sinks of kind `writer` use.
    pub upstreams: Vec<sink_remote::Upstream>,
    /// The bus, if there is one.
    pub bus: Option<BusConfig>,
    /// The bridges, in the order in which their paths are compared with a request's.
    pub bridges: Vec<BridgeRule>,
    /// The intakes, by their names.
    pub intakes: BTreeMap<String, IntakeConfig>,
    /// Where metrics and spans are sent.
    pub push: Push,
}

/// Reads the file at `path`, if there is one, finds out which tokens exist, and then does the same as `read`.
///
/// # Errors
/// The file or the tokens can't be read, or something in the configuration is wrong.
pub fn load(
    path: Option<&Path>,
    environment: &Environment,
    flags: &Flags,
    data: &Path,
) -> Result<(Configuration, Diagnostics), ConfigError> {
    load_by(read, path, environment, flags, data)
}

/// Makes a configuration of all that is given. A flag wins over the environment, that over the file, and that
/// over the defaults.
///
/// # Errors
/// The report of all mistakes and warnings, if there is a mistake. Otherwise the configuration comes with a report that
/// has only warnings, or nothing.
pub(crate) fn read(inputs: &Inputs<'_>) -> Result<(Configuration, Diagnostics), Diagnostics> {
    let names_writers = !inputs.flags.writers.is_empty() || inputs.environment.get(upstreams::VARIABLE).is_some();
    let is_of_gateway = names_writers && inputs.flags.role != Some(Role::Serve);
    read_by(
        inputs,
        if is_of_gateway { BUILT_IN_OF_GATEWAY } else { BUILT_IN },
        role_tables::check_of_gateway,
        read_tables,
    )
}

/// Reads all tables. The order matters: types name sinks and lookup tables, sinks name upstreams, and rules of the gateway name types.
fn read_tables(
    reader: &mut SettingsReader<'_>,
    inputs: &Inputs<'_>,
    file: &Section<'_>,
    built_in: &Section<'_>,
) -> Configuration {
    let gateway_section = reader.table(file, "gateway");
    let intakes = intakes::read(reader, file);
    let mut gateway = gateway::read(reader, &gateway_section, inputs, intakes.has_signed());
    let admin = admin::read(reader, file, inputs.folder);
    let console = console::read(reader, file, inputs.folder);
    let section = reader.table(file, "journal");
    let journal = journal::read(reader, &section);
    let section = reader.table(file, "log");
    let log = log::read(reader, &section, inputs.flags);

    let is_named = |table: &str| file.get(table).is_some();
    let document = if is_named("types") || is_named("sinks") { file } else { built_in };
    let sections = reader.table(document, "sinks");
    let sections = reader.tables(&sections);
    let upstreams = read_upstreams(reader, inputs, file);
    let sinks = sinks::read(reader, &sections, inputs.folders(), &upstreams);
    let types = read_types(reader, inputs, (file, document), &sinks);
    gateway.naming = type_rules::read(reader, &gateway_section, &types);
    let bridges = bridge::read(reader, file);
    let others = intakes::Others { gateway: &gateway, bridges: &bridges, types: &types, scopes: inputs.scopes };
    intakes::check(reader, &intakes, &others);
    let bus = read_bus(reader, inputs, file);
    let push = push::read(reader, file, inputs.folder);
    if reader.errors() == 0 {
        result_paths::warn(reader, &sections, &types);
        warn_of_unused(reader, &types, &sinks);
    }
    reader.check_variables(OF_FLAGS);
    Configuration {
        gateway,
        admin,
        console,
        journal,
        log,
        types: types.named,
        other_types: types.others,
        shards: sinks.shards(),
        sinks: sinks.valid,
        upstreams: upstreams.into_valid(),
        bus,
        bridges,
        intakes: intakes.into_valid(),
        push,
    }
}

fn read_bus(reader: &mut SettingsReader<'_>, inputs: &Inputs<'_>, file: &Section<'_>) -> Option<BusConfig> {
    let has_bridge = file.get(bridge::TABLE).is_some();
    let uses = Uses { has_bridge, has_events: inputs.flags.role != Some(Role::Gateway) };
    let errors_before = reader.errors();
    let bus = bus::read(reader, file, inputs.folder, uses);
    if bus.is_none() && reader.errors() == errors_before {
        bridge::check_bus(reader, file);
    }
    bus
}

fn read_upstreams(reader: &mut SettingsReader<'_>, inputs: &Inputs<'_>, file: &Section<'_>) -> Upstreams {
    let section = reader.table(file, "upstreams");
    let upstreams = upstreams::read(reader, &section, inputs.flags, inputs.folder);
    if inputs.flags.role == Some(Role::Gateway) && upstreams.is_empty() {
        let title = "missing setting `upstreams`: a gateway needs writers";
        let help = "set --writer http://127.0.0.1:8081 or FOREBAY_WRITERS, or add [upstreams.NAME] to the file";
        reader.push(Diagnostic::new(title, file.span().clone(), "no [upstreams.…]").help(help.to_owned()));
    }
    upstreams
}

/// Reads the types of `document`. Lookup tables are in the `file` only.
fn read_types(
    reader: &mut SettingsReader<'_>,
    inputs: &Inputs<'_>,
    (file, document): (&Section<'_>, &Section<'_>),
    sinks: &Sinks,
) -> Types {
    let errors_before = reader.errors();
    let section = reader.table(document, "types");
    let sections = reader.tables(&section);
    if sections.is_empty() && reader.errors() == errors_before {
        report_no_types(reader, document);
    }
    let section = reader.table(file, "tables");
    let tables = reader.tables(&section);
    let tables = lookup_tables::read(reader, &tables, inputs.folder);
    event_type::read(reader, &sections, sinks, &tables, inputs.folder)
}

fn report_no_types(reader: &mut SettingsReader<'_>, document: &Section<'_>) {
    if let Some((key, _)) = document.entry("types").or(document.entry("sinks")) {
        let help = "add a table [types.NAME] with routes, or [types.\"*\"] for events of any type";
        let title = "missing setting `types`: no event would be accepted";
        reader.push(Diagnostic::new(title, document.span_of(key), "there is no [types.…]").help(help.to_owned()));
    }
}

fn warn_of_unused(reader: &mut SettingsReader<'_>, types: &Types, sinks: &Sinks) {
    for name in sinks.valid.keys().filter(|name| !types.have_route_to(name)) {
        if let Some(at) = sinks.span(name) {
            let title = format!("unused sink `{name}`");
            let help = format!("add \"{name}\" to the routes of a type, or remove the sink");
            reader.push(Diagnostic::warning(title, at.clone(), "in no type's routes").help(help));
        }
    }
}

impl Configuration {
    /// Which requests to post events need a token. If other machines reach the port of an intake, all do, unless its requests are signed.
    #[must_use]
    pub fn demand(&self) -> Demand {
        let is_reachable = self.intakes.values().any(IntakeConfig::needs_tokens);
        match self.gateway.demand() {
            Demand::WithTokens if is_reachable => Demand::Always,
            demand => demand,
        }
    }

    /// Upstreams whose sinks can stay share the state of the ones that run.
    pub fn keep_upstreams_of(&mut self, before: &Self) {
        let of_sinks = self.sinks.values_mut().filter_map(|settings| Some(&mut settings.store.remote_mut()?.upstream));
        for upstream in self.upstreams.iter_mut().chain(of_sinks) {
            if let Some(running) = before.upstreams.iter().find(|running| *running == upstream) {
                upstream.join(running);
            }
        }
    }

    /// Steps that haven't changed keep their memory, and unchanged schemas stay the same objects: by that the gateway
    /// recognises types whose rules stay.
    pub fn keep_rules_of(&mut self, before: &Self) {
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
            let refused =
                config.refused_to.as_ref().map_or_else(String::new, |to| format!(", rejected events as {to}"));
            let id = if config.id == IdRule::Content { ", id by content: equal events are duplicates" } else { "" };
            let partial = if config.partial == PartialStatus::Ok { ", 200 for partly accepted batches" } else { "" };
            writeln!(f, "type    {name} → {routes}{schema}{transform}{id}{ack}{refused}{partial}")?;
            for AggregateConfig { window, rules, routes, .. } in &config.aggregates {
                let routes = route::listed(routes);
                writeln!(f, "type    {} → {routes}, of {name} in windows of {window}", rules.name())?;
            }
        }
        for (name, config) in &self.sinks {
            writeln!(f, "sink    {name}: {config}")?;
        }
        if let Some(bus) = &self.bus {
            writeln!(f, "bus     {bus}")?;
        }
        self.bridges.iter().try_for_each(|bridge| writeln!(f, "bridge  {bridge}"))?;
        let lines = |(name, intake): (&String, &IntakeConfig)| {
            f.write_str(&intakes::lines(self.gateway.listen, self.gateway.tls.is_some(), name, intake))
        };
        self.intakes.iter().try_for_each(lines)?;
        self.push.fmt(f)
    }
}
