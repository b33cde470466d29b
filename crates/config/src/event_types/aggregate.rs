//! `[types.X.aggregate.NAME]`: the aggregates of a type's events, and the routes of their results.

use std::time::Duration;

use aggregate::{AggregateRules, Definition, Emit, Late, TimeBasis};
use event::TypeName;
use schema_tools::Reachability;
use settings::{
    Diagnostic, Kind, POINTER, Section, Setting, SettingsReader, SourceSpan, Unset, duration, names, words,
};
use timestamp::TimeRule;

use crate::event_types::result_schema;
use crate::event_types::routes;
use crate::event_types::routes::first_readable;
use crate::event_types::unreachable_paths;
use crate::sinks::route::Route;
use crate::sinks::{SinkName, Sinks};

/// The table with the aggregates of a type.
pub(crate) const TABLE: &str = "aggregate";

/// The settings of an aggregate.
pub(crate) const SETTINGS: &[Setting] = &[
    Setting::new("window", Kind::Text("window"), "the [windows](../aggregates.md#windows): `1m`, `5m every 1m` or `session 30m`")
        .required()
        .example("\"1m\""),
    TIME,
    Setting::new(
        "group_by",
        Kind::List(&POINTER),
        "the values whose events form a [group](../aggregates.md#groups), 16 at most; without one all events of a window are one group",
    )
    .example("[\"/status\"]"),
    Setting::new(
        "measures",
        Kind::Names(&Kind::Text("measure")),
        "the names of the [measures](../aggregates.md#measures), at most 64; the result has them in this order",
    )
    .required()
    .example("{ requests = \"count\", bytes = \"sum:/bytes\" }"),
    Setting::duration("lateness", (Duration::ZERO, limits::AGGREGATE_LATENESS_MAX), "how long after its end a window closes")
        .or(Unset::Described("`1m`; `0s` with `time = \"received\"`"))
        .example("\"5m\""),
    Setting::duration(
        "ahead",
        (Duration::ZERO, limits::AGGREGATE_LATENESS_MAX),
        "how far an event's time may be after its receive time",
    )
    .or(Unset::Duration(limits::AGGREGATE_AHEAD)),
    LATE,
    EMIT,
    Setting::duration(
        "early",
        (Duration::ZERO, limits::AGGREGATE_LATENESS_MAX),
        "the interval of results before a window's end",
    )
    .or(Unset::Described("never"))
    .example("\"10s\""),
    Setting::duration(
        "idle_timeout",
        (Duration::ZERO, limits::AGGREGATE_LATENESS_MAX),
        "after this time, a shard without events no longer delays windows",
    )
    .or(Unset::Duration(limits::AGGREGATE_IDLE_TIMEOUT)),
    MEMORY,
    STATE,
    routes::OF_RESULTS,
];
const TIME: Setting =
    Setting::choice("time", &words(&TIMES), "`event`: the type's `time`; `received`: the receive time")
        .or(Unset::Text("event"));
const TIMES: [(&str, TimeBasis); 2] = [("event", TimeBasis::Event), ("received", TimeBasis::Received)];
const LATE: Setting = Setting::choice(
    "late",
    &words(&LATE_MODES),
    "for events of a closed window ([late result](../../concepts/glossary.md#late-result))",
)
.or(Unset::Text("count"));
const LATE_MODES: [(&str, Late); 2] = [("count", Late::Count), ("separate", Late::Part)];
const EMIT: Setting = Setting::choice("emit", &words(&EMITS), "when a result is emitted").or(Unset::Text("close"));
const EMITS: [(&str, Emit); 2] = [("close", Emit::Close), ("final", Emit::Final)];
const MEMORY: Setting = Setting::size(
    "memory",
    (limits::AGGREGATE_BYTES_MIN as u64, limits::MEMORY_SET_MAX),
    "memory for the groups of all windows",
)
.or(Unset::Size(limits::AGGREGATE_BYTES as u64));
const STATE: Setting = Setting::flag("state", "`true` adds to results the state that is needed to merge them");

/// An aggregate of a type.
#[derive(Clone, Debug)]
pub struct AggregateConfig {
    /// As it is written.
    pub window: String,
    /// The rules of the aggregate, and the type of its results.
    pub rules: AggregateRules,
    /// The sinks that store the results: at least one, each once.
    pub routes: Vec<Route>,
    /// The sink that results are read back from: one of them, if any can be read.
    pub read: Option<SinkName>,
}

impl PartialEq for AggregateConfig {
    fn eq(&self, other: &Self) -> bool {
        (self.rules.fingerprint(), self.rules.name(), &self.routes)
            == (other.rules.fingerprint(), other.rules.name(), &other.routes)
    }
}

impl Eq for AggregateConfig {}

/// The aggregates of the type in `section`, whose events have their times at `time`, and nothing where `reach` says so.
pub(crate) fn read(
    reader: &mut SettingsReader<'_>,
    section: &Section<'_>,
    sinks: &Sinks,
    (time, mut reach): (Option<&TimeRule>, Option<&mut Reachability<'_>>),
) -> Vec<(AggregateConfig, SourceSpan)> {
    let tables = reader.table(section, TABLE);
    let tables = reader.tables(&tables);
    let mut found = Vec::new();
    for table in &tables {
        let Some(aggregate) = read_one(reader, section, table, sinks, time) else { continue };
        if let Some(reach) = &mut reach {
            warn(reader, table, &aggregate.rules, reach);
        }
        found.push((aggregate, table.span().clone()));
    }
    found
}

/// Warns of groups and measures of what no event can have.
fn warn(reader: &mut SettingsReader<'_>, section: &Section<'_>, rules: &AggregateRules, reach: &mut Reachability<'_>) {
    for (setting, pointer) in rules.places() {
        let (key, inner) = parts(&setting);
        let name = if key == "measures" { format!(".{}", inner.unwrap_or_default()) } else { String::new() };
        let name = format_args!("{}{name}", section.key_path(key));
        unreachable_paths::place(reader, &name, (span(section, &setting), pointer), reach);
    }
}

fn read_one(
    reader: &mut SettingsReader<'_>,
    of: &Section<'_>,
    section: &Section<'_>,
    sinks: &Sinks,
    time: Option<&TimeRule>,
) -> Option<AggregateConfig> {
    reader.check_keys(section, names(SETTINGS));
    let name = name(reader, of, section);
    let errors_before = reader.errors();
    let mut definition = definition(reader, section);
    definition.event_time = time.cloned();
    let list = routes::written(reader, section);
    let names = list.as_ref().map_or(&[][..], |list| &list.value);
    let routes = routes::resolve(reader, section, names, sinks);
    let mut is_valid = reader.errors() == errors_before;
    if names.is_empty() && is_valid {
        let (at, label) =
            list.as_ref().map_or((section.span(), "has no `routes`"), |list| (&list.span, "names no sink"));
        let title =
            format!("missing setting `routes`: the results of the aggregate `{}` would not be stored", section.name());
        let help = "name at least one sink, as in routes = [\"local\"]";
        reader.push(Diagnostic::new(title, at.clone(), label).help(help.to_owned()));
    }
    if section.get("window").is_none() && definition.window.is_empty() && is_valid {
        let title = format!("missing setting `window` of the aggregate `{}`", section.name());
        let help = "for example window = \"1m\", window = \"5m every 1m\" or window = \"session 30m\"";
        reader.push(Diagnostic::new(title, section.span().clone(), "has no `window`").help(help.to_owned()));
        is_valid = false;
    }
    let of_results = name.clone().unwrap_or_else(|| TypeName::new("unnamed").expect("it follows the grammar"));
    match AggregateRules::new(of_results, &definition) {
        Ok(_) if !is_valid || name.is_none() => None,
        Ok(rules) => {
            if let Some(schema) = result_schema::schema(&rules) {
                routes::warn(reader, names, &mut Reachability::new(&schema));
            }
            Some(AggregateConfig { window: definition.window, rules, read: first_readable(&routes, sinks), routes })
        }
        Err(mistakes) => {
            // Errors of settings that were left out because they can't be read are only further, false mistakes.
            let is_true = |setting: &str| is_valid || was_read(section, &definition, parts(setting).0);
            for mistake in mistakes.into_iter().filter(|mistake| is_true(&mistake.setting)) {
                let (key, inner) = parts(&mistake.setting);
                let inner = inner.map_or_else(String::new, |inner| format!(".{inner}"));
                let title = format!("invalid value for `{}{inner}`", section.key_path(key));
                reader.push(Diagnostic::new(title, span(section, &mistake.setting), mistake.message));
            }
            None
        }
    }
}

/// Whether a setting was read as written, so its error is a separate mistake.
fn was_read(section: &Section<'_>, definition: &Definition, key: &str) -> bool {
    let Some((_, value)) = section.get(key) else { return false };
    match key {
        "window" => !definition.window.is_empty(),
        "group_by" => value.as_array().is_some_and(|elements| elements.len() == definition.group_by.len()),
        "measures" => value.as_table().is_some_and(|measures| measures.len() == definition.measures.len()),
        _ => false,
    }
}

/// The type of the results: the type's name, a dot, and the aggregate's own.
fn name(reader: &mut SettingsReader<'_>, of: &Section<'_>, section: &Section<'_>) -> Option<TypeName> {
    let own = section.name();
    let good = !own.is_empty()
        && !access::contains_token(own)
        && own.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte));
    // A type's name that is wrong was reported as such.
    TypeName::new(of.name()).ok()?;
    match TypeName::new(&format!("{}.{own}", of.name())) {
        Ok(name) if good => Some(name),
        made => {
            let title = format!("invalid value for the name of an aggregate: `{own}`");
            let why = made.err().map_or_else(|| "expected a-z, 0-9, `_` and `-`".to_owned(), |error| error.to_string());
            let help = format!("its results are events of the type `{}.{own}`", of.name());
            reader.push(Diagnostic::new(title, section.span().clone(), why).help(help));
            None
        }
    }
}

fn definition(reader: &mut SettingsReader<'_>, section: &Section<'_>) -> Definition {
    let length = |text: &str| duration::within(text, Duration::ZERO, Duration::MAX);
    Definition {
        window: reader.text(section, "window", |text| Ok(text.to_owned())).map(|found| found.value).unwrap_or_default(),
        time: choice(reader, section, &TIME, &TIMES),
        event_time: None,
        group_by: texts(reader, section, "group_by"),
        measures: measures(reader, section),
        lateness: reader.text(section, "lateness", length).map(|found| found.value),
        ahead: reader.text(section, "ahead", length).map(|found| found.value),
        late: choice(reader, section, &LATE, &LATE_MODES),
        emit: choice(reader, section, &EMIT, &EMITS),
        early: reader.text(section, "early", length).map(|found| found.value),
        quiet: reader.text(section, "idle_timeout", length).map(|found| found.value),
        memory: reader.size(section, &MEMORY).map(|found| usize::try_from(found.value).unwrap_or(usize::MAX)),
        state: reader.boolean_or_default(section, &STATE),
    }
}

fn texts(reader: &mut SettingsReader<'_>, section: &Section<'_>, key: &str) -> Vec<String> {
    let found = reader.texts(section, key);
    found.into_iter().flat_map(|found| found.value).map(|text| text.value).collect()
}

/// One of a few words; the first is the default.
fn choice<T: Copy>(
    reader: &mut SettingsReader<'_>,
    section: &Section<'_>,
    setting: &Setting,
    words: &[(&str, T)],
) -> T {
    reader.word(section, setting.name, "is not a supported value", words).map_or(words[0].1, |found| found.value)
}

/// The measures in the order in which they are written.
fn measures(reader: &mut SettingsReader<'_>, section: &Section<'_>) -> Vec<(String, String)> {
    let table = reader.table(section, "measures");
    let mut found = Vec::new();
    for (key, _) in table.entries() {
        if let Some(text) = reader.text(&table, key.get_ref(), |text| Ok(text.to_owned())) {
            found.push((key.span().start, (key.get_ref().to_string(), text.value)));
        }
    }
    found.sort();
    found.into_iter().map(|(_, measure)| measure).collect()
}

/// A setting, and the key within it if it is a table.
fn parts(setting: &str) -> (&str, Option<&str>) {
    setting.split_once('.').map_or((setting, None), |(key, inner)| (key, Some(inner)))
}

/// The span of a setting such as `group_by`, `group_by.0` or `measures.requests`; of the aggregate if it is missing.
fn span(section: &Section<'_>, setting: &str) -> SourceSpan {
    let (key, inner) = parts(setting);
    let Some((span, value)) = section.get(key) else { return section.span().clone() };
    let within = |inner: &str| match value.as_array() {
        Some(elements) => inner.parse().ok().and_then(|number: usize| elements.get(number)),
        None => value.as_table()?.get(inner),
    };
    inner.and_then(within).map_or(span, |value| section.span_of(value))
}
