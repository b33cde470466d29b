//! `shard_by` of a sink: databases for some of a pointer's values, and a common one for all others.
//!
//! Each database is a separate sink, with its own lanes, cursors, backlog and dead letters. A route to the sink becomes
//! routes to all of them, whose conditions assign each event to exactly one, which stores it once.

use std::collections::BTreeMap;
use std::fmt::Write;

use ::sink::Folders;
use json::JsonPointer;
use ledger::Condition;
use settings::{Diagnostic, InvalidValue, Located, Section, SettingsReader, SourceSpan, pointer};
use sink_remote::RemoteConfig;

use crate::sinks::kinds;
use crate::sinks::name::SinkName;
use crate::sinks::route::Route;
use crate::sinks::sink_config::SinkConfig;

/// The setting that chooses the shard.
pub(crate) const SHARD_BY: &str = "shard_by";
/// The table of the shards.
pub(crate) const SHARDS: &str = "shards";
/// The settings of a shard of a writer's sink: the writer has its address.
const REMOTE_KEYS: [&str; 1] = ["values"];

/// The databases of a sink in addition to the common one.
#[derive(Debug)]
pub(crate) struct Shards {
    /// The value that decides, as conditions write it.
    member: String,
    pub(crate) all: Vec<Shard>,
}

/// A database for some values.
#[derive(Debug)]
pub(crate) struct Shard {
    pub(crate) sink: SinkName,
    pub(crate) span: SourceSpan,
    pub(crate) store: SinkConfig,
    values: Located<Vec<String>>,
}

/// Reads them. `None` if the sink has none, or after an error, which is reported.
pub(crate) fn read(
    reader: &mut SettingsReader<'_>,
    section: &Section<'_>,
    folders: Folders<'_>,
    common: &SinkConfig,
) -> Option<Shards> {
    let kind = match common {
        SinkConfig::Store(store) => store.kind(),
        SinkConfig::Remote(config) => kinds::find(config.store)?,
        SinkConfig::RemoteObjects(_) => return None,
    };
    if !kind.has_key(SHARDS) {
        return None;
    }
    let errors_before = reader.errors();
    let by = reader.text(section, SHARD_BY, member);
    let table = reader.table(section, SHARDS);
    let tables = reader.tables(&table);
    let Some(by) = by else {
        if let Some(first) = tables.first().filter(|_| reader.errors() == errors_before) {
            let title = format!("missing setting `{}`", section.key_path(SHARD_BY));
            let mistake = Diagnostic::new(title, first.span().clone(), "the value that selects the shard is not set");
            reader.push(mistake.help("name the value that selects the shard, as in shard_by = \"/tenant\"".to_owned()));
        }
        return None;
    };
    if tables.is_empty() && reader.errors() == errors_before {
        let title = format!("unused setting `{}`: there are no shards", section.key_path(SHARD_BY));
        let help = format!("add one, as in [{}.acme] with a `url`", section.key_path(SHARDS));
        reader.push(Diagnostic::new(title, by.span, "every event would go to the common database").help(help));
    }
    let all: Vec<Shard> = tables.iter().filter_map(|table| shard(reader, section, table, folders, common)).collect();
    check_values(reader, &section.key_path(SHARDS).to_string(), &all);
    let shards = Shards { member: by.value, all };
    if reader.errors() == errors_before {
        shards.check_length(reader, &section.key_path(SHARDS).to_string());
    }
    (reader.errors() == errors_before).then_some(shards)
}

/// The member of a payload at a pointer, as conditions write it.
fn member(text: &str) -> Result<String, InvalidValue> {
    let pointer: JsonPointer = pointer::parse(text)?;
    let mut member = "payload".to_owned();
    for step in pointer.as_str().split('/').skip(1) {
        if step.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(InvalidValue::new("names no member", "elements of lists can't select a shard"));
        }
        let name = step.replace("~1", "/").replace("~0", "~");
        // A text never fails to be written into a text.
        let _ = write!(member, "[{}]", quoted(&name));
    }
    if pointer.as_str().is_empty() {
        return Err(InvalidValue::new("names no member", "expected the pointer of a member, as /tenant"));
    }
    Ok(member)
}

/// A text, as conditions write it.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn shard(
    reader: &mut SettingsReader<'_>,
    sink: &Section<'_>,
    section: &Section<'_>,
    folders: Folders<'_>,
    common: &SinkConfig,
) -> Option<Shard> {
    let name = SinkName::new(&format!("{}-{}", sink.name(), section.name())).ok();
    if name.is_none() {
        let title = format!("invalid value for the name of a shard: `{}`", section.name());
        let label = "expected a-z, 0-9, `_` and `-`; the sink's name, `-` and this have at most 64 bytes together";
        reader.push(Diagnostic::new(title, section.span().clone(), label));
    }
    let store = match common {
        SinkConfig::Store(common) => {
            common.read_shard(reader, section, folders).map(|store| SinkConfig::Store(store.into()))
        }
        SinkConfig::Remote(common) => {
            reader.check_keys(section, REMOTE_KEYS);
            let sink = format!("{}-{}", common.sink, section.name());
            Some(SinkConfig::Remote(RemoteConfig { sink, ..common.clone() }))
        }
        SinkConfig::RemoteObjects(_) => None,
    };
    let values = reader.texts(section, "values");
    let values = match values {
        Some(Located { value, span }) => {
            Located { value: value.into_iter().map(|found| found.value).collect::<Vec<_>>(), span }
        }
        None => Located { value: vec![section.name().to_owned()], span: section.span().clone() },
    };
    if values.value.is_empty() {
        let title = format!("missing value for `{}`", section.key_path("values"));
        reader.push(Diagnostic::new(title, section.span().clone(), "this shard would get no event"));
    }
    Some(Shard { sink: name?, span: section.span().clone(), store: store?, values })
}

/// Each value belongs to one shard.
fn check_values(reader: &mut SettingsReader<'_>, table: &str, shards: &[Shard]) {
    let mut first: BTreeMap<&str, &Shard> = BTreeMap::new();
    for shard in shards {
        for value in &shard.values.value {
            if let Some(other) = first.insert(value, shard) {
                let title = format!("conflict: `{table}` has {} twice", quoted(value));
                let mistake = Diagnostic::new(title, shard.span.clone(), "here again");
                reader.push(mistake.also(other.span.clone(), "belongs to this one"));
            }
        }
    }
}

impl Shards {
    /// Reports values that are too long for the condition of the common database, which names them all. A route's own
    /// condition may still be too long together with them.
    fn check_length(&self, reader: &mut SettingsReader<'_>, table: &str) {
        let Err(invalid) = self.others_condition().parse::<Condition>() else { return };
        let length = |shard: &&Shard| shard.values.value.iter().map(String::len).sum::<usize>();
        let Some(longest) = self.all.iter().max_by_key(length) else { return };
        let title = format!("invalid value for `{table}`: the values of all shards are too long together");
        let mistake = Diagnostic::new(title, longest.values.span.clone(), invalid.message());
        let help = "one condition names all of them: use fewer or shorter values, or give some tenants another sink";
        reader.push(mistake.help(help.to_owned()));
    }

    /// The routes that a route to the sink is expanded to: one to the common database, and one to each shard.
    ///
    /// # Errors
    /// The reason why its condition can't be built.
    pub(crate) fn spread(&self, route: &Route) -> Result<Vec<Route>, String> {
        let mut routes = vec![Route { to: route.to.clone(), when: Some(narrowed(route, &self.others_condition())?) }];
        for shard in &self.all {
            let its = self.one_of_condition(&shard.values.value);
            routes.push(Route { to: shard.sink.clone(), when: Some(narrowed(route, &its)?) });
        }
        Ok(routes)
    }

    /// The sinks of the shards by the values of their events.
    pub(crate) fn by_value(&self) -> BTreeMap<String, SinkName> {
        let of_shard = |shard: &Shard| {
            let pair = |value: &String| (value.clone(), shard.sink.clone());
            shard.values.value.iter().map(pair).collect::<Vec<_>>()
        };
        self.all.iter().flat_map(of_shard).collect()
    }

    /// The condition of the common database.
    fn others_condition(&self) -> String {
        format!("!{}", self.one_of_condition(self.all.iter().flat_map(|shard| &shard.values.value)))
    }

    /// The condition that the member has one of these values. It is always true or false: an absent value is in no list.
    fn one_of_condition<'v>(&self, values: impl IntoIterator<Item = &'v String>) -> String {
        let forms: Vec<String> = values.into_iter().map(|value| forms(value)).collect();
        format!("({} in [{}])", self.member, forms.join(", "))
    }
}

/// A value as a text, and if it is written as a whole number as that too.
fn forms(value: &str) -> String {
    match value.parse::<i64>() {
        Ok(number) if number.to_string() == value && number >= 0 => format!("{}, {value}", quoted(value)),
        _ => quoted(value),
    }
}

/// A route's own condition, if it has one, together with another.
fn narrowed(route: &Route, by: &str) -> Result<Condition, String> {
    let text = match &route.when {
        None => by.to_owned(),
        // It may end in a comment.
        Some(when) if when.to_string().contains("//") => format!("{by} && ({when}\n)"),
        Some(when) => format!("{by} && ({when})"),
    };
    text.parse().map_err(|invalid: expression::InvalidExpression| invalid.message().to_string())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails loudly")]
mod tests {
    use super::*;

    #[test]
    fn pointer_is_a_member_for_any_names() {
        assert_eq!(member("/user/te~1n\"a~0nt").unwrap(), r#"payload["user"]["te/n\"a~nt"]"#);
        for wrong in ["", "/0", "/a/17", "tenant"] {
            assert!(member(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn numeric_value_matches_text_and_number() {
        assert_eq!(forms("acme"), r#""acme""#);
        assert_eq!(forms("42"), r#""42", 42"#);
        assert_eq!(forms("042"), r#""042""#);
        let holds = |payload: &str| {
            let condition: Condition =
                format!("(payload[\"t\"] in [{}, {}])", forms("42"), forms("a\"b")).parse().unwrap();
            condition.holds(payload.as_bytes())
        };
        for payload in [r#"{"t":42}"#, r#"{"t":"42"}"#, r#"{"t":42.0}"#, r#"{"t":"a\"b"}"#] {
            assert_eq!(holds(payload), Ok(true), "{payload}");
        }
        for payload in ["{}", "7", "[42]", r#"{"t":null}"#, r#"{"t":["42"]}"#, r#"{"t":{"t":42}}"#, r#"{"t":"A\"B"}"#] {
            assert_eq!(holds(payload), Ok(false), "{payload}");
        }
    }
}
