//! `[upstreams.X.etcd]` and `[writer.etcd]`: the etcd in which writers register, with the same settings for both roles.

use std::path::Path;

use net::http_client::Endpoint;
use settings::{Diagnostic, InvalidValue, Kind, Located, PATH, Section, Setting, SettingsReader, URL, Unset, path};
use sink_remote::{EtcdAccount, EtcdConfig};

use crate::server_address;

/// The settings of both roles.
pub(crate) const SETTINGS: &[Setting] = &[
    Setting::new(
        ENDPOINTS,
        Kind::List(&URL),
        "etcd's members. If one doesn't answer, Forebay asks the next one",
    )
    .required()
    .example("[\"https://etcd1:2379\", \"https://etcd2:2379\"]"),
    Setting::text("prefix", "the prefix of the writers' keys, with a slash at the end").or(Unset::Text(PREFIX)),
    Setting::text("user", "the user, if etcd has authentication enabled").example("\"forebay\""),
    Setting::text(
        "password",
        "the user's password. It is sent unencrypted to an `http://` endpoint on another machine; `forebay check` warns of that",
    )
    .example("\"${ETCD_PASSWORD}\""),
    Setting::new("ca", PATH, "a PEM file with the authorities that are trusted for etcd")
        .or(Unset::Described("the machine's authorities"))
        .example("\"ca.pem\""),
];
const ENDPOINTS: &str = "endpoints";
/// The table's name.
pub(crate) const TABLE: &str = "etcd";
/// The default prefix of both roles.
const PREFIX: &str = "/forebay/writers/";
const PREFIX_MAX: usize = 256;

/// The table `etcd` within `parent`, if the file has it or the environment sets its endpoints.
pub(crate) fn section<'d>(reader: &mut SettingsReader<'_>, parent: &Section<'d>) -> Option<Section<'d>> {
    let errors_before = reader.errors();
    let section = reader.table(parent, TABLE);
    let is_set = parent.get(TABLE).is_some() || reader.is_set(&section, ENDPOINTS);
    (is_set && reader.errors() == errors_before).then_some(section)
}

/// Reads the table; relative paths start at `folder`. `None` if it has mistakes.
pub(crate) fn read(reader: &mut SettingsReader<'_>, section: &Section<'_>, folder: &Path) -> Option<EtcdConfig> {
    let errors_before = reader.errors();
    let endpoints = endpoints(reader, section);
    let prefix = reader.text_or(section, "prefix", PREFIX, prefix);
    let account = account(reader, section, endpoints.as_deref().unwrap_or_default());
    let ca = path::read(reader, section, "ca", folder, path::PEM).map(|found| found.value);
    let config = EtcdConfig { endpoints: endpoints?, prefix: prefix?, account, ca };
    (reader.errors() == errors_before).then_some(config)
}

fn endpoints(reader: &mut SettingsReader<'_>, section: &Section<'_>) -> Option<Vec<Endpoint>> {
    let errors_before = reader.errors();
    let Some(Located { value, span }) = reader.texts(section, ENDPOINTS) else {
        if reader.errors() == errors_before {
            let help = "name the members, as in endpoints = [\"http://etcd1:2379\", \"http://etcd2:2379\"]";
            reader.missing(section, ENDPOINTS, help);
        }
        return None;
    };
    let name = section.key_path(ENDPOINTS).to_string();
    if value.is_empty() {
        reader.push(Diagnostic::new(format!("missing value for `{name}`"), span, "empty"));
        return None;
    }
    let parsed: Vec<_> = value.iter().filter_map(|text| endpoint(reader, &name, text)).collect();
    (parsed.len() == value.len()).then_some(parsed)
}

fn endpoint(reader: &mut SettingsReader<'_>, name: &str, text: &Located<String>) -> Option<Endpoint> {
    let parsed = server_address::parse(&text.value);
    if let Err(error) = &parsed {
        let title = format!("invalid value for `{name}`");
        let help = "set `user` and `password` separately".to_owned();
        reader.push(Diagnostic::new(title, text.span.clone(), error.to_string()).help(help));
    }
    parsed.ok()
}

fn account(reader: &mut SettingsReader<'_>, section: &Section<'_>, endpoints: &[Endpoint]) -> Option<EtcdAccount> {
    let user = reader.text(section, "user", not_empty);
    let password = reader.text(section, "password", not_empty);
    let (Some(user), Some(password)) = (&user, &password) else {
        let lone = user.map(|found| (found.span, "password")).or(password.map(|found| (found.span, "user")));
        if let Some((span, missing)) = lone.filter(|(_, missing)| !reader.is_set(section, missing)) {
            let title = format!("missing setting `{}`", section.key_path(missing));
            reader.push(Diagnostic::new(title, span, "needs it"));
        }
        return None;
    };
    if endpoints.iter().any(Endpoint::is_in_clear) {
        let title = format!("`{}` is sent without TLS", section.key_path("password"));
        let help = "use https:// endpoints, unless the network between the two is trusted".to_owned();
        let label = "others on the network can read the password";
        reader.push(Diagnostic::warning(title, user.span.clone(), label).help(help));
    }
    Some(EtcdAccount { user: user.value.clone(), password: password.value.clone() })
}

fn not_empty(text: &str) -> Result<String, InvalidValue> {
    if text.is_empty() {
        Err(InvalidValue::new("is empty", "is empty: set a value, or remove the setting"))
    } else {
        Ok(text.to_owned())
    }
}

/// A prefix ends with a slash. `/a/b` would also match the key `/a/bc`.
fn prefix(text: &str) -> Result<String, InvalidValue> {
    let is_good = text.ends_with('/') && text.len() <= PREFIX_MAX && text.bytes().all(|byte| byte.is_ascii_graphic());
    let wanted = || format!("expected at most {PREFIX_MAX} ASCII characters, with a slash at the end, as in {PREFIX}");
    if is_good { Ok(text.to_owned()) } else { Err(InvalidValue::new("is not a prefix of keys", wanted())) }
}
