//! `routes` of a type and of an aggregate: the sinks that get the events, each with a condition if it has one.

use std::fmt::Display;

use ledger::Condition;
use schema_tools::Reachability;
use settings::{Diagnostic, EXPRESSION, Kind, Located, Section, Setting, SettingsReader, SourceSpan};
use toml::de::DeValue;

use crate::event_types::conditional::{self, Form, Worded};
use crate::event_types::unreachable_paths;
use crate::sinks::route::Route;
use crate::sinks::{SinkConfig, SinkName, Sinks};

const KEY: &str = "routes";
/// The routes of a type.
pub(crate) const ROUTES: Setting = Setting::new(
    KEY,
    Kind::List(&Kind::Either(&[Kind::Text("name of a sink"), Kind::Table(ROUTE)])),
    "the names of the sinks that store the events: at least one, each once; [with a condition](types.md#routes-with-conditions), or without. \
     The variable has names only",
)
.required()
.example("[\"local\"]");
/// The routes of an aggregate.
pub(crate) const OF_RESULTS: Setting = Setting {
    text: "the names of the sinks that store the results: at least one, each once; [with a condition](types.md#routes-with-conditions), or \
           without",
    ..ROUTES
};
const ROUTE: &[Setting] = &[
    Setting::text(FORM.key, "the sink").required().example("\"errors\""),
    Setting::new("when", EXPRESSION, "the condition").example("\"status >= 500\""),
];
const FORM: Form = Form {
    key: "to",
    what: "sink",
    example: "a route with a condition is { to = \"search\", when = \"status >= 500\" }",
};

/// A route as it is written.
pub(crate) struct Written {
    pub(crate) to: String,
    when: Option<Worded<Condition>>,
}

/// All routes of a table as they are written. The span of each is its sink's name.
pub(crate) fn written(
    reader: &mut SettingsReader<'_>,
    section: &Section<'_>,
) -> Option<Located<Vec<Located<Written>>>> {
    let plain = |to: String| Written { to, when: None };
    let element =
        |reader: &mut SettingsReader<'_>, name: &dyn Display, span: SourceSpan, value: &DeValue<'_>| match value
            .as_table()
        {
            Some(entries) => {
                let (Located { value: to, span }, when) = conditional::read(reader, &FORM, (name, span), entries)?;
                Some(Located { value: Written { to, when }, span })
            }
            None => {
                reader.string(name, span, value).map(|found| Located { value: plain(found.value), span: found.span })
            }
        };
    reader.list(section, KEY, "a list of names of sinks", element, plain)
}

/// Warns of conditions on values that no event can have.
pub(crate) fn warn(reader: &mut SettingsReader<'_>, routes: &[Located<Written>], reach: &mut Reachability<'_>) {
    for when in routes.iter().filter_map(|route| route.value.when.as_ref()) {
        unreachable_paths::condition(reader, when, when.condition.expression().places(), reach);
    }
}

/// The routes to sinks that there are, each sink once.
pub(crate) fn resolve(
    reader: &mut SettingsReader<'_>,
    section: &Section<'_>,
    routes: &[Located<Written>],
    sinks: &Sinks,
) -> Vec<Route> {
    let mut found = Vec::new();
    for (index, Located { value, span }) in routes.iter().enumerate() {
        if let Some(first) = routes[..index].iter().find(|first| first.value.to == value.to) {
            let title = format!("conflict: `{}` names a sink twice", section.key_path(KEY));
            let mistake = Diagnostic::new(title, span.clone(), "here again");
            reader.push(mistake.also(first.span.clone(), "named here"));
        } else if let Some(to) = sinks.resolve(reader, section, &value.to, span) {
            let route = Route { to, when: value.when.as_ref().map(|when| when.condition.clone()) };
            match sinks.spread(route) {
                Ok(routes) => found.extend(routes),
                Err(why) => {
                    let title = format!(
                        "invalid value for `{}`: it can't be distributed over the shards of `{}`",
                        section.key_path(KEY),
                        value.to
                    );
                    reader.push(Diagnostic::new(title, span.clone(), why));
                }
            }
        }
    }
    found
}

/// The sink to read a type's events from. Sinks that store the type of each event come first, then tables with `columns`. Of each of the two,
/// the first that has all events is used, or else the first that has some.
pub(crate) fn first_readable(routes: &[Route], sinks: &Sinks) -> Option<SinkName> {
    let store = |route: &Route| sinks.valid.get(&route.to).map(|settings| &settings.store);
    let readable = routes.iter().filter(|route| store(route).is_some_and(SinkConfig::can_be_read));
    // Of equals the first is the least.
    let best = readable.min_by_key(|route| (!store(route).is_some_and(SinkConfig::holds_types), route.when.is_some()));
    best.map(|route| route.to.clone())
}
