//! The configuration of `forebay writer`: its port, and the stores that gateways reach through it.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

use access::{Demand, Scope};
use settings::{Diagnostic, Diagnostics, Environment, Section, SettingsReader, names};

use crate::admin::{self, Admin};
use crate::bus::{self, BusConfig, Uses};
use crate::console::{self, Console};
use crate::etcd;
use crate::flags::Flags;
use crate::inputs::{Inputs, OF_FLAGS};
use crate::load::{ConfigError, load_by, read_by};
use crate::log;
use crate::log::Log;
use crate::port::address::{Port, address, default_of_image, demand, is_loopback};
use crate::port::tls;
use crate::port::tls_files::TlsFiles;
use crate::port::tokens;
use crate::push::{self, Push};
use crate::registration::{self, WriterEtcd};
use crate::role_tables;
use crate::sinks::{self, SinkName, SinkSettings};
use crate::stopping;
use crate::token_file::TokenFile;
use crate::upstreams::Upstreams;
use crate::writer_table::{ALLOW_ANONYMOUS, SETTINGS};

const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8081);
/// The default address of metrics.
pub const ADMIN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9001);

/// The most connections of a sink that has one for each lane, if its settings don't say. PostgreSQL allows 100 to all its clients together.
const CONNECTIONS_MAX: NonZeroUsize = NonZeroUsize::new(16).expect("above 0");

/// The sinks of a writer whose file has none.
const BUILT_IN: &str = r#"[sinks.local]
kind = "sqlite"
path = "events.db"
table = "events"
"#;

/// The checked configuration of a writer.
#[derive(Clone, Debug)]
pub struct WriterConfiguration {
    /// The address that gateways use.
    pub listen: SocketAddr,
    /// The address of metrics.
    pub admin: SocketAddr,
    /// The other settings of the admin port.
    pub admin_port: Admin,
    /// The page of the admin port.
    pub console: Console,
    /// Whether gateways may use the port without a token.
    pub allow_anonymous: bool,
    /// How long a stop still accepts batches while `/readyz` answers 503.
    pub stop_delay: Duration,
    /// The file of tokens.
    pub tokens: TokenFile,
    /// Certificate and key, if the port uses TLS.
    pub tls: Option<TlsFiles>,
    /// The registration in etcd, if there is one.
    pub etcd: Option<WriterEtcd>,
    /// The log's settings.
    pub log: Log,
    /// The stores.
    pub sinks: BTreeMap<SinkName, SinkSettings>,
    /// The bus, if there is one.
    pub bus: Option<BusConfig>,
    /// Where metrics and spans are sent.
    pub push: Push,
}

impl WriterConfiguration {
    /// Which requests need a token.
    pub fn demand(&self) -> Demand {
        demand(self.allow_anonymous, self.listen)
    }

    /// Whether the port can only be reached from this machine.
    pub fn listens_on_loopback(&self) -> bool {
        is_loopback(self.listen)
    }

    /// Whether the admin port can be reached from elsewhere.
    pub fn admin_is_reachable(&self) -> bool {
        !is_loopback(self.admin)
    }

    /// Whether a store is embedded: the writer then locks the data directory.
    pub fn has_embedded_store(&self) -> bool {
        self.sinks.values().any(|settings| settings.store.local_path().is_some())
    }
}

impl fmt::Display for WriterConfiguration {
    /// A short summary, one fact a line: addresses and sinks.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tls =
            self.tls.as_ref().map_or_else(String::new, |files| format!(", TLS as {}", files.certificate.display()));
        writeln!(f, "listen  {}{tls}\nadmin   {}", self.listen, self.admin)?;
        if let Some(WriterEtcd { etcd, advertise, lease, .. }) = &self.etcd {
            writeln!(f, "etcd    {etcd}, as {advertise}, lease {}", humantime::format_duration(*lease))?;
        }
        self.sinks.iter().try_for_each(|(name, settings)| writeln!(f, "sink    {name}: {settings}"))?;
        self.bus.as_ref().map_or(Ok(()), |bus| writeln!(f, "bus     {bus}"))?;
        self.push.fmt(f)
    }
}

/// Reads the writer's configuration.
///
/// # Errors
/// The file or the tokens can't be read, or something in the configuration is wrong.
pub fn load(
    path: Option<&Path>,
    environment: &Environment,
    flags: &Flags,
    data: &Path,
) -> Result<(WriterConfiguration, Diagnostics), ConfigError> {
    load_by(read, path, environment, flags, data)
}

pub(crate) fn read(inputs: &Inputs<'_>) -> Result<(WriterConfiguration, Diagnostics), Diagnostics> {
    read_by(inputs, BUILT_IN, role_tables::check_of_writer, read_tables)
}

fn read_tables(
    reader: &mut SettingsReader<'_>,
    inputs: &Inputs<'_>,
    file: &Section<'_>,
    built_in: &Section<'_>,
) -> WriterConfiguration {
    let section = reader.table(file, "writer");
    reader.check_keys(&section, names(SETTINGS).chain([tls::TABLE, etcd::TABLE]));
    let Flags { listen, admin, .. } = inputs.flags;
    let configured = reader.text_or_flag(&section, "listen", listen.as_deref(), address);
    let is_default_of_image = configured.is_none();
    let listen = configured.or_else(|| default_of_image(reader, LISTEN));
    let admin = reader.text_or_flag(&section, "admin", admin.as_deref(), address);
    let allow_anonymous = reader.boolean_or_default(&section, &ALLOW_ANONYMOUS);
    let stop_delay = stopping::read_delay(reader, &section);
    let (tokens, scopes) = tokens::read(reader, &section, inputs);
    let port = Port {
        table: "writer",
        all: "store events",
        scope: Scope::Deliver,
        is_default_of_image,
        has_signed_intake: false,
    };
    port.check_reach(reader, (listen.as_ref(), admin.as_ref()), allow_anonymous, scopes);
    let has_tls = section.get(tls::TABLE).is_some();
    let tls = tls::read(reader, &section, inputs.folder);
    let etcd = registration::read(reader, &section, inputs.folder, has_tls || tls.is_some());
    let section = reader.table(file, "log");
    let log = log::read(reader, &section, inputs.flags);
    let document = if file.get("sinks").is_some() { file } else { built_in };
    let sections = reader.table(document, "sinks");
    let sections = reader.tables(&sections);
    let mut sinks = sinks::read(reader, &sections, inputs.folders(), &Upstreams::default());
    refuse_what_cant_be_offered(reader, &sections, &sinks.valid);
    bound_connections(&mut sinks.valid);
    let admin_port = admin::read_of_writer(reader, file);
    let console = console::read(reader, file, inputs.folder);
    let bus = bus::read(reader, file, inputs.folder, Uses { has_bridge: false, has_events: true });
    let push = push::read(reader, file, inputs.folder);
    reader.check_variables(OF_FLAGS);
    WriterConfiguration {
        listen: listen.map_or(LISTEN, |found| found.value),
        admin: admin.map_or(ADMIN, |found| found.value),
        allow_anonymous,
        admin_port,
        console,
        stop_delay,
        tokens,
        tls,
        etcd,
        log,
        sinks: sinks.valid,
        bus,
        push,
    }
}

/// Limits the connections of stores with one for each lane: gateways bring any number of lanes.
fn bound_connections(sinks: &mut BTreeMap<SinkName, SinkSettings>) {
    for settings in sinks.values_mut() {
        settings.store.limit_connections(CONNECTIONS_MAX);
    }
}

/// Reports sinks of kind `writer`: a writer doesn't forward to other writers.
fn refuse_what_cant_be_offered(
    reader: &mut SettingsReader<'_>,
    sections: &[Section<'_>],
    sinks: &BTreeMap<SinkName, SinkSettings>,
) {
    for section in sections {
        let Some(settings) = SinkName::new(section.name()).ok().and_then(|name| sinks.get(&name)) else { continue };
        if settings.store.writer_kind().is_none() {
            let title = format!("invalid value for `{}`: a writer can't offer such a sink", section.name());
            let label = "gateways use other writers directly";
            reader.push(Diagnostic::new(title, section.span().clone(), label));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use access::Scopes;

    use super::*;

    #[test]
    fn postgresql_sink_always_has_a_limit_of_connections() {
        let file = "[sinks.a]\nkind = \"postgres\"\nurl = \"postgres://u@a\"\n\
                    [sinks.b]\nkind = \"postgres\"\nurl = \"postgres://u@b\"\nmax_connections = 3\n";
        let (configuration, _) = read(&Inputs {
            file: Some(("forebay.toml", file.as_bytes())),
            folder: Path::new(""),
            environment: &Environment::default(),
            flags: &Flags::default(),
            data: Path::new("d"),
            scopes: Scopes::default(),
        })
        .unwrap();
        let limits = configuration.sinks.values().map(|settings| {
            let config: &sink_postgres::PostgresConfig = settings.store.store().unwrap().downcast_ref().unwrap();
            config.connections.max.map(NonZeroUsize::get)
        });
        assert_eq!(limits.collect::<Vec<_>>(), [Some(16), Some(3)]);
    }
}
