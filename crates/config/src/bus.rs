//! `[bus]`: the NATS servers of bridges, and of reads over the bus.

use std::fmt;
use std::path::{Path, PathBuf};

use nats::{Servers, Subject};
use settings::client::{self, ca};
use settings::{Diagnostic, PATH, Section, Setting, SettingsReader, URL, Unset, names, parsed, path};

/// The table's name.
pub(crate) const TABLE: &str = "bus";
/// The name of the table within it.
pub(crate) const EVENTS: &str = "events";
/// The settings of `[bus]`.
pub(crate) const SETTINGS: &[Setting] = &[
    Setting::new(
        URL_KEY,
        URL,
        "`nats://USER:PASSWORD@HOST:PORT`; separate the hosts of a cluster by commas. `nats://TOKEN@HOST` for a token; `tls://` requires TLS",
    )
    .required()
    .example("\"nats://forebay:${NATS_PASSWORD}@one:4222,two:4222\"")
    .restart(),
    Setting::new(
        "credentials",
        PATH,
        "a `.creds` file with a user's JWT and key, or a file with the seed of an nkey; relative to the configuration file. Read for each \
         connection",
    )
    .example("\"forebay.creds\"")
    .restart(),
    client::CA.restart(),
];
const URL_KEY: &str = "url";
/// The settings of `[bus.events]`.
pub(crate) const OF_EVENTS: &[Setting] = &[Setting::text(
    "subject",
    "the subject on which Forebay answers requests for an event, without wildcards. The body of a request is the id",
)
.or(Unset::Text(SUBJECT))
.restart()];
/// The default of [`BusConfig::events`], if its table is there.
const SUBJECT: &str = "forebay.events.get";

/// The NATS servers of bridges, and of reads over the bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BusConfig {
    /// The servers, and the account to use.
    pub servers: Servers,
    /// A file with the key of a user, and its JWT if it has one.
    pub credentials: Option<PathBuf>,
    /// A PEM file with the trusted authorities; without one the machine's.
    pub ca: Option<PathBuf>,
    /// The subject on which Forebay answers requests for an event, if it does.
    pub events: Option<Subject>,
}

/// What uses the bus in addition to `[bus.events]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Uses {
    /// There is a bridge.
    pub(crate) has_bridge: bool,
    /// Events can be read in this process.
    pub(crate) has_events: bool,
}

/// Reads the table, if the file or the environment has it; relative paths start at `folder`.
pub(crate) fn read(
    reader: &mut SettingsReader<'_>,
    file: &Section<'_>,
    folder: &Path,
    Uses { has_bridge, has_events }: Uses,
) -> Option<BusConfig> {
    let section = reader.table(file, TABLE);
    if file.get(TABLE).is_none() && !reader.is_set(&section, URL_KEY) {
        return None;
    }
    reader.check_keys(&section, names(SETTINGS).chain([EVENTS]));
    let url = reader.text(&section, URL_KEY, parsed::<Servers>("is not the URL of NATS servers"));
    if url.is_none() && !reader.is_set(&section, URL_KEY) {
        reader.missing(&section, URL_KEY, "add the servers, as in url = \"nats://USER:PASSWORD@HOST:PORT\"");
    }
    let wanted = "expected the path of a file with a user's key";
    let credentials = path::read(reader, &section, "credentials", folder, wanted).map(|found| found.value);
    let ca = ca(reader, &section, folder);
    let events = events(reader, &section, has_events);
    let settings::Located { value: servers, span } = url?;
    let key = section.key_path(URL_KEY);
    if !servers.is_local() {
        if credentials.is_none() && !servers.has_account() {
            let help = "add a user, a token, or `credentials`, and give it only the subjects that it needs".to_owned();
            let title = format!("`{key}` names no account");
            let label = "every client that reaches these servers can answer for the services";
            reader.push(Diagnostic::warning(title, span.clone(), label).help(help));
        }
        if !servers.is_secure() {
            let title = format!("requests and their answers may be sent without TLS to `{key}`");
            let help = "use tls://, unless the network between the two is trusted".to_owned();
            reader.push(Diagnostic::warning(title, span, "others on the network can read them").help(help));
        }
    }
    if !has_bridge && events.is_none() && section.get(EVENTS).is_none() {
        let title = format!("unused table `{TABLE}`");
        let help = "add [[bridge]] to a gateway, or [bus.events] to a writer or to `serve`".to_owned();
        reader.push(Diagnostic::warning(title, section.span().clone(), "nothing uses the bus").help(help));
    }
    Some(BusConfig { servers, credentials, ca, events })
}

/// The subject of reads, if the table is there. A gateway with writers has no events to read.
fn events(reader: &mut SettingsReader<'_>, bus: &Section<'_>, has_events: bool) -> Option<Subject> {
    let section = reader.table(bus, EVENTS);
    if bus.get(EVENTS).is_none() && !reader.is_set(&section, OF_EVENTS[0].name) {
        return None;
    }
    reader.check_keys(&section, names(OF_EVENTS));
    if !has_events {
        let title = format!("conflict: a gateway can't have `{}`", bus.key_path(EVENTS));
        let help = "move the table to the configuration of the writer".to_owned();
        reader.push(Diagnostic::new(title, section.span().clone(), "the events are in the writer's stores").help(help));
    }
    reader.text_or(&section, OF_EVENTS[0].name, SUBJECT, parsed("isn't a valid subject"))
}

impl fmt::Display for BusConfig {
    /// Its servers, never the account.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.servers)?;
        self.events.as_ref().map_or(Ok(()), |subject| write!(f, ", events of all sources on {subject}"))
    }
}
