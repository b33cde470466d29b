//! `[[bridge]]`: requests that services answer over the bus.

use std::cmp::Ordering;
use std::time::Duration;

use ::gateway::{BridgeAccess, BridgeRule, Methods, PathPattern, passed_header};
use access::Scope;
use limits::{
    BRIDGE_HEADERS_MAX, BRIDGE_TIMEOUT, BRIDGE_TIMEOUT_MAX, BRIDGE_TIMEOUT_MIN, BRIDGE_WAITING, BRIDGE_WAITING_MAX,
    BRIDGES_MAX,
};
use nats::Subject;
use settings::{
    Diagnostic, InvalidValue, Section, Setting, SettingsReader, SourceSpan, TEXTS, Unset, names, parsed, words,
};

/// The list's name.
pub(crate) const TABLE: &str = "bridge";
/// The settings of each.
pub(crate) const SETTINGS: &[Setting] = &[
    Setting::text(PATH, "the path of the requests, [with parameters](bridge.md#paths): `/orders/{id}`")
        .required()
        .example("\"/orders/{id}\""),
    Setting::text(SUBJECT, "the subject of the service, without wildcards and parameters")
        .required()
        .example("\"shop.orders.get\""),
    SCOPE,
    TIMEOUT,
    Setting::new(
        METHODS,
        TEXTS,
        "the methods of the requests: `GET`, `POST`, `PUT`, `PATCH` and `DELETE`. HEAD comes with GET. Two bridges may share a path if they \
         share no method",
    )
    .or(Unset::Described("`[\"GET\", \"POST\"]`"))
    .example("[\"GET\", \"POST\"]"),
    Setting::new(
        PASS,
        TEXTS,
        "names of request headers that the service gets too: [not those with credentials](bridge.md#requests)",
    )
    .example("[\"Accept-Language\"]"),
    MAX_WAITING,
];
const PATH: &str = "path";
const SUBJECT: &str = "subject";
const METHODS: &str = "methods";
const PASS: &str = "pass";
const SCOPES: [(&str, BridgeAccess); 3] = [
    (Scope::Ingest.as_str(), BridgeAccess::Scope(Scope::Ingest)),
    (Scope::Read.as_str(), BridgeAccess::Scope(Scope::Read)),
    ("none", BridgeAccess::Free),
];
const SCOPE: Setting = Setting::choice(
    "scope",
    &words(&SCOPES),
    "the scope of the token that a request needs, [if the port needs tokens](../../guides/authenticate.md). `none`: a request needs no token",
)
.or(Unset::Text(Scope::Ingest.as_str()));
const TIMEOUT: Setting = Setting::duration(
    "timeout",
    (BRIDGE_TIMEOUT_MIN, BRIDGE_TIMEOUT_MAX),
    "how long the service may take for an answer. Then the client gets 504 `bridge_timeout`",
)
.or(Unset::Duration(BRIDGE_TIMEOUT));
const MAX_WAITING: Setting = Setting::integer(
    "max_waiting",
    (1, BRIDGE_WAITING_MAX as i64),
    "requests that may wait for answers at the same time. Further ones get 503 `bridge_busy`",
)
.or(Unset::Integer(BRIDGE_WAITING as i64));

/// Reads the bridges, those first whose paths are compared first.
pub(crate) fn read(reader: &mut SettingsReader<'_>, file: &Section<'_>) -> Vec<BridgeRule> {
    let sections = reader.list_of_tables(file, TABLE);
    if let Some(first) = sections.get(BRIDGES_MAX) {
        let title = format!("invalid value for `{TABLE}`: {} bridges", sections.len());
        reader.push(Diagnostic::new(title, first.span().clone(), format!("at most {BRIDGES_MAX} are allowed")));
    }
    let mut bridges: Vec<(BridgeRule, SourceSpan)> = Vec::new();
    for section in sections.iter().take(BRIDGES_MAX) {
        let Some((bridge, span)) = read_one(reader, section) else { continue };
        let collides = |(other, _): &&(BridgeRule, SourceSpan)| {
            other.path.precedence(&bridge.path) == Ordering::Equal && other.methods.overlaps(bridge.methods)
        };
        if let Some((_, other)) = bridges.iter().find(collides) {
            let title = format!("conflict: two bridges have the path {}", bridge.path);
            let help = "change a path, or give them different `methods`".to_owned();
            let mistake = Diagnostic::new(title, span.clone(), "this one").also(other.clone(), "the other one");
            reader.push(mistake.help(help));
        }
        bridges.push((bridge, span));
    }
    bridges.sort_by(|(one, _), (other, _)| one.path.precedence(&other.path));
    bridges.into_iter().map(|(bridge, _)| bridge).collect()
}

/// Reports bridges without a bus.
pub(crate) fn check_bus(reader: &mut SettingsReader<'_>, file: &Section<'_>) {
    let Some((span, _)) = file.get(TABLE) else { return };
    let title = "missing setting `bus`: bridges need the servers of a bus";
    let help = "add [bus] with url = \"nats://USER:PASSWORD@HOST:PORT\"".to_owned();
    reader.push(Diagnostic::new(title, span, "there is no [bus]").help(help));
}

/// A bridge, and the span of its path.
fn read_one(reader: &mut SettingsReader<'_>, section: &Section<'_>) -> Option<(BridgeRule, SourceSpan)> {
    reader.check_keys(section, names(SETTINGS));
    let errors_before = reader.errors();
    let path = reader.text(section, PATH, parsed::<PathPattern>("isn't the path of a bridge"));
    if path.is_none() && reader.errors() == errors_before {
        reader.missing(section, PATH, "add the path of the requests, as in path = \"/orders/{id}\"");
    }
    let help = "add the subject of the service, as in subject = \"shop.orders.get\"";
    let subject = reader.required(section, SUBJECT, help, fixed_subject);
    let access = reader.word(section, SCOPE.name, "is not a scope of a bridge", &SCOPES);
    let timeout: Duration = reader.duration_or_default(section, &TIMEOUT);
    let methods = methods(reader, section);
    let pass = pass(reader, section);
    let max_waiting = reader.count(section, &MAX_WAITING).map_or(BRIDGE_WAITING, |found| found.value.get());
    let (path, subject) = (path?, subject?);
    let access = access.map_or(BridgeAccess::Scope(Scope::Ingest), |found| found.value);
    Some((BridgeRule { path: path.value, subject, access, timeout, methods, pass, max_waiting }, path.span))
}

/// No part of a request gets into a subject.
fn fixed_subject(text: &str) -> Result<Subject, InvalidValue> {
    const WRONG: &str = "isn't the subject of a service";
    if text.contains(['{', '}']) {
        let wanted = "a subject is fixed: parameters are sent as headers, as Forebay-Param-id".to_owned();
        return Err(InvalidValue::new(WRONG, wanted));
    }
    parsed(WRONG)(text)
}

fn methods(reader: &mut SettingsReader<'_>, section: &Section<'_>) -> Methods {
    let Some((span, _)) = section.get(METHODS) else { return Methods::GET_AND_POST };
    let errors_before = reader.errors();
    let found = reader.parsed_texts(section, METHODS, parsed::<Methods>("is not a method of a bridge"));
    if found.is_empty() && reader.errors() == errors_before {
        let title = format!("missing value for `{}`", section.key_path(METHODS));
        reader.push(Diagnostic::new(title, span, "empty"));
    }
    found.into_iter().fold(Methods::NONE, |all, method| all.and(method.value))
}

fn pass(reader: &mut SettingsReader<'_>, section: &Section<'_>) -> Vec<Box<str>> {
    let parse =
        |name: &str| passed_header(name).map_err(|error| InvalidValue::new("can't be passed", error.to_string()));
    let found = reader.parsed_texts(section, PASS, parse);
    let mut names: Vec<Box<str>> = found.into_iter().map(|found| found.value).collect();
    names.sort_unstable();
    names.dedup();
    if names.len() > BRIDGE_HEADERS_MAX
        && let Some((span, _)) = section.get(PASS)
    {
        let title = format!("invalid value for `{}`: {} headers", section.key_path(PASS), names.len());
        reader.push(Diagnostic::new(title, span, format!("at most {BRIDGE_HEADERS_MAX} are allowed")));
    }
    names
}
