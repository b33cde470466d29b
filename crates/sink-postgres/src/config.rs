//! The configuration of a PostgreSQL sink: the servers, the table, the columns.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use json::JsonPointer;
use tokio_postgres::config::{ChannelBinding, Host, SslMode, TargetSessionAttrs};

use super::connection_limits::PoolLimits;
use super::kind::ColumnType;
use super::url_options;
use sink::{AllowedRisks, InvalidTableName, TableName, quoted};

/// How long a server may take to accept a connection, unless its URL says otherwise.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes of a name in PostgreSQL.
const NAME_BYTES_MAX: usize = 63;
/// The suffix of a partition's name after the table's: `_20261122`.
const DAY_SUFFIX_BYTES: usize = 9;

/// Which table of which server, and how it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostgresConfig {
    /// The servers, and the account to use.
    pub server: PostgresServers,
    /// A PEM file with the trusted authorities; without one the machine's.
    pub ca: Option<PathBuf>,
    /// The table. It is created if it is missing; its schema isn't.
    pub table: QualifiedName,
    /// What the table's columns hold.
    pub layout: TableLayout,
    /// How the table is partitioned.
    pub partition: Partition,
    /// What to do with an event whose id exists.
    pub conflict: RowConflictPolicy,
    /// How long the server may take for one statement, and at most for a lock.
    pub timeout: Duration,
    /// How many connections there are, and for how long.
    pub connections: PoolLimits,
    /// Which risks of the server are allowed.
    pub allowed: AllowedRisks,
}

/// Servers of which one accepts writes, with the account to use: a `postgres://` URL.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresServers(Box<tokio_postgres::Config>);

/// Why a text isn't the URL of a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPostgresUrl {
    /// The text doesn't begin with the scheme.
    #[error("expected postgres://USER:PASSWORD@HOST:PORT/DATABASE")]
    Scheme,
    /// The text is no URL, or has an unknown parameter.
    #[error("{0}")]
    Url(String),
    /// An option of libpq that Forebay doesn't support, with the setting to use instead.
    #[error("its option `{0}` {1}")]
    Option(&'static str, &'static str),
    /// Logins can be bound to a certificate only over TLS.
    #[error("channel_binding=require needs TLS: replace sslmode=disable with sslmode=require")]
    BindingWithoutTls,
    /// No host to connect to.
    #[error("it names no host: expected postgres://USER:PASSWORD@HOST:PORT/DATABASE")]
    NoHost,
    /// A part of the password was read as the host.
    #[error("the host contains an `@`: within the user or the password, write %40")]
    AtSign,
    /// No user to connect as.
    #[error("it names no user: expected postgres://USER:PASSWORD@HOST:PORT/DATABASE")]
    NoUser,
}

impl FromStr for PostgresServers {
    type Err = InvalidPostgresUrl;

    fn from_str(text: &str) -> Result<Self, InvalidPostgresUrl> {
        if !["postgres://", "postgresql://"].iter().any(|scheme| text.starts_with(scheme)) {
            return Err(InvalidPostgresUrl::Scheme);
        }
        if let Some((option, instead)) = url_options::unsupported(text) {
            return Err(InvalidPostgresUrl::Option(option, instead));
        }
        // With TLS, certificates are always verified: there is no weaker form.
        let text =
            text.replace("sslmode=verify-full", "sslmode=require").replace("sslmode=verify-ca", "sslmode=require");
        let mut config: tokio_postgres::Config =
            text.parse().map_err(|error: tokio_postgres::Error| InvalidPostgresUrl::Url(message(&error)))?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(InvalidPostgresUrl::NoHost);
        }
        let has_at_sign = |host: &Host| matches!(host, Host::Tcp(name) if name.contains('@'));
        if config.get_hosts().iter().any(has_at_sign) {
            return Err(InvalidPostgresUrl::AtSign);
        }
        if config.get_user().is_none() {
            return Err(InvalidPostgresUrl::NoUser);
        }
        if config.get_channel_binding() == ChannelBinding::Require && config.get_ssl_mode() == SslMode::Disable {
            return Err(InvalidPostgresUrl::BindingWithoutTls);
        }
        // A read-only server can't be used: of several servers Forebay finds the one that accepts writes.
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        if config.get_application_name().is_none() {
            config.application_name("forebay");
        }
        Ok(Self(Box::new(config)))
    }
}

/// The message of the driver's error, or of its cause. It doesn't contain the URL.
fn message(error: &tokio_postgres::Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => source.to_string(),
        None => error.to_string(),
    }
}

impl PostgresServers {
    pub(super) fn driver(&self) -> &tokio_postgres::Config {
        &self.0
    }

    /// How long all hosts together may take to accept a connection.
    pub(super) fn connect_max(&self) -> Duration {
        let hosts = self.0.get_hosts().len().max(self.0.get_hostaddrs().len()).max(1);
        let each = self.0.get_connect_timeout().copied().unwrap_or(CONNECT_TIMEOUT);
        each.saturating_mul(u32::try_from(hosts).unwrap_or(u32::MAX)).saturating_add(each)
    }
}

/// Hosts and database, never the password.
impl fmt::Display for PostgresServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ports = self.0.get_ports();
        let addresses = self.0.get_hostaddrs().iter().map(ToString::to_string);
        let named = self.0.get_hosts().iter().map(|host| match host {
            Host::Tcp(name) => name.clone(),
            Host::Unix(path) => path.display().to_string(),
        });
        let hosts: Vec<String> = if self.0.get_hosts().is_empty() { addresses.collect() } else { named.collect() };
        for (at, host) in hosts.iter().enumerate() {
            let port = ports.get(at).or_else(|| ports.first()).copied().unwrap_or(5432);
            write!(f, "{}{host}:{port}", if at == 0 { "" } else { "," })?;
        }
        write!(f, "/{}", self.0.get_dbname().or_else(|| self.0.get_user()).unwrap_or_default())
    }
}

impl fmt::Debug for PostgresServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Server({self})")
    }
}

/// A table's name, with its schema or without one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QualifiedName {
    schema: Option<TableName>,
    table: TableName,
}

impl FromStr for QualifiedName {
    type Err = InvalidTableName;

    fn from_str(text: &str) -> Result<Self, InvalidTableName> {
        Ok(match text.split_once('.') {
            Some((schema, table)) => Self { schema: Some(TableName::new(schema)?), table: TableName::new(table)? },
            None => Self { schema: None, table: TableName::new(text)? },
        })
    }
}

impl QualifiedName {
    /// The schema, if the name has one.
    pub(super) fn schema(&self) -> Option<&str> {
        self.schema.as_ref().map(TableName::as_str)
    }

    /// The name, quoted for SQL.
    pub(super) fn quoted(&self) -> String {
        self.in_schema(&quoted(&self.table))
    }

    /// The name with a suffix, quoted for SQL.
    pub(super) fn with_suffix(&self, suffix: &str) -> String {
        self.in_schema(&format!("\"{}{suffix}\"", self.table.as_str()))
    }

    /// Whether the names of partitions, which have a suffix, are within the limit.
    #[must_use]
    pub fn fits_day_suffix(&self) -> bool {
        self.table.as_str().len() + DAY_SUFFIX_BYTES <= NAME_BYTES_MAX
    }

    /// A name in the same schema, quoted for SQL.
    pub(super) fn in_schema(&self, name: &str) -> String {
        match &self.schema {
            Some(schema) => format!("{}.{name}", quoted(schema)),
            None => name.to_owned(),
        }
    }
}

impl fmt::Display for QualifiedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.schema.as_ref().map_or(Ok(()), |schema| write!(f, "{schema}."))?;
        write!(f, "{}", self.table)
    }
}

/// What the columns of a table hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableLayout {
    /// `id`, `type`, `source`, `received_at` and `payload`: such a table can be read back.
    Whole {
        /// The type of `payload` in a table that Forebay creates.
        payload: PayloadKind,
    },
    /// `id` and `received_at`, then values from payloads.
    Columns {
        /// The values, at least one.
        columns: Vec<Column>,
        /// The type of `payload` in a table that Forebay creates, if there is to be one.
        payload: Option<PayloadKind>,
    },
}

impl PostgresConfig {
    /// Whether rows have all of an event that a page shows.
    #[must_use]
    pub const fn is_readable(&self) -> bool {
        match &self.layout {
            TableLayout::Whole { .. } => true,
            TableLayout::Columns { payload, .. } => payload.is_some(),
        }
    }

    /// Whether only the payload itself is stored, byte for byte: then it may contain `\u0000`.
    #[must_use]
    pub const fn keeps_escapes(&self) -> bool {
        matches!(self.layout, TableLayout::Whole { payload: PayloadKind::Text })
    }
}

/// How a table is partitioned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Partition {
    /// Not at all.
    #[default]
    None,
    /// By the day of the event, in UTC: its key is the id together with `event_time`.
    Day,
}

/// What to do with an event whose id exists in a row that isn't the same. Results of aggregates have revisions, and
/// these rules don't apply to them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RowConflictPolicy {
    /// The event becomes a dead letter, and the row is kept.
    #[default]
    Reject,
    /// The row is kept, and the event counts as stored.
    Ignore,
    /// The row is replaced.
    Overwrite,
    /// The row is replaced if the event has a greater value here, or has one and the row has none.
    Newest(JsonPointer),
}

/// How payloads are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PayloadKind {
    /// As searchable values: `jsonb`. Blanks, the order of members and all but the last of equal names are lost.
    #[default]
    Jsonb,
    /// Byte for byte: `text`.
    Text,
}

impl PayloadKind {
    pub(super) const fn kind(self) -> ColumnType {
        match self {
            Self::Jsonb => ColumnType::Jsonb,
            Self::Text => ColumnType::Text,
        }
    }
}

/// A column that holds a value from payloads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: TableName,
    /// The pointer to its values. A missing value, or `null`, is stored as null.
    pub pointer: JsonPointer,
    /// Its type in a table that Forebay creates; `jsonb` without one. An existing table keeps its own type.
    pub kind: Option<ColumnType>,
}
