//! The tables of a file, of which each role reads its own.

use super::reader::Reader;
use super::report::Mistake;
use super::section::Section;

/// Those of a gateway, and of `serve`, which is a gateway and its delivery in one.
const OF_GATEWAY: &[&str] = &["gateway", "admin", "journal", "log", "types", "tables", "sinks", "upstreams"];
/// Those of a writer.
const OF_WRITER: &[&str] = &["writer", "log", "sinks"];

/// Whether a role has a table of this name.
pub(super) fn is_known(name: &str) -> bool {
    OF_GATEWAY.contains(&name) || OF_WRITER.contains(&name)
}

/// Reports the tables that a gateway doesn't read.
pub(super) fn check_of_gateway(reader: &mut Reader<'_>, file: &Section<'_>) {
    let help = "run `forebay writer` with it, or give each role a file of its own";
    check(reader, file, OF_GATEWAY, OF_WRITER, ("a writer's table, and this is a gateway", help));
}

/// Reports the tables that a writer doesn't read.
pub(super) fn check_of_writer(reader: &mut Reader<'_>, file: &Section<'_>) {
    let help = "run `forebay gateway` or `forebay serve` with it, or give each role a file of its own";
    check(reader, file, OF_WRITER, OF_GATEWAY, ("a gateway's table, and this is a writer", help));
}

fn check(
    reader: &mut Reader<'_>,
    file: &Section<'_>,
    own: &[&str],
    others: &[&str],
    (whose, help): (&str, &'static str),
) {
    reader.check_keys(file, &[own, others].concat());
    for name in others.iter().filter(|name| !own.contains(name)) {
        let Some((key, _)) = file.entry(name) else { continue };
        let title = format!("`{name}` is {whose}");
        reader.push(Mistake::new(title, file.spot_of(key), "not read here").help(help.to_owned()));
    }
}
