//! Attributes and values of any type: `KeyValue` and `AnyValue`.

use std::borrow::Cow;
use std::collections::HashSet;

use json::text;
use limits::EVENT_BYTES_MAX;

use super::message::{Fault, Fields, Message, Value};
use super::write;

/// Nested lists and maps of a value. Hostile ones nest deeper; the others have a few.
const DEPTH_MAX: usize = 32;
const TOO_DEEP: Fault = "a value has more than 32 nested lists and maps: send it with fewer";
/// Why a record is rejected whose JSON is too large.
pub(super) const TOO_LARGE: Fault = "the record has more than 1048576 bytes: send smaller records";

const KEY_VALUE: &Fields = &[(1, "key"), (2, "value")];
const VALUES: &Fields = &[(1, "values")];
const ANY_VALUE: &Fields = &[
    (1, "stringValue"),
    (2, "boolValue"),
    (3, "intValue"),
    (4, "doubleValue"),
    (5, "arrayValue"),
    (6, "kvlistValue"),
    (7, "bytesValue"),
];

/// Writes the attributes that the field `number` of a message has, as an object. Of several with one key the first counts.
pub(super) fn attributes(message: Message<'_>, known: &Fields, number: u32, out: &mut String) -> Result<(), Fault> {
    entries(message, known, number, 0, out)
}

fn entries(message: Message<'_>, known: &Fields, number: u32, depth: usize, out: &mut String) -> Result<(), Fault> {
    out.push('{');
    let mut keys = Keys::default();
    message.walk(known, |found, value| if found == number { entry(value, &mut keys, depth, out) } else { Ok(()) })?;
    out.push('}');
    Ok(())
}

fn entry<'a>(entry: Value<'a>, keys: &mut Keys<'a>, depth: usize, out: &mut String) -> Result<(), Fault> {
    let (mut key, mut value) = (Cow::Borrowed(""), None);
    entry.message()?.walk(KEY_VALUE, |number, found| {
        match number {
            1 => key = found.text()?,
            _ => value = Some(found),
        }
        Ok::<_, Fault>(())
    })?;
    if keys.has(&key) {
        return Ok(());
    }
    if !out.ends_with('{') {
        out.push(',');
    }
    text::write_string(&key, out);
    out.push(':');
    keys.add(key);
    any(value, depth, out)
}

/// Writes a value of any type; `null` for none.
pub(super) fn any_value(value: Option<Value<'_>>, out: &mut String) -> Result<(), Fault> {
    any(value, 0, out)
}

fn any(value: Option<Value<'_>>, depth: usize, out: &mut String) -> Result<(), Fault> {
    let mut last = None;
    if let Some(value) = value {
        value.message()?.walk(ANY_VALUE, |number, found| {
            last = Some((number, found));
            Ok::<_, Fault>(())
        })?;
    }
    let Some((number, value)) = last else {
        out.push_str("null");
        return Ok(());
    };
    if out.len() > EVENT_BYTES_MAX {
        return Err(TOO_LARGE);
    }
    match number {
        1 => value.write_text(out)?,
        2 => out.push_str(if value.boolean()? { "true" } else { "false" }),
        3 => write::signed(value.signed()?, out),
        4 => write::double(value, out)?,
        7 => write::bytes(value, out)?,
        _ if depth == DEPTH_MAX => return Err(TOO_DEEP),
        5 => list(value.message()?, depth + 1, out)?,
        _ => entries(value.message()?, VALUES, 1, depth + 1, out)?,
    }
    Ok(())
}

fn list(list: Message<'_>, depth: usize, out: &mut String) -> Result<(), Fault> {
    out.push('[');
    list.walk(VALUES, |_, value| {
        if !out.ends_with('[') {
            out.push(',');
        }
        any(Some(value), depth, out)
    })?;
    out.push(']');
    Ok(())
}

/// How many keys are compared one by one: the usual number.
const FEW: usize = 24;

/// The keys of an object that is written: stores reject an object that has a name twice.
#[derive(Default)]
struct Keys<'a> {
    few: Vec<Cow<'a, str>>,
    many: HashSet<Cow<'a, str>>,
}

impl<'a> Keys<'a> {
    fn has(&self, key: &str) -> bool {
        self.few.iter().any(|known| known == key) || (!self.many.is_empty() && self.many.contains(key))
    }

    fn add(&mut self, key: Cow<'a, str>) {
        if self.few.len() < FEW {
            self.few.push(key);
        } else {
            self.many.insert(key);
        }
    }
}
