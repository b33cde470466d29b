//! `routes` of a type and of an aggregate: the sinks that get the events, each with a condition if it has one.

use std::fmt;

use delivery::Condition;
use toml::de::{DeTable, DeValue};

use super::reader::Reader;
use super::report::{Mistake, Spot};
use super::section::{Found, Section};
use super::sink::{SinkName, Sinks};
use super::suggest::nearest;

const KEY: &str = "routes";
/// What a route with a condition is made of.
const PARTS: &[&str] = &["to", "when"];
const EXAMPLE: &str = "{ to = \"search\", when = \"status >= 500\" }";

/// A way to a sink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// Where to.
    pub(crate) to: SinkName,
    /// Which events: those on which this is true, or all.
    pub(crate) when: Option<Condition>,
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.to)?;
        self.when.as_ref().map_or(Ok(()), |when| write!(f, " when {when}"))
    }
}

/// Routes in one line.
pub(super) fn listed(routes: &[Route]) -> String {
    routes.iter().map(Route::to_string).collect::<Vec<_>>().join(", ")
}

/// A route as it is written.
pub(super) struct Written {
    pub(super) to: String,
    when: Option<Condition>,
}

/// All routes of a table as they are written. The spot of each is its sink's name.
pub(super) fn written(reader: &mut Reader<'_>, section: &Section<'_>) -> Option<Found<Vec<Found<Written>>>> {
    let plain = |to: String| Written { to, when: None };
    let element = |reader: &mut Reader<'_>, name: &str, spot: Spot, value: &DeValue<'_>| match value.as_table() {
        Some(entries) => table(reader, name, spot, entries),
        None => reader.string(name, spot, value).map(|found| Found { value: plain(found.value), spot: found.spot }),
    };
    reader.list(section, KEY, "a list of names of sinks", element, plain)
}

fn table(reader: &mut Reader<'_>, name: &str, spot: Spot, entries: &DeTable<'_>) -> Option<Found<Written>> {
    let (mut to, mut when) = (None, None);
    let mistakes_before = reader.mistakes();
    for (key, value) in entries {
        let at = |span| Spot { source: spot.source, span };
        let part: &str = key.get_ref();
        let path = format!("{name}.{part}");
        match part {
            "to" => to = reader.string(&path, at(value.span()), value.get_ref()),
            "when" => {
                let text = reader.string(&path, at(value.span()), value.get_ref());
                when = text.and_then(|text| condition(reader, &path, &text));
            }
            _ => {
                let help = match nearest(part, PARTS.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("a route with a condition is {EXAMPLE}"),
                };
                let title = format!("`{path}` is not a setting");
                reader.push(Mistake::new(title, at(key.span()), "unknown").help(help));
            }
        }
    }
    if to.is_none() && reader.mistakes() == mistakes_before {
        let title = format!("`{name}` names no sink");
        let help = format!("a route with a condition is {EXAMPLE}");
        reader.push(Mistake::new(title, spot, "has no `to`").help(help));
    }
    to.map(|Found { value, spot }| Found { value: Written { to: value, when }, spot })
}

fn condition(reader: &mut Reader<'_>, path: &str, text: &Found<String>) -> Option<Condition> {
    match text.value.parse() {
        Ok(condition) => Some(condition),
        Err(invalid) => {
            let at = reader.within(&text.spot, &text.value, invalid.place());
            reader.push(Mistake::new(format!("`{path}` is no condition"), at, invalid.message()));
            None
        }
    }
}

/// The routes to sinks that there are, each sink once.
pub(super) fn resolve(
    reader: &mut Reader<'_>,
    section: &Section<'_>,
    routes: &[Found<Written>],
    sinks: &Sinks,
) -> Vec<Route> {
    let mut found = Vec::new();
    for (index, Found { value, spot }) in routes.iter().enumerate() {
        if let Some(first) = routes[..index].iter().find(|first| first.value.to == value.to) {
            let title = format!("`{}` names a sink twice", section.key_path(KEY));
            let mistake = Mistake::new(title, spot.clone(), "here again");
            reader.push(mistake.also(first.spot.clone(), "named here"));
        } else if let Some(to) = sinks.resolve(reader, section, &value.to, spot) {
            found.push(Route { to, when: value.when.clone() });
        }
    }
    found
}
