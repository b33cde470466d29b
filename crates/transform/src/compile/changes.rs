//! Steps that convert a value.

use super::Around;
use crate::change::{
    Change, Coerce, DIGITS, Flatten, Hash, Lookup, Mask, Needle, Parse, Redact, Replace, Truncate, Unflatten, literal,
};
use crate::diagnostic::StepLocation;
use crate::options::Options;
use crate::spec::StepValue;
use crate::step::Operation;
use did_you_mean::nearest;
use timestamp::{TimeFormat, TimeText, Zone};

/// A step that changes the values at its pointers, in place or to `to`.
fn change(options: &mut Options<'_>, name: &str, change: Option<Change>) -> Option<Operation> {
    let at = options.pointers(name);
    let to = options.pointer("to");
    if options.has("to") && to.is_none() {
        return None;
    }
    let (at, change) = (at?, change?);
    if to.is_some() && at.len() > 1 {
        options.mistake(
            StepLocation::Key("to".to_owned()),
            "one place can't hold the results of several values: write a step for each",
        );
    }
    Some(Operation::Change { at, to, change })
}

pub(super) fn lower(options: &mut Options<'_>, _: &mut Around<'_>) -> Option<Operation> {
    change(options, "lower", Some(Change::Lower))
}

pub(super) fn upper(options: &mut Options<'_>, _: &mut Around<'_>) -> Option<Operation> {
    change(options, "upper", Some(Change::Upper))
}

pub(super) fn trim(options: &mut Options<'_>, _: &mut Around<'_>) -> Option<Operation> {
    change(options, "trim", Some(Change::Trim))
}

pub(super) fn replace(options: &mut Options<'_>, _: &mut Around<'_>) -> Option<Operation> {
    let with = options.needed_text("with", "\"-\"").unwrap_or_default();
    let needle = match (options.has("text"), options.has("pattern")) {
        (true, false) => not_empty(options, "text").map(|text| Needle::Text(text.to_owned())),
        (false, true) => options.pattern("pattern").map(Needle::Pattern),
        _ => {
            let mistake = options.mistake(StepLocation::Step, "needs either `text` or `pattern`");
            mistake.help = Some("add text = \"exactly this\" or pattern = '\\d+'".to_owned());
            None
        }
    };
    let replace = needle.map(|needle| Replace { needle, with: with.to_owned() });
    change(options, "replace", replace.map(Change::Replace))
}

/// A text that isn't empty.
fn not_empty<'s>(options: &mut Options<'s>, key: &str) -> Option<&'s str> {
    let text = options.text(key)?;
    if text.is_empty() { options.wrong(key, "should have at least one character") } else { Some(text) }
}

/// The separator of parts, or the default one.
fn separator(options: &mut Options<'_>, key: &str, default: &str) -> Option<String> {
    if options.has(key) { not_empty(options, key).map(str::to_owned) } else { Some(default.to_owned()) }
}

pub(super) fn split(options: &mut Options<'_>, _: &mut Around<'_>) -> Option<Operation> {
    let by = separator(options, "by", ",");
    change(options, "split", by.map(Change::Split))
}

pub(super) fn join(options: &mut Options<'_>, _: &mut Around<'_>) -> Option<Operation> {
    let by = if options.has("by") { options.text("by") } else { Some(",") };
    change(options, "join", by.map(|by| Change::Join(by.to_owned())))
}

pub(super) fn truncate(options: &mut Options<'_>, _: &mut Around<'_>) -> Option<Operation> {
    let end = options.text("end").unwrap_or_default().to_owned();
    let mut count = |key| options.count(key, 0, limits::EVENT_BYTES_MAX);
    let (characters, bytes, elements) = (count("characters"), count("bytes"), count("elements"));
    let truncate = match (characters, bytes, elements) {
        (Some(most), None, None) => Some(Truncate::Characters(most, end)),
        (None, Some(most), None) => Some(Truncate::Bytes(most, end)),
        (None, None, Some(most)) => Some(Truncate::Elements(most)),
        // Its mistake was reported.
        _ if ["characters", "bytes", "elements"].iter().filter(|key| options.has(key)).count() == 1 => None,
        _ => {
            let mistake =
                options.mistake(StepLocation::Step, "needs exactly one of `characters`, `bytes` and `elements`");
            mistake.help = Some("set exactly one of them, for example characters = 100".to_owned());
            None
        }
    };
    change(options, "truncate", truncate.map(Change::Truncate))
}

pub(super) fn coerce(options: &mut Options<'_>, _: &mut Around<'_>) -> Option<Operation> {
    options.need("as", "\"number\"")?;
    let kind = match options.text("as")? {
        "number" => Some(Coerce::Number),
        "integer" => Some(Coerce::Integer),
        "string" => Some(Coerce::String),
        "boolean" => Some(Coerce::Boolean),
        "time" => time(options),
        _ => options.wrong("as", "should be one of \"number\", \"integer\", \"string\", \"boolean\", \"time\""),
    };
    for key in ["format", "zone", "write"] {
        if options.has(key) && !matches!(kind, Some(Coerce::Time { .. })) && kind.is_some() {
            options.mistake(StepLocation::Key(key.to_owned()), "is only for as = \"time\": remove it");
        }
    }
    change(options, "coerce", kind.map(Change::Coerce))
}

fn time(options: &mut Options<'_>) -> Option<Coerce> {
    let format = match TimeFormat::parse(options.text("format").unwrap_or("rfc3339")) {
        Ok(format) => Some(format),
        Err(wrong) => options.wrong("format", wrong),
    };
    let zone = match Zone::parse(options.text("zone").unwrap_or("UTC")) {
        Some(zone) => Some(zone),
        None => options.wrong("zone", "should be \"UTC\" or an offset from UTC, such as \"+01:00\""),
    };
    let words = [
        ("rfc3339", TimeText::Rfc3339),
        ("unix", TimeText::Unix(1)),
        ("unix_ms", TimeText::Unix(1_000)),
        ("unix_us", TimeText::Unix(1_000_000)),
        ("unix_ns", TimeText::Unix(1_000_000_000)),
    ];
    let write = if options.has("write") { options.choice("write", &words)? } else { TimeText::Rfc3339 };
    Some(Coerce::Time { format: format?, zone: zone?, write })
}

pub(super) fn parse(options: &mut Options<'_>, _: &mut Around<'_>) -> Option<Operation> {
    options.need("as", "\"json\"")?;
    let single_quotes = options.boolean("single_quotes");
    let syntax = match options.text("as")? {
        "json" => Some(Parse::Json { single_quotes: single_quotes.unwrap_or(false) }),
        "key_value" => {
            let (between, equals) = (separator(options, "between", " "), separator(options, "equals", "="));
            between.zip(equals).map(|(between, equals)| Parse::KeyValue { between, equals })
        }
        "url" => Some(Parse::Url),
        "query" => Some(Parse::Query),
        "user_agent" => Some(Parse::UserAgent),
        "access_log" => Some(Parse::AccessLog),
        _ => options.wrong(
            "as",
            "should be one of \"json\", \"key_value\", \"url\", \"query\", \"user_agent\", \"access_log\"",
        ),
    };
    let accepts = |key| match &syntax {
        Some(Parse::Json { .. }) => key == "single_quotes",
        Some(Parse::KeyValue { .. }) => key != "single_quotes",
        Some(_) => false,
        None => true,
    };
    for key in ["single_quotes", "between", "equals"] {
        if options.has(key) && !accepts(key) {
            options.mistake(StepLocation::Key(key.to_owned()), "is not used with this `as`: remove it");
        }
    }
    change(options, "parse", syntax.map(Change::Parse))
}

pub(super) fn flatten(options: &mut Options<'_>, _: &mut Around<'_>) -> Option<Operation> {
    let by = separator(options, "by", ".");
    let arrays = options.boolean("arrays").unwrap_or(false);
    change(options, "flatten", by.map(|by| Change::Flatten(Flatten { by, arrays })))
}

pub(super) fn unflatten(options: &mut Options<'_>, _: &mut Around<'_>) -> Option<Operation> {
    let by = separator(options, "by", ".");
    change(options, "unflatten", by.map(|by| Change::Unflatten(Unflatten { by })))
}

pub(super) fn hash(options: &mut Options<'_>, _: &mut Around<'_>) -> Option<Operation> {
    let key = if options.has("key") { Some(not_empty(options, "key")?) } else { None };
    let digits = options.count("digits", 8, DIGITS).unwrap_or(DIGITS);
    let hash = Hash::new(key.map(str::as_bytes), digits);
    change(options, "hash", Some(Change::Hash(hash)))
}

pub(super) fn mask(options: &mut Options<'_>, _: &mut Around<'_>) -> Option<Operation> {
    let mut characters = options.text("with").unwrap_or("*").chars();
    let with = match (characters.next(), characters.next()) {
        (Some(with), None) => Some(with),
        _ => options.wrong("with", "should be one character"),
    };
    let mut count = |key| options.count(key, 0, 1_000).unwrap_or(0);
    let (first, last) = (count("keep_first"), count("keep_last"));
    change(options, "mask", with.map(|with| Change::Mask(Mask { with, first, last })))
}

/// Searches without a custom pattern. They match by form: a card's number isn't checked. Word boundaries are those of
/// ASCII: that matches a little more, and its cost is bounded for any text (see [`pattern::Scout`]).
const WHATS: [(&str, &str); 4] = [
    ("email", r"[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,63}"),
    ("card", r"(?-u:\b)[0-9](?:[ -]?[0-9]){12,18}(?-u:\b)"),
    ("ipv4", r"(?-u:\b)(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?-u:\b)"),
    ("bearer", r"(?-u:\b)[Bb]earer +[A-Za-z0-9._~+/=-]+"),
];

pub(super) fn redact(options: &mut Options<'_>, _: &mut Around<'_>) -> Option<Operation> {
    let with = literal(options.text("with").unwrap_or("[redacted]")).into_owned();
    let mut patterns: Vec<_> = options.pattern("pattern").into_iter().collect();
    let whats: Vec<_> = match options.spec.get("what") {
        Some(StepValue::List(list)) => {
            list.iter().enumerate().map(|(n, s)| (StepLocation::Element("what".to_owned(), n), s)).collect()
        }
        Some(one) => vec![(StepLocation::Value("what".to_owned()), one)],
        None => Vec::new(),
    };
    for (spot, what) in whats {
        let found = WHATS.iter().find(|(name, _)| matches!(what, StepValue::Text(text) if text == name));
        match found.map(|(_, pattern)| pattern.parse()) {
            Some(Ok(pattern)) => patterns.push(pattern),
            _ => {
                let names: Vec<_> = WHATS.iter().map(|(name, _)| format!("\"{name}\"")).collect();
                options.mistake(spot, format!("should be one of {}", names.join(", ")));
            }
        }
    }
    if patterns.is_empty() && !options.has("pattern") && !options.has("what") {
        let mistake = options.mistake(StepLocation::Step, "needs `pattern` or `what`");
        mistake.help = Some("add pattern = 'token=\\w+' or what = \"email\"".to_owned());
    }
    change(options, "redact", Some(Change::Redact(Redact { patterns, with })))
}

pub(super) fn lookup(options: &mut Options<'_>, around: &mut Around<'_>) -> Option<Operation> {
    let name = options.needed_text("table", "\"countries\"")?;
    let otherwise = match options.spec.get("otherwise").map(StepValue::to_json) {
        Some(None) => return options.wrong("otherwise", "has a number that JSON can't represent"),
        found => found.flatten(),
    };
    let Some(table) = around.tables.get(name) else {
        let names = around.tables.names();
        let help = match nearest(name, names.iter().copied()) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None if names.is_empty() => format!("add [tables.{name}] with the path of a CSV or JSON file"),
            None => format!("there are {}", names.join(", ")),
        };
        options.mistake(StepLocation::Value("table".to_owned()), "there is no such table").help = Some(help);
        return None;
    };
    change(options, "lookup", Some(Change::Lookup(Lookup { table, otherwise })))
}
