//! The tables of a file, of which each role reads its own.

use settings::{Diagnostic, Section, SettingsReader, names};
use text::OperatorCommand;

use crate::configuration_file;

/// Those of a gateway, and of `serve`, which is a gateway and its delivery in one.
const OF_GATEWAY: &[&str] = &[
    "gateway",
    "admin",
    "console",
    "journal",
    "log",
    "types",
    "tables",
    "sinks",
    "upstreams",
    "bus",
    "bridge",
    "intakes",
    "otlp",
    "statsd",
];
/// Those of a writer.
const OF_WRITER: &[&str] = &["writer", "admin", "console", "log", "sinks", "bus", "otlp", "statsd"];

/// Whether a file is for the role that reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IsOfRole {
    /// It may have tables of the other role too.
    Yes,
    /// It has tables that only the other role reads, and none that only this role reads.
    No,
}

/// Reports the tables that a gateway doesn't read.
pub(crate) fn check_of_gateway(reader: &mut SettingsReader<'_>, file: &Section<'_>) -> IsOfRole {
    let help = format!("run {} with it, or write a separate file for each role", OperatorCommand::Run("writer"));
    check(reader, file, OF_GATEWAY, OF_WRITER, ("it is a writer's table, and this is a gateway", &help))
}

/// Reports the tables that a writer doesn't read.
pub(crate) fn check_of_writer(reader: &mut SettingsReader<'_>, file: &Section<'_>) -> IsOfRole {
    let [gateway, serve] = [OperatorCommand::Run("gateway"), OperatorCommand::Run("serve")];
    let help = format!("run {gateway} or {serve} with it, or write a separate file for each role");
    check(reader, file, OF_WRITER, OF_GATEWAY, ("it is a gateway's table, and this is a writer", &help))
}

fn check(
    reader: &mut SettingsReader<'_>,
    file: &Section<'_>,
    own: &[&'static str],
    others: &[&'static str],
    (whose, help): (&str, &str),
) -> IsOfRole {
    let has_own = own.iter().any(|name| !others.contains(name) && file.entry(name).is_some());
    let foreign = others.iter().filter(|name| !own.contains(name)).filter_map(|name| Some((name, file.entry(name)?.0)));
    let mut is_of_role = IsOfRole::Yes;
    // If the whole file is the other role's, one mistake is enough.
    for (name, key) in foreign.take(if has_own { usize::MAX } else { 1 }) {
        if !has_own {
            is_of_role = IsOfRole::No;
        }
        let title = format!("unused setting `{name}`: {whose}");
        reader.push(Diagnostic::new(title, file.span_of(key), "not read here").help(help.to_owned()));
    }
    configuration_file::check(reader, file);
    reader.check_keys(file, own.iter().chain(others).copied().chain(names(configuration_file::SETTINGS)));
    is_of_role
}
