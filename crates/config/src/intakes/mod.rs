//! `[intakes.X]`: the protocols of senders that can't be changed.

mod conflicts;
pub(crate) mod kinds;
mod path;
mod sender;
mod signature;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use ::gateway::IntakeRule;
use ::intake::{Intake, IntakeKind, webhook};
use event::TypeName;
use settings::{
    ADDRESS, Diagnostic, Located, Section, Setting, SettingsReader, SourceSpan, Unset, names, parsed, words,
};
use text::is_name_of;

pub(crate) use crate::intakes::conflicts::{Others, check};
use crate::intakes::kinds::KIND;
use crate::intakes::path::Root;
pub(crate) use crate::intakes::sender::lines;
use crate::port::address::{address, is_loopback};

/// The table of all intakes.
pub(crate) const TABLE: &str = "intakes";
/// Bytes of an intake's name: metrics have it.
const NAME_BYTES_MAX: usize = 64;
const DEDUPE_WORDS: [(&str, bool); 2] = [("body", true), ("none", false)];
const LISTEN: Setting = Setting::new(
    "listen",
    ADDRESS,
    "the address of a separate port for this intake, in addition to its path on the gateway's port. An address that isn't loopback needs a \
     token with the scope `ingest`, or a kind with signatures",
)
.example("\"127.0.0.1:9200\"")
.restart();
const PATH: Setting = Setting::text(
    "path",
    "the path of the intake on the gateway's port. Everything below it is the intake's ([paths](intakes.md#paths))",
)
.or(Unset::Described("the path of its kind"))
.example("\"/logs\"");
const DEDUPE: Setting = Setting::choice(
    "dedupe",
    &words(&DEDUPE_WORDS),
    "`body`: records without an id get one from the digest of the request's body, so a retry is a duplicate. `none`: Forebay stores each \
     copy ([duplicates](intakes.md#duplicates))",
)
.or(Unset::Described("`body`, if records of the kind may have no id"))
.example("\"none\"");
const TYPE: Setting =
    Setting::text("type", "the type of records for which the protocol has no name. Required for a `webhook`")
        .example("\"github\"");
/// The settings of intakes of any kind.
pub(crate) const SETTINGS: &[Setting] = &[KIND, LISTEN, PATH, DEDUPE, TYPE];

/// An intake.
#[derive(Clone, Debug)]
pub struct IntakeConfig {
    /// Its kind.
    pub kind: &'static IntakeKind,
    /// The address of its separate port, if it has one.
    pub listen: Option<SocketAddr>,
    /// Its root on the port of the gateway.
    pub path: Box<str>,
    /// Whether a record without an id gets one from the digest of the body.
    pub dedupes: bool,
    /// The type of records for which the protocol has no name.
    pub type_name: Option<TypeName>,
    /// The protocol.
    pub intake: Arc<dyn Intake>,
    /// A digest of the settings of its kind: the protocol itself can't be compared.
    signature: u64,
}

impl PartialEq for IntakeConfig {
    fn eq(&self, other: &Self) -> bool {
        let facts = |of: &Self| (of.kind.name, of.listen, of.path.clone(), of.dedupes, of.signature);
        facts(self) == facts(other) && self.type_name == other.type_name
    }
}

impl Eq for IntakeConfig {}

impl IntakeConfig {
    /// The rule of the gateway for it.
    #[must_use]
    pub fn rule(&self, name: &str) -> IntakeRule {
        IntakeRule {
            name: name.into(),
            path: self.path.clone(),
            dedupes: self.dedupes,
            type_name: self.type_name.clone(),
            intake: self.intake.clone(),
        }
    }

    /// Whether its own port can be reached by other machines, and its requests need tokens.
    pub(crate) fn needs_tokens(&self) -> bool {
        !self.intake.is_signed() && self.listen.is_some_and(|listen| !is_loopback(listen))
    }
}

impl fmt::Display for IntakeConfig {
    /// A short summary.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name)?;
        f.write_str(if self.intake.is_signed() { ", signed" } else { "" })?;
        self.type_name.as_ref().map_or(Ok(()), |name| write!(f, ", type {name}"))?;
        if self.dedupes { f.write_str(", ids from the body") } else { Ok(()) }
    }
}

/// The intakes of a file, with their spans.
#[derive(Debug, Default)]
pub(crate) struct Intakes(Vec<Declared>);

/// An intake, and the spans of its parts.
#[derive(Debug)]
pub(crate) struct Declared {
    pub(crate) name: String,
    pub(crate) config: IntakeConfig,
    /// The span of its path, or else of its name. `None` if the path has a mistake.
    pub(crate) path: Option<SourceSpan>,
    pub(crate) listen: Option<Located<SocketAddr>>,
    pub(crate) type_name: Option<SourceSpan>,
}

impl Intakes {
    /// Whether one of them accepts only signed requests.
    pub(crate) fn has_signed(&self) -> bool {
        self.0.iter().any(|one| one.config.intake.is_signed())
    }

    /// Without the spans.
    pub(crate) fn into_valid(self) -> BTreeMap<String, IntakeConfig> {
        self.0.into_iter().map(|one| (one.name, one.config)).collect()
    }
}

/// Reads all intakes.
pub(crate) fn read(reader: &mut SettingsReader<'_>, file: &Section<'_>) -> Intakes {
    let section = reader.table(file, TABLE);
    let sections = reader.tables(&section);
    Intakes(sections.iter().filter_map(|section| read_one(reader, section)).collect())
}

fn read_one(reader: &mut SettingsReader<'_>, section: &Section<'_>) -> Option<Declared> {
    let is_named = check_name(reader, section);
    let help = format!("add kind = \"elasticsearch\"; known kinds: {}", kinds::listed());
    let kind = reader.required(section, KIND.name, &help, kinds::parse);
    let keys: Vec<&str> = match kind {
        Some(kind) => names(SETTINGS).chain(names(kind.settings)).collect(),
        None => kinds::keys().collect(),
    };
    reader.check_keys(section, keys);
    let listen = reader.text(section, LISTEN.name, address);
    let errors_before = reader.errors();
    let path = reader.text(section, PATH.name, path::parse);
    let has_path = reader.errors() == errors_before;
    let dedupe = reader.word(section, DEDUPE.name, "is not a way to find duplicates", &DEDUPE_WORDS);
    let type_name = read_type(reader, section, kind);
    let kind = kind?;
    let intake = (kind.read)(reader, section);
    if let Some(found) = dedupe.as_ref().filter(|found| found.value && !kind.may_lack_ids) {
        let title = format!("unused setting `{}`", section.key_path(DEDUPE.name));
        let label = format!("all records of kind `{}` have ids", kind.name);
        reader.push(Diagnostic::warning(title, found.span.clone(), label).help("remove it".to_owned()));
    }
    let intake = intake.filter(|_| is_named)?;
    let span = path.as_ref().map_or_else(|| section.span().clone(), |found| found.span.clone());
    let span = has_path.then_some(span);
    let path = path.map_or_else(|| path::of_kind(kind, section.name()), |found| found.value);
    let signature = signature::of(reader, section, kind);
    let config = IntakeConfig {
        kind,
        listen: listen.as_ref().map(|found| found.value),
        path,
        dedupes: kind.may_lack_ids && dedupe.is_none_or(|found| found.value),
        type_name: type_name.as_ref().map(|found| found.value.clone()),
        intake,
        signature,
    };
    let type_name = type_name.map(|found| found.span);
    Some(Declared { name: section.name().to_owned(), config, path: span, listen, type_name })
}

/// Reads `type`. Nothing in a webhook's request names its type.
fn read_type(
    reader: &mut SettingsReader<'_>,
    section: &Section<'_>,
    kind: Option<&'static IntakeKind>,
) -> Option<Located<TypeName>> {
    let errors_before = reader.errors();
    let found = reader.text(section, TYPE.name, parsed::<TypeName>("is not the name of a type"));
    let is_absent = found.is_none() && reader.errors() == errors_before;
    if is_absent && kind.is_some_and(|kind| kind.name == webhook::KIND.name) {
        let help = format!("add the type of its events, as in type = \"{}\"", section.name());
        reader.missing(section, TYPE.name, &help);
    }
    found
}

/// The rule of sinks' names.
fn check_name(reader: &mut SettingsReader<'_>, section: &Section<'_>) -> bool {
    let may_begin = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
    let is_valid = is_name_of(section.name(), NAME_BYTES_MAX, may_begin, is_allowed);
    if !is_valid {
        let title = format!("invalid value for the name of an intake: `{}`", section.name());
        let label = format!("expected 1 to {NAME_BYTES_MAX} of a-z, 0-9, `_` and `-`, a letter or digit first");
        reader.push(Diagnostic::new(title, section.span().clone(), label));
    }
    is_valid
}
