//! The message at the start: the addresses, how to post the first event, and where to see the results.

use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use config::{Configuration, IntakeConfig};
use event::{Origin, TypeName};
use eventlog::unix_microseconds;
use gateway::{DEFAULT_TYPE, RequestContext};
use sink::StoreConfig;

use crate::dry_run::DryRunner;
use crate::{dry_run, log};
use cli::admin_address::target;

/// The addresses of the server.
pub(crate) struct Ports {
    pub(crate) listen: SocketAddr,
    pub(crate) admin: SocketAddr,
    /// The ports of intakes, by their names.
    pub(crate) intakes: Vec<(Arc<str>, SocketAddr)>,
    pub(crate) needs_token: bool,
    /// Whether nothing was ever kept in the data directory before.
    pub(crate) is_first_start: bool,
}

/// Writes to the standard output, or to the log if each line must be JSON. A separate thread writes to the standard output, and ends after that.
/// So a reader that has stopped reading doesn't block the server. If nothing reads it, nothing is lost.
pub(crate) fn show(ports: &Ports, configuration: &Configuration, data: &Path, origin: Origin) {
    if log::is_json() {
        return tracing::info!("{}", text(ports, configuration, data, origin, false).trim_end());
    }
    let text = text(ports, configuration, data, origin, io::stdout().is_terminal());
    let write = move || {
        let mut output = io::stdout().lock();
        let _ = output.write_all(text.as_bytes()).and_then(|()| output.flush());
    };
    let _ = thread::Builder::new().name("banner".into()).spawn(write);
}

fn text(ports: &Ports, configuration: &Configuration, data: &Path, origin: Origin, is_terminal: bool) -> String {
    let &Ports { listen, admin, ref intakes, needs_token, is_first_start } = ports;
    let intake = scheme(configuration.gateway.tls.is_some());
    let url = target(listen, configuration.gateway.tls.is_some());
    let admin_url = target(admin, configuration.admin.tls.is_some());
    let shows = if needs_token { " -H \"Authorization: Bearer $FOREBAY_TOKEN\"" } else { "" };
    let mut text = format!(
        "Forebay {} accepts events on {intake}{listen} and keeps its data in {}.\n",
        env!("CARGO_PKG_VERSION"),
        data.display()
    );
    text += &urls_of_intakes(configuration, (&url.to_string(), intake), intakes);
    // A service manager's log has no use for it, and later starts don't need it.
    if is_first_start && is_terminal {
        let (path, payload) = (path(configuration), payload(configuration));
        text += &format!("\nPost the first event:\n  curl -i {url}{path} -d {payload}{shows}\n");
    }
    if configuration.sinks.values().any(|settings| settings.store.remote().is_some()) {
        text += &format!("Its gateway id, by which writers know it, is {origin}.\n");
    }
    for (name, sink) in &configuration.sinks {
        let Some(look) = sink.store.store().and_then(StoreConfig::look_command) else { continue };
        text += &format!("Read the events that sink {name} has stored:\n  {look}\n");
    }
    if configuration.console.is_enabled {
        text += &format!("Open its console in a browser:\n  {admin_url}/\n");
    }
    text += &format!("Watch it:\n  curl -s {admin_url}/metrics{shows} | grep forebay_events\nStop it with Ctrl-C.\n");
    text
}

/// A line for each intake: its URL on the gateway's port, and on its own.
fn urls_of_intakes(
    configuration: &Configuration,
    (gateway, scheme): (&str, &str),
    ports: &[(Arc<str>, SocketAddr)],
) -> String {
    let line = |(name, intake): (&String, &IntakeConfig)| {
        let own = ports.iter().find(|(of, _)| **of == **name);
        let own = own.map_or_else(String::new, |(_, address)| format!(" and {scheme}{address}"));
        format!("Intake {name} ({}) is at {gateway}{}{own}.\n", intake.kind.name, intake.path)
    };
    configuration.intakes.iter().map(line).collect()
}

/// The path of an event without a type, if the gateway accepts one, or else of one of the first type.
fn path(configuration: &Configuration) -> String {
    match first_type(configuration) {
        Some(name) => format!("/ingest/event/{name}"),
        None => "/ingest/event".to_owned(),
    }
}

/// The first type, if the gateway doesn't accept events without one.
fn first_type(configuration: &Configuration) -> Option<&str> {
    let names = || configuration.types.keys().map(TypeName::as_str);
    let takes_default = configuration.other_types.is_some() || names().any(|name| name == DEFAULT_TYPE);
    names().next().filter(|_| !takes_default)
}

/// A payload that is accepted. If the type's schema or steps reject the usual one, the operator has to choose another.
fn payload(configuration: &Configuration) -> String {
    const HELLO: &str = "{\"hello\": \"world\"}";
    let name = first_type(configuration).unwrap_or(DEFAULT_TYPE);
    let is_refused = dry_run::type_of(configuration, name).is_ok_and(|(name, config)| {
        let around = RequestContext { received_at: unix_microseconds(), ..RequestContext::default() };
        DryRunner::new(name, config).run(HELLO.as_bytes(), &around).rehearsed.end.refused.is_some()
    });
    if is_refused { "@event.json".to_owned() } else { format!("'{HELLO}'") }
}

const fn scheme(has_tls: bool) -> &'static str {
    if has_tls { "https://" } else { "http://" }
}
