//! `[types.X]`: the rules and routes of a type's events.

use std::collections::BTreeMap;
use std::path::Path;

use ::transform::step_keys;
use access::PartialStatus;
use event::TypeName;
use gateway::{IdRule, RefusedTo, TextRule};
use json::store_compat::Incompatibilities;
use schema_tools::Reachability;
use settings::{
    Diagnostic, InvalidValue, Kind, Located, PATH, Section, Setting, SettingsReader, SourceSpan, Unset, names, parsed,
    pointer, words,
};
use timestamp::TimeRule;

use crate::event_types::aggregate::{self, AggregateConfig};
use crate::event_types::aliases;
use crate::event_types::event_time;
use crate::event_types::lookup_tables::LookupTables;
use crate::event_types::refused_to::{self, RefusedToSetting};
use crate::event_types::routes::{self, Written, first_readable};
use crate::event_types::schema::{self, Schemas, TypeSchema};
use crate::event_types::transform::{self, TypeTransform};
use crate::event_types::unreachable_paths;
use crate::sinks::route::Route;
use crate::sinks::{SinkName, Sinks};

/// The settings of `[types.X]`.
pub(crate) const SETTINGS: &[Setting] = &[
    aliases::ALIASES,
    aliases::LOWERCASE,
    Setting::new(
        "id",
        Kind::Text("JSON pointer, or `content`"),
        "the JSON pointer to an id within the payload: a second event with the same id is a duplicate. `\"content\"`: \
         [a digest of the event](../http-ingest.md#ids-by-content), so equal events are duplicates",
    )
    .example("\"/request/id\""),
    event_time::TIME,
    event_time::FORMAT,
    event_time::ZONE,
    event_time::UNREADABLE,
    Setting::new(
        "schema",
        PATH,
        "a file with the JSON Schema of payloads ([JSON Schema](../json-schema.md)), relative to the configuration file. The file, and all \
         files that it refers to, must be in that folder or below",
    )
    .example("\"schemas/access.json\""),
    Setting::flag("schema_formats", "`true` asserts `format` in the schema. With `false`, `format` has no effect"),
    Setting::new(
        "transform",
        Kind::List(&Kind::Open(step_keys)),
        "the steps that change events before they are stored, a list of tables: [transforms](../transforms.md). `${NAME}` is replaced only in \
         the `key` of a `hash`, because patterns use it differently",
    )
    .example("[{ drop = \"/referrer\", when = \"referrer == null\" }]"),
    UNSTORABLE,
    ACK,
    ACK_MEMORY,
    Setting::new(
        "read",
        Kind::Text("name of a sink"),
        "the sink from which events are read back ([reading](../http-read.md)): one of `routes` [that can be read](../http-read.md#read-sinks)",
    )
    .or(Unset::Described("the first of `routes` that can be read; those without a condition first"))
    .example("\"local\""),
    refused_to::REFUSED_TO,
    Setting::choice(
        PARTIAL,
        &["207", "200"],
        "the status of a batch of which some events are rejected; `\"200\"` is for \
         [senders that resend after a 207](../../guides/senders.md#status-200-for-partly-accepted-batches), and needs `refused_to`. A token's \
         setting overrides it",
    )
    .or(Unset::Text("207")),
    routes::ROUTES,
];
const UNSTORABLE: Setting = Setting::choice(
    "unstorable",
    &words(&UNSTORABLE_WORDS),
    "for strings that some stores can't store ([unstorable text](../json.md#unstorable-text))",
)
.or(Unset::Described("rejects what its stores can't store"))
.example("\"reject\"");
const ACK: Setting = Setting::choice(
    "ack",
    &["disk", "stored"],
    "when a request without the header `Forebay-Ack` is answered: `disk`, when its events are durable, or `stored`, when every sink of the type \
     has them ([acknowledgement levels](../http-ingest.md#acknowledgement-levels))",
)
.or(Unset::Text("disk"));
const ACK_MEMORY: Setting = Setting::flag(
    "ack_memory",
    "`true` lets clients ask for an answer before the events are durable (`Forebay-Ack: memory`, \
     [acknowledgement levels](../http-ingest.md#acknowledgement-levels))",
);
/// The setting of a batch's status.
const PARTIAL: &str = "partial";
/// The `id` that is no pointer.
const CONTENT: &str = "content";
/// The table that takes the events of all types that no other table names.
const OTHERS: &str = "*";
/// The words for what becomes of payloads that not every store can take.
const UNSTORABLE_WORDS: [(&str, TextRule); 3] = [
    ("accept", TextRule { flaws: Incompatibilities::NONE, repair: false }),
    ("reject", TextRule { flaws: Incompatibilities::ALL, repair: false }),
    ("repair", TextRule { flaws: Incompatibilities::ALL, repair: true }),
];

/// The rules and routes of the events of one type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeConfig {
    /// Other names under which its events are sent.
    pub aliases: Vec<String>,
    /// Whether case doesn't matter in these and in the type's own name.
    pub lowercase: bool,
    /// The source of an event's id.
    pub id: IdRule,
    /// The place and the format of an event's time.
    pub time: Option<TimeRule>,
    /// The schema of their payloads, if there is one.
    pub schema: Option<TypeSchema>,
    /// The steps that transform them.
    pub transform: Option<TypeTransform>,
    /// The flaws in payloads that are searched, because some of the stores reject them.
    pub unstorable: TextRule,
    /// Whether its events may be answered before they are durable.
    pub ack_memory: bool,
    /// Whether clients get the response after their events are stored, unless they request something else.
    pub ack_stored: bool,
    /// The sinks that store the events: at least one, each once, in the configuration's order.
    pub routes: Vec<Route>,
    /// The status of a batch of which some events are rejected.
    pub partial: PartialStatus,
    /// The aggregates of the events.
    pub aggregates: Vec<AggregateConfig>,
    /// The sink that events are read back from: one of them, if any can be read.
    pub read: Option<SinkName>,
    /// The type as which rejected events are stored, if they are: one with a separate table.
    pub refused_to: Option<TypeName>,
}

impl TypeConfig {
    /// The type as which rejected events are stored, if they are. `secret` must be random.
    #[must_use]
    pub fn quarantine(&self, secret: [u8; 32]) -> Option<RefusedTo> {
        let to = self.refused_to.clone()?;
        let hides = self.transform.as_ref().is_some_and(|transform| transform.steps.transform().withholds());
        Some(if hides { RefusedTo::without_bytes(to, secret) } else { RefusedTo::new(to) })
    }
}

/// All `[types.…]` tables.
#[derive(Clone, Debug, Default)]
pub(crate) struct Types {
    pub named: BTreeMap<TypeName, TypeConfig>,
    pub others: Option<TypeConfig>,
}

impl Types {
    /// Whether any type has a route to the sink.
    pub(crate) fn have_route_to(&self, sink: &SinkName) -> bool {
        let leads = |config: &TypeConfig| {
            let of_results = config.aggregates.iter().flat_map(|aggregate| &aggregate.routes);
            config.routes.iter().chain(of_results).any(|route| route.to == *sink)
        };
        self.named.values().chain(&self.others).any(leads)
    }
}

pub(crate) fn read(
    reader: &mut SettingsReader<'_>,
    tables: &[Section<'_>],
    sinks: &Sinks,
    lookup: &LookupTables,
    folder: &Path,
) -> Types {
    let mut types = Types::default();
    let mut schemas = Schemas::new(folder);
    let (mut results, mut refused_to, mut partial) = (Vec::new(), Vec::new(), Vec::new());
    let aliases = aliases::read(reader, tables);
    for (section, aliases) in tables.iter().zip(aliases) {
        refused_to.extend(refused_to::read(reader, section));
        let (mut config, spans) = read_one(reader, section, sinks, lookup, &mut schemas);
        (config.aliases, config.lowercase) = aliases;
        if let Some(Located { value, span }) = reader.text(section, PARTIAL, parsed("is not a status")) {
            config.partial = value;
            partial.extend(
                (value == PartialStatus::Ok)
                    .then(|| (section.name().to_owned(), section.key_path(PARTIAL).to_string(), span)),
            );
        }
        let of_results = config.aggregates.iter().map(|aggregate| aggregate.rules.name().clone());
        results.extend(of_results.zip(spans));
        if section.name() == OTHERS {
            types.others = Some(config);
            continue;
        }
        match TypeName::new(section.name()) {
            Ok(_) if access::contains_token(section.name()) => {
                reader.push(aliases::token_diagnostic(&"types", section.span().clone()));
            }
            Ok(name) => {
                types.named.insert(name, config);
            }
            Err(error) => {
                let title = format!("invalid value for the name of a type: `{}`", section.name());
                reader.push(Diagnostic::new(title, section.span().clone(), error.to_string()));
            }
        }
    }
    for (name, span) in results.into_iter().filter(|(name, _)| types.named.contains_key(name)) {
        let title = format!("conflict: `{name}` is the type of an aggregate's results, and has a separate table");
        let help = format!(
            "give the aggregate another name, or remove [types.\"{name}\"]: the aggregate's `routes` are those of its results"
        );
        reader.push(Diagnostic::new(title, span, "this aggregate").help(help));
    }
    for (name, path, span) in partial {
        if !refused_to.iter().any(|setting: &RefusedToSetting| setting.of == name) {
            let title = format!("missing setting `refused_to`: `{path}` needs it");
            let help = "store rejected events as another type, as in refused_to = \"rejected\", or leave `partial` out";
            let label = "senders that see 200 discard the events that were rejected";
            reader.push(Diagnostic::new(title, span, label).help(help.to_owned()));
        }
    }
    let declared: Vec<TypeName> = types.named.keys().cloned().collect();
    for (of, to) in refused_to::resolve(reader, &declared, &refused_to) {
        let config = match TypeName::new(of) {
            Ok(name) => types.named.get_mut(&name),
            Err(_) => types.others.as_mut().filter(|_| of == OTHERS),
        };
        config.into_iter().for_each(|config| config.refused_to = Some(to.clone()));
    }
    types
}

/// The rules of a type, and the spans of its aggregates.
fn read_one(
    reader: &mut SettingsReader<'_>,
    section: &Section<'_>,
    sinks: &Sinks,
    lookup: &LookupTables,
    schemas: &mut Schemas<'_>,
) -> (TypeConfig, Vec<SourceSpan>) {
    reader.check_keys(section, names(SETTINGS).chain([aggregate::TABLE]));
    let id = reader.text(section, "id", id_rule);
    let time = reader.text(section, "time", pointer::parse);
    let schema = schema::read(reader, section, schemas);
    let transform = transform::read(reader, section, lookup);
    // The output of steps with mistakes is unknown.
    let is_whole = transform.is_some() == section.get("transform").is_some();
    let mut reach = schema.as_ref().filter(|_| is_whole).map(|schema| Reachability::new(&schema.compiled));
    if let Some(reach) = &mut reach {
        transform.iter().for_each(|transform| transform::warn(reader, section, transform, reach));
        // These are searched in the output of the steps.
        let pointer = id.as_ref().and_then(|id| {
            let value = id.value.pointer()?.clone();
            Some(Located { value, span: id.span.clone() })
        });
        unreachable_paths::pointer(reader, section, ("id", pointer.as_ref()), reach);
        unreachable_paths::pointer(reader, section, ("time", time.as_ref()), reach);
    }
    let id = id.map(|found| found.value).unwrap_or_default();
    let time = event_time::read(reader, section, time.map(|found| found.value));
    let ack_memory = reader.boolean_or_default(section, &ACK_MEMORY);
    let ack = reader.text(section, ACK.name, ack);

    let errors_before = reader.errors();
    let list = routes::written(reader, section);
    let names = list.as_ref().map_or(&[][..], |list| &list.value);
    if let Some(reach) = &mut reach {
        routes::warn(reader, names, reach);
    }
    let routes = routes::resolve(reader, section, names, sinks);
    if names.is_empty() && reader.errors() == errors_before {
        let (at, label) =
            list.as_ref().map_or((section.span(), "has no `routes`"), |list| (&list.span, "names no sink"));
        let title = format!("missing setting `routes`: the events of type `{}` would not be stored", section.name());
        let help = "name at least one sink, as in routes = [\"local\"]; a sink of kind \"null\" discards them";
        reader.push(Diagnostic::new(title, at.clone(), label).help(help.to_owned()));
    }
    let ack_stored = ack.as_ref().is_some_and(|found| found.value);
    if let Some(Located { span, .. }) = ack.filter(|_| ack_stored) {
        warn_of_objects(reader, section, (&routes, sinks), span);
    }
    let read = read_sink(reader, section, names, sinks).or_else(|| first_readable(&routes, sinks));
    let (aggregates, spans) = read_aggregates(reader, section, sinks, (time.as_ref(), reach.as_mut()));
    let unstorable = reader.word(section, UNSTORABLE.name, "is not a supported action", &UNSTORABLE_WORDS);
    let unstorable = unstorable
        .map(|found| found.value)
        .unwrap_or_else(|| TextRule { flaws: flaws(&routes, &aggregates, sinks), repair: false });
    let (aliases, lowercase, refused_to, partial) = (Vec::new(), false, None, PartialStatus::default());
    let config = TypeConfig {
        aliases,
        lowercase,
        id,
        time,
        schema,
        transform,
        unstorable,
        ack_memory,
        ack_stored,
        routes,
        partial,
        aggregates,
        read,
        refused_to,
    };
    (config, spans)
}

/// The source of ids.
fn id_rule(text: &str) -> Result<IdRule, InvalidValue> {
    if text == CONTENT { Ok(IdRule::Content) } else { pointer::parse(text).map(IdRule::Pointer) }
}

/// Whether events are stored before they are answered.
fn ack(text: &str) -> Result<bool, InvalidValue> {
    match text {
        "disk" => Ok(false),
        "stored" => Ok(true),
        "memory" => {
            let wrong = InvalidValue::new("can't be `memory`", "expected \"disk\" or \"stored\"");
            Err(wrong.help("set ack_memory = true; clients then request it with the header Forebay-Ack: memory"))
        }
        _ => Err(InvalidValue::new("is not an acknowledgement level", "expected \"disk\" or \"stored\"")),
    }
}

/// A store of objects has an event when the object is whole: long after the clients have stopped waiting.
fn warn_of_objects(
    reader: &mut SettingsReader<'_>,
    section: &Section<'_>,
    (routes, sinks): (&[Route], &Sinks),
    span: SourceSpan,
) {
    let of_objects = |route: &&Route| sinks.valid.get(&route.to).is_some_and(|settings| settings.store.has_objects());
    let Some(Route { to, .. }) = routes.iter().find(of_objects) else { return };
    let title = format!("`{}` makes clients wait for whole objects", section.key_path("ack"));
    let label = format!("the sink `{to}` stores an event with its object, up to `max_age` later");
    let help = "most responses will be 202 after `ack_timeout`: leave `ack` out, or route the type to other stores";
    reader.push(Diagnostic::warning(title, span, label).help(help.to_owned()));
}

/// The flaws that the stores of the events and of their aggregates' results reject.
fn flaws(routes: &[Route], aggregates: &[AggregateConfig], sinks: &Sinks) -> Incompatibilities {
    let routes = routes.iter().chain(aggregates.iter().flat_map(|aggregate| &aggregate.routes));
    let stores = routes.filter_map(|route| sinks.valid.get(&route.to));
    stores.fold(Incompatibilities::NONE, |flaws, settings| flaws | settings.store.cannot_take())
}

fn read_aggregates(
    reader: &mut SettingsReader<'_>,
    section: &Section<'_>,
    sinks: &Sinks,
    events: (Option<&TimeRule>, Option<&mut Reachability<'_>>),
) -> (Vec<AggregateConfig>, Vec<SourceSpan>) {
    if section.name() != OTHERS {
        return aggregate::read(reader, section, sinks, events).into_iter().unzip();
    }
    if let Some((key, _)) = section.entry(aggregate::TABLE) {
        let title = "conflict: events of different types can't be aggregated together".to_owned();
        let help = "add a separate table for the type, as in [types.access.aggregate.hits]";
        reader.push(Diagnostic::new(title, section.span_of(key), "of `*`").help(help.to_owned()));
    }
    (Vec::new(), Vec::new())
}

/// The sink that `read` names: it must get the events, and be readable.
fn read_sink(
    reader: &mut SettingsReader<'_>,
    section: &Section<'_>,
    routes: &[Located<Written>],
    sinks: &Sinks,
) -> Option<SinkName> {
    let named = reader.text(section, "read", |text| Ok(text.to_owned()))?;
    if !routes.iter().any(|route| route.value.to == named.value) {
        let title = format!("invalid value for `{}`: the type has no route to this sink", section.key_path("read"));
        let help = format!("add \"{}\" to its routes, or name one of these", named.value);
        reader.push(Diagnostic::new(title, named.span, "not in `routes`").help(help));
        return None;
    }
    // A sink with mistakes, or none at all, was reported as such.
    let (name, settings) = sinks.valid.iter().find(|(name, _)| **name.as_arc() == *named.value)?;
    if settings.store.can_be_read() {
        return Some(name.clone());
    }
    let title = format!("invalid value for `{}`: this sink can't be read", section.key_path("read"));
    let mistake = Diagnostic::new(title, named.span, settings.store.why_not_read());
    reader.push(mistake.help("change the sink, name another one, or remove `read`".to_owned()));
    None
}
