//! From configured steps to compiled ones. All mistakes are reported together.

mod changes;
mod whole;

use std::collections::HashSet;

use limits::TRANSFORM_STEPS_MAX;

use super::diagnostic::{StepDiagnostic, StepLocation};
use super::options::Options;
use super::spec::StepSpec;
use super::step::{OnError, Operation, Step};
use super::tables::Tables;
use did_you_mean::nearest;
use expression::Expression;

/// Reads an operation from its keys; `None` after a mistake, which was reported.
type Read = fn(&mut Options<'_>, &mut Around<'_>) -> Option<Operation>;

/// An operation: the key that names it, the other keys it knows, and how it is read.
pub(super) struct Known {
    pub(super) name: &'static str,
    pub(super) keys: &'static [&'static str],
    read: Read,
}

/// The surroundings of a step.
pub(super) struct Around<'a> {
    tables: &'a Tables,
    /// Windows of the steps before it.
    windows: usize,
}

/// Keys that every step knows.
const EVERYWHERE: [&str; 2] = ["when", "on_error"];

const fn known(name: &'static str, keys: &'static [&'static str], read: Read) -> Known {
    Known { name, keys, read }
}

/// Every operation.
pub(super) const OPERATIONS: &[Known] = &[
    known("set", &["to", "value"], whole::set),
    known("default", &["to", "value"], whole::default),
    known("enrich", &["from", "header"], whole::enrich),
    known("rename", &["to"], whole::rename),
    known("move", &["to"], whole::relocate),
    known("copy", &["to"], whole::copy),
    known("drop", &[], whole::drop),
    known("keep", &[], whole::keep),
    known("lower", &["to"], changes::lower),
    known("upper", &["to"], changes::upper),
    known("trim", &["to"], changes::trim),
    known("replace", &["to", "text", "pattern", "with"], changes::replace),
    known("extract", &["to", "pattern"], whole::extract),
    known("split", &["to", "by"], changes::split),
    known("join", &["to", "by"], changes::join),
    known("truncate", &["to", "characters", "bytes", "elements", "end"], changes::truncate),
    known("coerce", &["to", "as", "format", "zone", "write"], changes::coerce),
    known("parse", &["to", "as", "single_quotes", "between", "equals"], changes::parse),
    known("flatten", &["to", "by", "arrays"], changes::flatten),
    known("unflatten", &["to", "by"], changes::unflatten),
    known("hash", &["to", "key", "digits"], changes::hash),
    known("mask", &["to", "with", "keep_first", "keep_last"], changes::mask),
    known("redact", &["to", "pattern", "what", "with"], changes::redact),
    known("lookup", &["to", "table", "otherwise"], changes::lookup),
    known("filter", &[], whole::filter),
    known("sample", &["by"], whole::sample),
    known("dedupe", &["window", "values"], whole::dedupe),
    known("explode", &["to"], whole::explode),
];

/// Whether some step has this key.
#[must_use]
pub fn is_step_key(key: &str) -> bool {
    let has = |known: &Known| known.name == key || known.keys.contains(&key);
    EVERYWHERE.contains(&key) || OPERATIONS.iter().any(has)
}

/// All keys of steps. A key may occur twice.
#[must_use]
pub fn step_keys() -> Vec<&'static str> {
    let of_operations = OPERATIONS.iter().flat_map(|known| [known.name].into_iter().chain(known.keys.iter().copied()));
    EVERYWHERE.iter().copied().chain(of_operations).collect()
}

pub(super) fn compile(specs: &[StepSpec], tables: &Tables) -> Result<Vec<Step>, Vec<StepDiagnostic>> {
    let (mut steps, mut mistakes) = (Vec::new(), Vec::new());
    let mut around = Around { tables, windows: 0 };
    for (spec, number) in specs.iter().zip(1..) {
        let mut options = Options { step: number, spec, mistakes: Vec::new() };
        steps.extend(step(&mut options, &mut around));
        mistakes.append(&mut options.mistakes);
    }
    if specs.len() > TRANSFORM_STEPS_MAX {
        let message = format!("a transform has at most {TRANSFORM_STEPS_MAX} steps, but this one has {}", specs.len());
        mistakes.push(StepDiagnostic::new(TRANSFORM_STEPS_MAX + 1, StepLocation::Step, message));
    }
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    // There may be thousands of transforms, and steps are large.
    steps.shrink_to_fit();
    Ok(steps)
}

/// One step; `None` after a mistake, which was reported.
fn step(options: &mut Options<'_>, around: &mut Around<'_>) -> Option<Step> {
    check_repeated(options);
    let known = operation(options);
    if let Some(known) = known {
        check_keys(options, known);
    }
    // Checked even if the step's operation is unknown.
    let when = options.expression("when");
    let words = [("refuse", OnError::Refuse), ("skip", OnError::Skip), ("mark", OnError::Mark)];
    let on_error = options.choice("on_error", &words).unwrap_or_default();
    let known = known?;
    let operation = (known.read)(options, around)?;
    let unambiguous = when.as_ref().filter(|_| operation.hides()).map(Expression::reads).unwrap_or_default();
    Some(Step { number: options.step, name: known.name, when, unambiguous, on_error, operation })
}

/// TOML has no key twice, but other sources of steps may.
fn check_repeated(options: &mut Options<'_>) {
    let mut seen = HashSet::new();
    for (key, _) in &options.spec.0 {
        if !seen.insert(key) {
            options.mistake(StepLocation::Key(key.clone()), "is set twice: remove one of them");
        }
    }
}

fn names() -> impl Iterator<Item = &'static str> {
    OPERATIONS.iter().map(|known| known.name)
}

/// The operation that one of the keys names.
fn operation(options: &mut Options<'_>) -> Option<&'static Known> {
    let spec = options.spec;
    let mut named = spec.0.iter().filter_map(|(key, _)| OPERATIONS.iter().find(|known| known.name == key));
    let Some(first) = named.next() else {
        let all: Vec<_> = names().collect();
        let near = spec.0.iter().find_map(|(key, _)| nearest(key, names()).map(|near| (key.clone(), near)));
        let (at, help) = match near {
            Some((key, near)) => (StepLocation::Key(key), format!("did you mean `{near}`?")),
            None => (StepLocation::Step, format!("a step has one of these keys: {}", all.join(", "))),
        };
        options.mistake(at, "the step names no operation").help = Some(help);
        return None;
    };
    for second in named {
        let message = format!("a step has one operation, and this one also has `{}`", first.name);
        options.mistake(StepLocation::Key(second.name.to_owned()), message).help =
            Some("write two steps, one after the other".to_owned());
    }
    Some(first)
}

fn check_keys(options: &mut Options<'_>, known: &Known) {
    let keys = || known.keys.iter().chain(&EVERYWHERE).copied();
    let is_known = |key: &str| key == known.name || keys().any(|known| known == key) || names().any(|name| name == key);
    let unknown: Vec<_> = options.spec.0.iter().map(|(key, _)| key).filter(|key| !is_known(key)).collect();
    for key in unknown {
        let help = match nearest(key, keys()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("its keys are {}", keys().collect::<Vec<_>>().join(", ")),
        };
        options.mistake(StepLocation::Key(key.clone()), format!("`{}` has no such key", known.name)).help = Some(help);
    }
}
