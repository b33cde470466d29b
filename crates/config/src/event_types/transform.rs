//! `transform` of a type: its steps are compiled, and each error is shown at its step.

use std::fmt::{self, Display};
use std::sync::Arc;

use gateway::TransformHandle;
use schema_tools::Reachability;
use settings::{Diagnostic, Section, SettingsReader, SourceSpan};
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use transform as steps;
use transform::{StepSpec, StepValue, Transform};

use crate::event_types::lookup_tables::LookupTables;
use crate::event_types::unreachable_paths;

/// The key in a step of `hash` that is a secret: it may come from the environment. In other texts of steps `${…}` means
/// something else.
const SECRET: (&str, &str) = ("hash", "key");

/// The step that remembers.
const MEMORY: &str = "dedupe";

/// The transform of a type.
#[derive(Clone)]
pub struct TypeTransform {
    specs: Arc<Vec<StepSpec>>,
    /// The content of the tables that its steps may use.
    tables: u64,
    pub steps: Arc<TransformHandle>,
}

impl PartialEq for TypeTransform {
    fn eq(&self, other: &Self) -> bool {
        (&self.specs, self.tables) == (&other.specs, other.tables)
    }
}

impl Eq for TypeTransform {}

/// Steps may have secrets in them.
impl fmt::Debug for TypeTransform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TypeTransform")
    }
}

impl fmt::Display for TypeTransform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.specs.len() {
            1 => f.write_str("1 step"),
            count => write!(f, "{count} steps"),
        }
    }
}

impl TypeTransform {
    /// Takes over the memory of `before`: of each `dedupe` that is the same step as before, after the same steps. The
    /// content of tables doesn't matter.
    pub fn remember_as(&mut self, before: &Self) {
        let same = self.specs.iter().zip(before.specs.iter()).take_while(|(now, before)| now == before);
        let windows = same.filter(|(spec, _)| spec.0.iter().any(|(key, _)| key == MEMORY)).count();
        // It is new and has no other owner.
        if let Some(steps) = Arc::get_mut(&mut self.steps) {
            steps.remember_as(&before.steps, windows);
        }
    }
}

/// The transform of a type, if it has one.
pub(crate) fn read(
    reader: &mut SettingsReader<'_>,
    section: &Section<'_>,
    tables: &LookupTables,
) -> Option<TypeTransform> {
    let (span, value) = section.get("transform")?;
    let name = section.key_path("transform");
    let Some(elements) = value.as_array() else {
        return reader.wrong_kind(&name, span, value, "a list of steps, such as [{ drop = \"/referrer\" }]");
    };
    let mut is_readable = true;
    let mut specs = Vec::new();
    // The span and the number of each step that can be read.
    let mut written = Vec::new();
    for (element, number) in elements.iter().zip(1..) {
        let Some(entries) = element.get_ref().as_table() else {
            let at = section.span_of(element);
            reader.wrong_kind::<()>(
                &format_args!("{name}[{number}]"),
                at,
                element.get_ref(),
                "a step, such as { drop = \"/referrer\" }",
            );
            is_readable = false;
            continue;
        };
        let read = spec(reader, section, &format_args!("{name}[{number}]"), entries);
        if read.0.len() < entries.len() {
            is_readable = false;
            continue;
        }
        specs.push(read);
        written.push((element, entries, number));
    }
    if specs.is_empty() {
        return None;
    }
    match Transform::compile(&specs, &tables.tables) {
        Ok(_) if !is_readable => None,
        Ok(transform) => {
            let steps = Arc::new(TransformHandle::new(transform, tables.seed));
            Some(TypeTransform { specs: Arc::new(specs), tables: tables.fingerprint, steps })
        }
        Err(mistakes) => {
            for mistake in mistakes {
                let place = written.get(mistake.step - 1).copied();
                let number = place.map_or(mistake.step, |(_, _, number)| number);
                let place = place.map(|(element, entries, _)| (element, entries));
                let at = place.map_or_else(|| span.clone(), |place| place_of(reader, section, place, &mistake.at));
                let title = format!("invalid value for `{name}`: step {number}");
                reader.push(Diagnostic::new(title, at, mistake.message).help(mistake.help));
            }
            None
        }
    }
}

/// Warns of steps on values that no event can have, and follows their effects.
pub(crate) fn warn(
    reader: &mut SettingsReader<'_>,
    section: &Section<'_>,
    transform: &TypeTransform,
    reach: &mut Reachability<'_>,
) {
    let name = section.key_path("transform");
    for steps::StepDiagnostic { step, at, message, help } in
        schema_tools::unreachable_steps(transform.steps.transform(), reach)
    {
        let Some((span, value)) = section.get("transform") else { return };
        let element = value.as_array().and_then(|elements| elements.get(step - 1));
        let place = element.and_then(|element| Some((element, element.get_ref().as_table()?)));
        let at = place.map_or(span, |place| place_of(reader, section, place, &at));
        unreachable_paths::warn(
            reader,
            format!("unused path in step {step} of `{name}`: no valid event has this value"),
            (at, message),
            help,
        );
    }
}

fn spec(reader: &mut SettingsReader<'_>, section: &Section<'_>, step: &dyn Display, entries: &DeTable<'_>) -> StepSpec {
    let is_secret = |key: &str| key == SECRET.1 && entries.contains_key(SECRET.0);
    let read = entries.iter().filter_map(|(key, value)| {
        let name: &str = key.get_ref();
        let span = section.span_of(value);
        let setting = if is_secret(name) && value.get_ref().is_str() {
            // Mistakes in other steps are reported too if it can't be filled in.
            let secret = reader.string(&format_args!("{step}.{name}"), span, value.get_ref());
            Some(StepValue::Text(secret.map_or_else(|| name.to_owned(), |found| found.value)))
        } else {
            setting(reader, &format_args!("{step}.{name}"), span, value.get_ref())
        };
        Some((name.to_owned(), setting?))
    });
    StepSpec(read.collect())
}

fn setting(
    reader: &mut SettingsReader<'_>,
    path: &dyn Display,
    span: SourceSpan,
    value: &DeValue<'_>,
) -> Option<StepValue> {
    let within = |part: &Spanned<DeValue<'_>>| SourceSpan { source: span.source, range: part.span() };
    Some(match value {
        DeValue::String(text) => StepValue::Text(text.clone().into_owned()),
        DeValue::Boolean(value) => StepValue::Bool(*value),
        DeValue::Datetime(time) => StepValue::Text(time.to_string()),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => StepValue::Integer(number),
            Err(_) => return reader.wrong_kind(path, span, value, "an integer of at most 64 bits"),
        },
        DeValue::Float(number) => match number.as_str().parse() {
            Ok(number) => StepValue::Float(number),
            Err(_) => return reader.wrong_kind(path, span, value, "a number"),
        },
        DeValue::Array(elements) => {
            let elements: Vec<_> = elements
                .iter()
                .enumerate()
                .map(|(number, part)| setting(reader, &format_args!("{path}[{number}]"), within(part), part.get_ref()))
                .collect();
            StepValue::List(elements.into_iter().collect::<Option<_>>()?)
        }
        DeValue::Table(entries) => {
            let members: Vec<_> = entries
                .iter()
                .map(|(key, part)| {
                    let name: &str = key.get_ref();
                    let value = setting(reader, &format_args!("{path}.{name}"), within(part), part.get_ref())?;
                    Some((name.to_owned(), value))
                })
                .collect();
            StepValue::Table(members.into_iter().collect::<Option<_>>()?)
        }
    })
}

/// The span of a part of a step.
fn place_of(
    reader: &SettingsReader<'_>,
    section: &Section<'_>,
    (element, entries): (&Spanned<DeValue<'_>>, &DeTable<'_>),
    part: &steps::StepLocation,
) -> SourceSpan {
    let entry = part.key().and_then(|key| entries.get_key_value(key));
    let Some((key, value)) = entry else { return section.span_of(element) };
    let whole = section.span_of(value);
    match part {
        steps::StepLocation::Step => section.span_of(element),
        steps::StepLocation::Key(_) => section.span_of(key),
        steps::StepLocation::Value(_) => whole,
        steps::StepLocation::Element(_, number) => {
            let element = value.get_ref().as_array().and_then(|elements| elements.get(*number));
            element.map_or(whole, |element| section.span_of(element))
        }
        steps::StepLocation::Within(_, range) => match value.get_ref().as_str() {
            Some(text) => reader.within(&whole, text, range.clone()),
            None => whole,
        },
    }
}
