//! Steps that set, move and remove values, and those that decide on whole events.

use limits::{DEDUPE_VALUES, DEDUPE_VALUES_MAX};

use super::Around;
use crate::context::Fact;
use crate::dedupe_window::Bounds;
use crate::diagnostic::StepLocation;
use crate::explode::Explode;
use crate::extract::Extract;
use crate::options::Options;
use crate::sample::Sample;
use crate::step::{Operation, Source};
use json::JsonPointer;

/// Headers with credentials.
const TOKENS: [&str; 3] = ["authorization", "proxy-authorization", "x-api-key"];

pub(super) fn set(options: &mut Options<'_>, _: &mut Around<'_>) -> Option<Operation> {
    let (at, value) = (options.pointer("set"), value(options));
    Some(Operation::Set { at: at?, value: value?, only_missing: false })
}

pub(super) fn default(options: &mut Options<'_>, _: &mut Around<'_>) -> Option<Operation> {
    let (at, value) = (options.pointer("default"), value(options));
    Some(Operation::Set { at: at?, value: value?, only_missing: true })
}

/// `value = …`, or `to = "an expression"`.
fn value(options: &mut Options<'_>) -> Option<Source> {
    match (options.spec.get("value"), options.has("to")) {
        (Some(_), true) => {
            options.mistake(
                StepLocation::Key("value".to_owned()),
                "conflicts with the expression in `to`: remove one of them",
            );
            None
        }
        (Some(value), false) => match value.to_json() {
            Some(json) => Some(Source::Json(json)),
            None => options.wrong("value", "has a number that JSON can't represent"),
        },
        (None, true) => options.expression("to").map(Source::Computed),
        (None, false) => {
            let mistake = options.mistake(StepLocation::Step, "needs a value");
            mistake.help = Some("add value = \"text\", or to = \"an expression\"".to_owned());
            None
        }
    }
}

pub(super) fn enrich(options: &mut Options<'_>, _: &mut Around<'_>) -> Option<Operation> {
    let at = options.pointer("enrich");
    options.need("from", "\"received_time\"")?;
    let header = options.text("header").map(str::to_ascii_lowercase);
    let fact = match options.text("from")? {
        "received_time" => Fact::ReceivedTime,
        "client" => Fact::Client,
        "source" => Fact::Source,
        "type" => Fact::Type,
        "header" => {
            options.need("header", "\"x-request-id\"")?;
            let header = header.clone()?;
            if TOKENS.contains(&header.as_str()) {
                return options.wrong("header", "holds credentials, which Forebay doesn't store: name another header");
            }
            Fact::Header(header)
        }
        _ => {
            return options
                .wrong("from", "should be one of \"received_time\", \"client\", \"source\", \"type\", \"header\"");
        }
    };
    if options.has("header") && !matches!(fact, Fact::Header(_)) {
        options.mistake(StepLocation::Key("header".to_owned()), "is only for from = \"header\": remove it");
    }
    Some(Operation::Set { at: at?, value: Source::Fact(fact), only_missing: false })
}

pub(super) fn rename(options: &mut Options<'_>, _: &mut Around<'_>) -> Option<Operation> {
    let at = options.part_pointer("rename");
    let name = options.needed_text("to", "\"new_name\"")?;
    if name.starts_with('/') {
        let mistake = options.mistake(StepLocation::Value("to".to_owned()), "should be a name, but is a JSON pointer");
        mistake.help = Some("leave the `/` out, or use `move` to put the value elsewhere".to_owned());
    }
    Some(Operation::Rename { at: at?, name: name.to_owned() })
}

pub(super) fn relocate(options: &mut Options<'_>, _: &mut Around<'_>) -> Option<Operation> {
    let (at, to) = from_and_to(options, "move")?;
    if to.is_within(&at) {
        return options.wrong("to", "is within the moved value: name a place outside of it");
    }
    Some(Operation::Move { at, to })
}

pub(super) fn copy(options: &mut Options<'_>, _: &mut Around<'_>) -> Option<Operation> {
    let (at, to) = from_and_to(options, "copy")?;
    Some(Operation::Copy { at, to })
}

fn from_and_to(options: &mut Options<'_>, name: &str) -> Option<(JsonPointer, JsonPointer)> {
    let at = options.pointer(name);
    options.need("to", "\"/new/place\"")?;
    let to = options.pointer("to");
    Some((at?, to?))
}

pub(super) fn drop(options: &mut Options<'_>, _: &mut Around<'_>) -> Option<Operation> {
    let pointers = options.pointers("drop")?;
    if pointers.iter().any(|pointer| pointer.as_str().is_empty()) {
        let mistake = options.mistake(StepLocation::Value("drop".to_owned()), "the whole payload can't be dropped");
        mistake.help = Some("write filter = \"false\" to drop the event".to_owned());
    }
    Some(Operation::Drop(pointers))
}

pub(super) fn keep(options: &mut Options<'_>, _: &mut Around<'_>) -> Option<Operation> {
    options.pointers("keep").map(Operation::Keep)
}

/// Named groups become members of the object at `to`; a pattern without names puts its first group there, or the whole
/// match.
pub(super) fn extract(options: &mut Options<'_>, _: &mut Around<'_>) -> Option<Operation> {
    let at = options.pointer("extract");
    options.need("pattern", "'user=(?<user>\\w+)'")?;
    let (to, pattern) = (options.pointer("to"), options.pattern("pattern")?);
    let names: Vec<_> =
        pattern.regex().capture_names().enumerate().filter_map(|(number, name)| Some((number, name?))).collect();
    let groups = if names.is_empty() {
        if !options.has("to") {
            let mistake = options.mistake(StepLocation::Step, "has neither named groups nor `to`");
            mistake.help = Some("name a group, as in (?<user>\\w+), or add to = \"/place\"".to_owned());
        }
        vec![(usize::from(pattern.regex().captures_len() > 1), to?)]
    } else {
        let to = if options.has("to") { to? } else { JsonPointer::WHOLE };
        names.into_iter().filter_map(|(number, name)| Some((number, to.member(name).ok()?))).collect()
    };
    Some(Operation::Extract { at: at?, extract: Extract { pattern, groups } })
}

pub(super) fn filter(options: &mut Options<'_>, _: &mut Around<'_>) -> Option<Operation> {
    options.expression("filter").map(Operation::Filter)
}

pub(super) fn sample(options: &mut Options<'_>, _: &mut Around<'_>) -> Option<Operation> {
    let (part, by) = (options.number("sample"), options.pointers("by"));
    if options.has("by") && by.is_none() {
        return None;
    }
    match Sample::new(part?, by.unwrap_or_default()) {
        Some(sample) => Some(Operation::Sample(sample)),
        None => options.wrong("sample", "should be from 0 (none) to 1 (all)"),
    }
}

pub(super) fn dedupe(options: &mut Options<'_>, around: &mut Around<'_>) -> Option<Operation> {
    let at = options.pointers("dedupe");
    let text = options.needed_text("window", "\"10m\"")?;
    let Some(microseconds) = duration(text) else {
        return options.wrong("window", "should be a time from \"1s\" to \"24h\"");
    };
    let values = options.count("values", 1, DEDUPE_VALUES_MAX).unwrap_or(DEDUPE_VALUES);
    let window = around.windows;
    around.windows += 1;
    Some(Operation::Dedupe { at: at?, window, bounds: Bounds { microseconds, values } })
}

/// A number with its unit, up to a day.
fn duration(text: &str) -> Option<i64> {
    const DAY: i64 = 24 * 3600;
    let unit = text.chars().last()?;
    let number: i64 = text.strip_suffix(unit)?.parse().ok()?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        _ => return None,
    };
    let duration = number.checked_mul(seconds).filter(|seconds| (1..=DAY).contains(seconds))?;
    Some(duration * 1_000_000)
}

pub(super) fn explode(options: &mut Options<'_>, _: &mut Around<'_>) -> Option<Operation> {
    let (at, to) = (options.pointer("explode"), options.pointer("to"));
    if options.has("to") && to.is_none() {
        return None;
    }
    let at = at?;
    let to = to.unwrap_or_else(|| at.clone());
    if to.steps().iter().any(|step| step.name == "-") {
        return options.wrong("to", "names a new element: each event would also have those of all earlier events");
    }
    Some(Operation::Explode(Explode { at, to }))
}
