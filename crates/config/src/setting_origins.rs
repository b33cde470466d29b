//! Where each setting of a configuration comes from, with stars instead of secrets: for the admin port.

use std::collections::BTreeMap;

use settings::{Environment, Unset, files, variable_name};
use toml::de::{DeTable, DeValue};

use crate::declared::{DeclaredTable, declared};
use crate::flags::Flags;
use crate::masking::masked;
use crate::role::Role;

/// The longest value that is shown, in bytes.
const VALUE_BYTES_MAX: usize = 1_000;
/// The tables whose defaults apply although the file lacks them.
const ALWAYS_THERE: [&str; 4] = ["gateway", "admin", "journal", "log"];

/// Where a setting comes from. A later one replaces an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingSource {
    /// Nothing sets it.
    Default,
    /// The configuration file, in this line, from 1.
    File {
        /// The line of its value.
        line: usize,
    },
    /// A variable.
    Environment,
    /// A flag.
    Flag,
}

/// A setting with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingOrigin {
    /// Its path: `sinks.search.url`.
    pub name: String,
    /// The value as it may be shown: as in the file, or as in the variable or flag.
    pub value: String,
    /// Its source.
    pub source: SettingSource,
}

/// The settings of a valid configuration, by name. `bytes` is the content of its file; none without one.
#[must_use]
pub fn setting_origins(bytes: &[u8], environment: &Environment, flags: &Flags) -> Vec<SettingOrigin> {
    let text = String::from_utf8_lossy(files::content(bytes));
    let (document, _) = DeTable::parse_recoverable(&text);
    let declared = declared();
    let mut found = Found { masked: masked(&text), text: &text, declared: &declared, settings: BTreeMap::new() };
    let role = flags.role.unwrap_or(Role::Serve);
    found.add_defaults(document.get_ref(), role);
    found.add_table("", document.get_ref());
    found.add_variables(document.get_ref(), environment);
    found.add_flags(flags, role);
    let origin = |(name, (value, source))| SettingOrigin { name, value, source };
    found.settings.into_iter().map(origin).collect()
}

struct Found<'t> {
    text: &'t str,
    masked: String,
    declared: &'t [DeclaredTable],
    settings: BTreeMap<String, (String, SettingSource)>,
}

impl Found<'_> {
    fn add(&mut self, name: String, value: &str, source: SettingSource) {
        let mut value = value.split_whitespace().collect::<Vec<_>>().join(" ");
        if value.len() > VALUE_BYTES_MAX {
            value.truncate(value.floor_char_boundary(VALUE_BYTES_MAX));
            value.push('…');
        }
        self.settings.insert(name, (value, source));
    }

    /// The defaults of tables that exist once, if they are there or always are.
    fn add_defaults(&mut self, document: &DeTable<'_>, role: Role) {
        for table in self.declared {
            let Some(first) = table.path.first() else { continue };
            let is_there = document.iter().any(|(key, _)| key.get_ref() == first)
                || ALWAYS_THERE.contains(first) && role != Role::Writer
                || *first == "writer" && role == Role::Writer;
            if !is_there || table.path.len() > 1 || table.is_list {
                continue;
            }
            for setting in &table.settings {
                if !matches!(setting.default, Unset::None | Unset::Required | Unset::Described(_) | Unset::Text("")) {
                    self.add(table.key(setting), &setting.default.to_string(), SettingSource::Default);
                }
            }
        }
    }

    fn add_table(&mut self, path: &str, table: &DeTable<'_>) {
        for (key, value) in table {
            let (key, span) = (key.get_ref(), value.span());
            let name = if path.is_empty() { key.to_string() } else { format!("{path}.{key}") };
            let is_inline = self.text.get(span.start..).is_some_and(|text| text.starts_with(['{', '[']));
            let before = self.text.get(..span.start).unwrap_or_default().trim_end_matches([' ', '\t']);
            let is_header = is_inline && (before.is_empty() || before.ends_with(['\n', '[']));
            match value.get_ref() {
                DeValue::Table(inner) if !is_inline || is_header => self.add_table(&name, inner),
                DeValue::Array(elements) if self.is_list(&name) => {
                    for (at, element) in elements.iter().enumerate() {
                        if let DeValue::Table(inner) = element.get_ref() {
                            self.add_table(&format!("{name}[{at}]"), inner);
                        }
                    }
                }
                _ => {
                    let line = 1 + self.text[..span.start].matches('\n').count();
                    let value = self.masked.get(span).unwrap_or_default().to_owned();
                    self.add(name, &value, SettingSource::File { line });
                }
            }
        }
    }

    /// Whether the file has a list of such tables.
    fn is_list(&self, name: &str) -> bool {
        self.declared.iter().any(|table| table.is_list && table.path == [name])
    }

    fn add_variables(&mut self, document: &DeTable<'_>, environment: &Environment) {
        let names = self.variables(document);
        for variable in environment.own_names() {
            let (setting, raw) = (names.get(variable), environment.raw(variable));
            let Some((setting, raw)) = setting.zip(raw) else { continue };
            let shown = masked(&format!("{variable}={raw}"));
            let value = shown.split_once('=').map_or("", |(_, value)| value);
            self.add(setting.clone(), value, SettingSource::Environment);
        }
    }

    /// The settings of all variables, also of the tables that the operator has named.
    fn variables(&self, document: &DeTable<'_>) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        for table in self.declared.iter().filter(|table| !table.is_list) {
            for path in paths(table, document) {
                for setting in table.settings.iter().filter(|setting| setting.kind.has_variable()) {
                    let parts = path.iter().map(String::as_str).chain([setting.name]);
                    let name = parts.clone().collect::<Vec<_>>().join(".");
                    let variable = variable_name(parts);
                    found.insert(format!("{variable}{}", settings::FILE), name.clone());
                    found.insert(variable, name);
                }
            }
        }
        found
    }

    fn add_flags(&mut self, flags: &Flags, role: Role) {
        let table = if role == Role::Writer { "writer" } else { "gateway" };
        let of_table = [("listen", &flags.listen), ("admin", &flags.admin)];
        for (name, value) in of_table.map(|(name, value)| (format!("{table}.{name}"), value)) {
            if let Some(value) = value {
                self.add(name, value, SettingSource::Flag);
            }
        }
        if let Some(level) = &flags.log_level {
            self.add("log.level".to_owned(), level, SettingSource::Flag);
        }
        if !flags.writers.is_empty() {
            self.add("writers".to_owned(), &masked(&flags.writers.join(", ")), SettingSource::Flag);
        }
    }
}

/// The paths of a table in this file: more than one if the operator names such tables.
fn paths(table: &DeclaredTable, document: &DeTable<'_>) -> Vec<Vec<String>> {
    let whole: Vec<String> = table.path.iter().map(|part| (*part).to_owned()).collect();
    match &table.path[..] {
        [outer, "X", ..] => {
            let named = document.iter().find(|(key, _)| key.get_ref() == outer);
            let Some(DeValue::Table(named)) = named.map(|(_, value)| value.get_ref()) else { return Vec::new() };
            let with_name = |name: &str| [&whole[..1], &[name.to_owned()], &whole[2..]].concat();
            named.iter().map(|(name, _)| with_name(name.get_ref())).collect()
        }
        _ => vec![whole],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"# Comment
[gateway]
listen = "127.0.0.1:8080"

[types.orders]
routes = ["db", { to = "hook", when = "paid" }]

[sinks.db]
kind = "postgres"
url = "postgres://writer:sesame@db/events"
table = "events"
columns = { at = "/at" }

[sinks.db.shards.a]
url = "postgres://writer:sesame@a/events"

[sinks."web.hook"]
kind = "webhook"
url = "https://example.org/sesame"
secret = """
sesame"""
"#;

    fn found(variables: &[(&str, &str)], flags: &Flags) -> BTreeMap<String, SettingOrigin> {
        let environment = Environment::of(variables.iter().map(|(name, value)| ((*name).into(), (*value).into())));
        let origins = setting_origins(FILE.as_bytes(), &environment, flags);
        origins.into_iter().map(|origin| (origin.name.clone(), origin)).collect()
    }

    #[test]
    fn file_settings_have_lines_and_no_secrets() {
        let found = found(&[], &Flags::default());
        let line = |name: &str| match found[name].source {
            SettingSource::File { line } => line,
            source => panic!("{name}: {source:?}"),
        };
        let lines = ["gateway.listen", "sinks.db.url", "sinks.db.shards.a.url", "sinks.web.hook.secret"].map(line);
        assert_eq!(lines, [3, 10, 15, 20]);
        assert_eq!(found["types.orders.routes"].value, r#"["db", { to = "hook", when = "paid" }]"#);
        assert_eq!(found["sinks.db.url"].value, r#""postgres://writer:******@db/events""#);
        assert_eq!(found["sinks.db.columns"].value, r#"{ at = "/at" }"#);
        assert!(found.values().all(|origin| !origin.value.contains("sesame")), "{found:?}");
        assert_eq!(found["log.level"].source, SettingSource::Default);
        assert!(!found.keys().any(|name| name.starts_with("writer.") || name.starts_with("otlp.")), "{found:?}");
    }

    #[test]
    fn table_at_the_very_beginning_is_a_table() {
        for text in ["[types.a]\nread = \"db\"", "  [types.a]\r\nread = \"db\"", "types.a.read = \"db\""] {
            let found = setting_origins(text.as_bytes(), &Environment::default(), &Flags::default());
            let of_file: Vec<_> = found
                .iter()
                .filter(|origin| origin.source != SettingSource::Default)
                .map(|origin| &*origin.name)
                .collect();
            assert_eq!(of_file, ["types.a.read"], "{text}");
        }
    }

    #[test]
    fn variables_and_flags_replace_the_file() {
        let variables = [
            ("FOREBAY_SINKS_DB_URL", "postgres://writer:sesame@other/events"),
            ("FOREBAY_SINKS_WEB_HOOK_URL", "https://other.example.org/sesame"),
            ("FOREBAY_GATEWAY_LISTEN", "0.0.0.0:1"),
            ("FOREBAY_CONFIG", "a.toml"),
        ];
        let flags = Flags { listen: Some("0.0.0.0:2".into()), ..Flags::default() };
        let found = found(&variables, &flags);
        let is = |name: &str| (found[name].value.as_str(), found[name].source);
        assert_eq!(is("sinks.db.url"), ("postgres://writer:******@other/events", SettingSource::Environment));
        assert_eq!(is("sinks.web.hook.url"), ("https://other.example.org/******", SettingSource::Environment));
        assert_eq!(is("gateway.listen"), ("0.0.0.0:2", SettingSource::Flag));
        assert!(!found.values().any(|origin| origin.value.contains("sesame")), "{found:?}");
    }
}
