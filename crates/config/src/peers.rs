//! `[console.peers]`: the other processes that a console shows. The settings are those of upstreams, and several sources may be combined:
//! a fleet has gateways in a list and writers in DNS.

use std::path::Path;

use settings::{
    Diagnostic, InvalidValue, Kind, Located, PATH, Section, Setting, SettingsReader, URL, Unset, files, names, path,
};
use sink_remote::{BearerToken, Spread, UpstreamConfig, Writers};

use crate::etcd;
use crate::server_address;
use crate::upstreams;

/// The table's name.
pub(crate) const TABLE: &str = "peers";
/// The settings of the table.
pub(crate) const SETTINGS: &[Setting] = &[
    Setting::new("servers", Kind::List(&URL), "the addresses of the processes' admin ports")
        .or(Unset::Described("none; `servers`, `dns` and `etcd` can be combined"))
        .example("[\"http://gateway-2:9000\"]"),
    Setting::new(
        "dns",
        URL,
        "an address whose host DNS resolves to processes with this admin port. Forebay resolves it every 5 s while a console is open",
    )
    .example("\"http://tasks.writer:9001\""),
    Setting::text(
        "token",
        "a token that the processes accept: with the scope `read` to see them, with `admin` to operate them",
    )
    .example("\"${CONSOLE_TOKEN}\""),
    Setting::new("token_file", PATH, "a file with this token, instead of `token`").example("\"console.token\""),
    Setting::new("ca", PATH, "a PEM file with the authorities that are trusted")
        .or(Unset::Described("the machine's authorities"))
        .example("\"ca.pem\""),
];
/// The name of the upstreams in log lines.
const NAME: &str = "console.peers";

/// Reads the table within `console`; relative paths start at `folder`. One upstream for each source of names.
pub(crate) fn read(reader: &mut SettingsReader<'_>, console: &Section<'_>, folder: &Path) -> Vec<UpstreamConfig> {
    let section = reader.table(console, TABLE);
    reader.check_keys(&section, names(SETTINGS).chain([etcd::TABLE]));
    let token = token(reader, &section, folder);
    let ca = path::read(reader, &section, "ca", folder, path::PEM).map(|found| found.value);
    let mut upstreams = Vec::new();
    for (span, writers) in sources(reader, &section, folder) {
        if token.is_some() {
            upstreams::warn_of_clear_token(reader, "the token of `console.peers`", span, &writers);
        }
        upstreams.push(UpstreamConfig {
            name: NAME.to_owned(),
            writers,
            sends_to_all: false,
            spread: Spread::default(),
            token: token.clone(),
            ca: ca.clone(),
            response_timeout: limits::RESPONSE_TIMEOUT,
        });
    }
    upstreams
}

fn sources(
    reader: &mut SettingsReader<'_>,
    section: &Section<'_>,
    folder: &Path,
) -> Vec<(settings::SourceSpan, Writers)> {
    let mut sources = Vec::new();
    if let Some(Located { value, span }) = reader.texts(section, "servers") {
        let servers = upstreams::servers(reader, &section.key_path("servers").to_string(), value);
        sources.extend(servers.filter(|servers| !servers.is_empty()).map(|servers| (span, Writers::Listed(servers))));
    }
    let dns = reader.text(section, "dns", |text| {
        server_address::parse(text).map_err(|error| InvalidValue::new("is not an address", error.to_string()))
    });
    sources.extend(dns.map(|found| (found.span, Writers::Dns(found.value))));
    if let Some(table) = etcd::section(reader, section) {
        let registered = upstreams::registered(reader, &table, folder);
        sources.extend(registered.map(|writers| (table.span().clone(), writers)));
    }
    sources
}

fn token(reader: &mut SettingsReader<'_>, section: &Section<'_>, folder: &Path) -> Option<BearerToken> {
    let token = reader.text(section, "token", upstreams::token);
    let file = path::read(reader, section, "token_file", folder, "expected the path of a file with a token");
    let Some(Located { value, span }) = file else { return token.map(|found| found.value) };
    if let Some(token) = token {
        let title = format!("conflict: `{}` and `token_file` are both set", section.key_path("token"));
        reader.push(
            Diagnostic::new(title, token.span, "the token")
                .also(span, "the file")
                .help("remove one of them".to_owned()),
        );
        return None;
    }
    let read = files::read(&value).map_err(|error| error.to_string());
    let read = read.and_then(|bytes| {
        let text = str::from_utf8(files::content(&bytes)).unwrap_or_default();
        BearerToken::new(text.trim())
            .ok_or_else(|| "it has no token: write one into it, as `token new` prints it".to_owned())
    });
    match read {
        Ok(token) => Some(token),
        Err(reason) => {
            let title = format!("cannot use the file of `{}`", section.key_path("token_file"));
            reader.push(Diagnostic::new(title, span, reason));
            None
        }
    }
}
