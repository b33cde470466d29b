//! `[upstreams.X]`: the writers that a gateway's sinks of kind `writer` use.

use std::collections::BTreeMap;
use std::path::Path;

use net::http_client::Endpoint;
use settings::{
    Diagnostic, InvalidValue, Kind, Located, PATH, Section, Setting, SettingsReader, SourceSpan, URL, Unset, names,
    path, words,
};
use sink_remote::{BearerToken, Spread, UpstreamConfig, Writers};
use text::OperatorCommand;
use toml::de::DeValue;

use crate::etcd;
use crate::flags::Flags;
use crate::role::Role;
use crate::server_address;

/// The settings of `[upstreams.X]`.
pub(crate) const SETTINGS: &[Setting] = &[
    Setting::new(
        "servers",
        Kind::Either(&[Kind::List(&URL), Kind::Names(&URL)]),
        "the writers' addresses. A table names them, for `mode = \"all\"`: `servers = { a = \"http://w1:8081\", b = \"http://w2:8081\" }`",
    )
    .or(Unset::Described("required without `dns` and `etcd`"))
    .example("[\"http://w1:8081\", \"http://w2:8081\"]"),
    Setting::new(
        "dns",
        URL,
        "instead of `servers`: an address whose host DNS resolves to the writers. The gateway resolves it every 5 s \
         ([when an address leaves the set](../../guides/discovery.md#dns))",
    )
    .example("\"http://tasks.writer:8081\""),
    MODE,
    SPREAD,
    RESPONSE_TIMEOUT,
    Setting::text(
        "token",
        "a token with the scope `deliver`, as the command `token new` prints it. `forebay check` warns if it is sent unencrypted to an `http://` \
         address",
    )
    .example("\"${WRITER_TOKEN}\""),
    Setting::new("ca", PATH, "a PEM file with the authorities that are trusted")
        .or(Unset::Described("the machine's authorities"))
        .example("\"ca.pem\""),
];
const MODE: Setting = Setting::choice(
    "mode",
    &words(&MODES),
    "`one`: one writer stores each event. `all`: every writer stores all events ([fan-out](upstreams.md#fan-out))",
)
.or(Unset::Text("one"));
const SPREAD: Setting = Setting::choice(
    "spread",
    &words(&SPREADS),
    "`lane`: a lane keeps its writer. `batch`: each batch goes to the faster of two randomly selected writers",
)
.or(Unset::Text("lane"));
const RESPONSE_TIMEOUT: Setting = Setting::duration(
    "response_timeout",
    (limits::RESPONSE_TIMEOUT_MIN, limits::RESPONSE_TIMEOUT_MAX),
    "how long a writer may send heartbeats before its answer: at least [ten times the `timeout`](../../guides/two-services.md#several-writers) \
     of its sinks",
)
.or(Unset::Duration(limits::RESPONSE_TIMEOUT));
const MODES: [(&str, bool); 2] = [("one", false), ("all", true)];
/// The settings of `[upstreams.X.etcd]` that writers don't have.
pub(crate) const OF_ETCD: &[Setting] = &[ALLOW_HTTP];
const ALLOW_HTTP: Setting = Setting::flag(
    "allow_http",
    "`true` lets Forebay use `http://` addresses of other machines from etcd although a `token` or a `ca` is set",
);
/// The variable, like the flag `--writer`, names the writers of a gateway without a file.
pub(crate) const VARIABLE: &str = "FOREBAY_WRITERS";
const SPREADS: [(&str, Spread); 2] = [("lane", Spread::Lane), ("batch", Spread::Batch)];
/// The token for these writers.
const TOKEN: &str = "FOREBAY_WRITERS_TOKEN";
/// The authorities that have signed their certificates.
const CA: &str = "FOREBAY_WRITERS_CA";
/// The upstream that both define.
pub(crate) const IMPLIED: &str = "writers";

/// An upstream, and where its table is.
#[derive(Clone, Debug)]
pub(crate) struct Upstream {
    pub(crate) upstream: sink_remote::Upstream,
    span: SourceSpan,
}

/// All upstreams, by name; `None` for one with mistakes.
#[derive(Debug, Default)]
pub(crate) struct Upstreams(BTreeMap<String, Option<Upstream>>);

/// Reads the tables, `--writer` and `FOREBAY_WRITERS`; relative paths start at `folder`.
pub(crate) fn read(reader: &mut SettingsReader<'_>, parent: &Section<'_>, flags: &Flags, folder: &Path) -> Upstreams {
    let mut upstreams = Upstreams::default();
    for section in reader.tables(parent) {
        let upstream = read_one(reader, &section, folder);
        upstreams.0.insert(section.name().to_owned(), upstream);
    }
    let named = reader.texts_of_flag_or_variable("writer", &flags.writers, VARIABLE);
    let Some(named) = named else { return upstreams };
    let token = reader.text_of_variable(TOKEN, token).map(|found| found.value);
    let ca = reader.text_of_variable(CA, |text| path::parse(text, path::PEM)).map(|found| found.value);
    if flags.role == Some(Role::Serve) {
        let title = "conflict: `forebay serve` uses no writers";
        let gateway = OperatorCommand::Run("gateway");
        let help = format!(
            "run {gateway} or set FOREBAY_ROLE=gateway; to store without writers, leave out --writer and FOREBAY_WRITERS"
        );
        reader.push(Diagnostic::new(title, named.span, "a gateway's writers").help(help));
        return upstreams;
    }
    if let Some(Upstream { span, .. }) = upstreams.0.values().flatten().next() {
        let mistake = Diagnostic::new(
            "conflict: the writers are configured twice",
            named.span.clone(),
            "in addition to the file's upstreams",
        );
        reader.push(mistake.also(span.clone(), "this upstream"));
    }
    let servers = servers(reader, "the address of a writer", named.value);
    let writers = servers.map(Writers::Listed);
    if let Some(writers) = writers.as_ref().filter(|_| token.is_some()) {
        warn_of_clear_token(reader, "the token of FOREBAY_WRITERS_TOKEN", named.span.clone(), writers);
    }
    let config = writers.map(|writers| UpstreamConfig {
        name: IMPLIED.to_owned(),
        writers,
        sends_to_all: false,
        spread: Spread::default(),
        token,
        ca,
        response_timeout: limits::RESPONSE_TIMEOUT,
    });
    let upstream = config.map(|config| Upstream { upstream: sink_remote::Upstream::new(config), span: named.span });
    upstreams.0.insert(IMPLIED.to_owned(), upstream);
    upstreams
}

fn read_one(reader: &mut SettingsReader<'_>, section: &Section<'_>, folder: &Path) -> Option<Upstream> {
    reader.check_keys(section, names(SETTINGS).chain([etcd::TABLE]));
    let token = reader.text(section, "token", token).map(|found| found.value);
    let ca = path::read(reader, section, "ca", folder, path::PEM).map(|found| found.value);
    let spread = reader
        .word(section, SPREAD.name, "is not a way to distribute batches", &SPREADS)
        .map(|found| found.value)
        .unwrap_or_default();
    let response_timeout = reader.duration_or_default(section, &RESPONSE_TIMEOUT);
    let writers = writers(reader, section, folder)?;
    let named = ["servers", "dns", etcd::TABLE].into_iter().find_map(|key| section.get(key));
    if let Some((span, _)) = named.filter(|_| token.is_some()) {
        warn_of_clear_token(reader, &format!("the token of `upstreams.{}`", section.name()), span, &writers);
    }
    let sends_to_all = sends_to_all(reader, section, &writers);
    let name = section.name().to_owned();
    let config = UpstreamConfig { name, writers, sends_to_all, spread, token, ca, response_timeout };
    Some(Upstream { upstream: sink_remote::Upstream::new(config), span: section.span().clone() })
}

fn writers(reader: &mut SettingsReader<'_>, section: &Section<'_>, folder: &Path) -> Option<Writers> {
    let errors_before = reader.errors();
    let dns = reader.text(section, "dns", |text| {
        server_address::parse(text).map_err(|error| server_address::not_of_writer(&error))
    });
    let (servers, listed_writers) = match section.get("servers") {
        Some((span, DeValue::Table(_))) => (Some(span), named(reader, section)),
        _ => {
            let found = reader.texts(section, "servers");
            let span = found.as_ref().map(|found| found.span.clone());
            (span, found.and_then(|found| listed(reader, section, found)))
        }
    };
    let etcd = etcd::section(reader, section);
    let registered = etcd.as_ref().and_then(|table| registered(reader, table, folder));
    let sources = [
        servers.map(|span| ("servers", span, "lists the writers")),
        dns.as_ref().map(|found| ("dns", found.span.clone(), "finds the writers by DNS")),
        etcd.map(|table| (etcd::TABLE, table.span().clone(), "finds the writers in etcd")),
    ];
    let sources: Vec<_> = sources.into_iter().flatten().collect();
    match sources.as_slice() {
        [] if reader.errors() == errors_before => {
            let help = format!(
                "name the writers, as in servers = [\"http://127.0.0.1:8081\"] or dns = \"http://writers:8081\", or add \
                 [upstreams.{}.etcd]",
                section.name()
            );
            reader.missing(section, "servers", &help);
            None
        }
        [] => None,
        [_] if reader.errors() > errors_before => None,
        [_] => listed_writers.or(dns.map(|found| Writers::Dns(found.value))).or(registered),
        [(first, span, label), others @ ..] => {
            for (name, other, other_label) in others {
                let title = format!("conflict: `{}` can't be used with `{first}`", section.key_path(name));
                let mistake = Diagnostic::new(title, other.clone(), *other_label).also(span.clone(), *label);
                reader.push(mistake.help("remove one of them".to_owned()));
            }
            None
        }
    }
}

/// Reads the etcd in which the writers register.
pub(crate) fn registered(reader: &mut SettingsReader<'_>, table: &Section<'_>, folder: &Path) -> Option<Writers> {
    reader.check_keys(table, names(etcd::SETTINGS).chain(names(OF_ETCD)));
    let allows_http = reader.boolean_or_default(table, &ALLOW_HTTP);
    let etcd = etcd::read(reader, table, folder)?;
    Some(Writers::Etcd { etcd, allows_http })
}

/// Reads a list of addresses.
fn listed(
    reader: &mut SettingsReader<'_>,
    section: &Section<'_>,
    found: Located<Vec<Located<String>>>,
) -> Option<Writers> {
    if found.value.is_empty() {
        no_writer(reader, section, found.span);
        return None;
    }
    servers(reader, &section.key_path("servers").to_string(), found.value).map(Writers::Listed)
}

/// Reads a table of addresses by name.
fn named(reader: &mut SettingsReader<'_>, section: &Section<'_>) -> Option<Writers> {
    let table = reader.table(section, "servers");
    let (mut names, mut texts) = (Vec::new(), Vec::new());
    for (key, value) in table.entries() {
        let name: &str = key.get_ref();
        let path = table.key_path(name);
        names.push(name.to_owned());
        texts.push(reader.string(&path, table.span_of(value), value.get_ref())?);
    }
    if names.is_empty() {
        no_writer(reader, section, table.span().clone());
        return None;
    }
    let servers = servers(reader, &section.key_path("servers").to_string(), texts)?;
    Some(Writers::Named(names.into_iter().zip(servers).collect()))
}

fn no_writer(reader: &mut SettingsReader<'_>, section: &Section<'_>, span: SourceSpan) {
    let title = format!("missing value for `{}`", section.key_path("servers"));
    reader.push(Diagnostic::new(title, span, "empty"));
}

pub(crate) fn servers(
    reader: &mut SettingsReader<'_>,
    name: &str,
    texts: Vec<Located<String>>,
) -> Option<Vec<Endpoint>> {
    let mut servers = Vec::new();
    for Located { value, span } in &texts {
        match server_address::parse(value) {
            Ok(endpoint) if servers.contains(&endpoint) => {
                reader.push(Diagnostic::new(
                    format!("conflict: `{name}` names a writer twice"),
                    span.clone(),
                    "named before",
                ));
            }
            Ok(endpoint) => servers.push(endpoint),
            Err(error) => {
                let title = format!("invalid value for `{name}`");
                reader.push(Diagnostic::new(title, span.clone(), error.to_string()));
            }
        }
    }
    (servers.len() == texts.len()).then_some(servers)
}

/// Warns of a token that is sent without TLS: others on the network could read and use it.
pub(crate) fn warn_of_clear_token(reader: &mut SettingsReader<'_>, token: &str, span: SourceSpan, writers: &Writers) {
    let is_in_clear = match writers {
        Writers::Listed(list) => list.iter().any(Endpoint::is_in_clear),
        Writers::Named(list) => list.iter().any(|(_, server)| server.is_in_clear()),
        Writers::Dns(server) => server.is_in_clear(),
        Writers::Etcd { allows_http, .. } => *allows_http,
    };
    if !is_in_clear {
        return;
    }
    let title = format!("{token} is sent without TLS");
    let help = "use https:// and [writer.tls], unless the network between the two is trusted";
    reader.push(Diagnostic::warning(title, span, "others on the network can read it").help(help.to_owned()));
}

/// Whether each event goes to all writers, which then need names, or to one of them.
fn sends_to_all(reader: &mut SettingsReader<'_>, section: &Section<'_>, writers: &Writers) -> bool {
    let mode = reader.word(section, MODE.name, "is not a mode of an upstream", &MODES);
    let Some(mode) = mode.filter(|mode| mode.value) else { return false };
    let label = match writers {
        Writers::Named(_) => return true,
        Writers::Dns(_) => "DNS gives no names",
        Writers::Etcd { .. } => "etcd gives no names",
        Writers::Listed(_) => "a list has no names",
    };
    let title = format!("conflict: `{}` = \"all\" needs names for the servers", section.key_path("mode"));
    let help = "name them, as in servers = { a = \"http://w1:8081\", b = \"http://w2:8081\" }";
    reader.push(Diagnostic::new(title, mode.span, label).help(help.to_owned()));
    true
}

pub(crate) fn token(text: &str) -> Result<BearerToken, InvalidValue> {
    let wanted = "expected a token with the scope deliver, as `forebay token` prints it";
    BearerToken::new(text).ok_or_else(|| InvalidValue::new("is not a token", wanted))
}

impl Upstreams {
    /// Whether there is any.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All upstreams without mistakes.
    pub(crate) fn into_valid(self) -> Vec<sink_remote::Upstream> {
        self.0.into_values().flatten().map(|upstream| upstream.upstream).collect()
    }

    /// The upstream of this name; `None` if it has mistakes, which were reported.
    ///
    /// # Errors
    /// There is no upstream of this name.
    pub(crate) fn find(&self, name: &str) -> Result<Option<&Upstream>, InvalidValue> {
        let known: Vec<&str> = self.0.keys().map(String::as_str).collect();
        let unknown = || InvalidValue::new("names an upstream that doesn't exist", "no such upstream");
        let help = match known.as_slice() {
            [] => format!("add [upstreams.{name}] with servers = [\"http://127.0.0.1:8081\"]"),
            known => format!("known upstreams: {}", known.join(", ")),
        };
        self.0.get(name).map(Option::as_ref).ok_or_else(|| unknown().help(help))
    }
}
