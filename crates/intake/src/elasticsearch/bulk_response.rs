//! The response of the bulk API: `{"took":0,"errors":false,"items":[…]}`, without blanks. Some senders search it for `"errors":true`.

use std::io::Write;

use crate::{Detail, RecordVerdict, Reply, Verdicts};

use super::action::Verb;
use super::error::{ARGUMENT, CONFLICT, DOCUMENT};
use super::filter::{ItemShown, Shown};
use super::items::{Items, Shape};
use super::media;

/// Bytes of an item that is stored, without its index and its id.
const ITEM_BYTES: usize = r#"{"create":{"_index":"","_id":"","_version":1,"result":"created","status":201}},"#.len();
/// Bytes of an id for a document without one.
const GENERATED_ID_BYTES: usize = 17;
const WRAPPER_BYTES: usize = 64;

/// About how many bytes the response has.
fn capacity(items: &Items, shown: &Shown) -> usize {
    let names = |shape: Shape<'_>| {
        let index = if shown.shows_indexes() { shape.index.len() } else { 0 };
        ITEM_BYTES + index + shape.id.map_or(GENERATED_ID_BYTES, str::len)
    };
    WRAPPER_BYTES + items.all().map(names).sum::<usize>()
}

/// The response, with a verdict on each action.
pub(super) fn write(items: &Items, shown: &Shown, id_prefix: &str, media: &'static str, verdicts: &Verdicts) -> Reply {
    let mut out = Vec::with_capacity(capacity(items, shown));
    out.push(b'{');
    if shown.took {
        out.extend_from_slice(b"\"took\":0,");
    }
    if shown.errors {
        let errors: &[u8] = if verdicts.rejected() > 0 { b"\"errors\":true," } else { b"\"errors\":false," };
        out.extend_from_slice(errors);
    }
    let before = out.len();
    out.extend_from_slice(b"\"items\":[");
    let list = out.len();
    for (number, (shape, verdict)) in items.all().zip(verdicts.all()).enumerate() {
        let outcome = Outcome { number, id_prefix, verdict: *verdict, detail: verdicts.detail(number) };
        write_item(&shape, &outcome, shown.item(shape.verb), &mut out);
    }
    if out.len() == list {
        // As with Elasticsearch, a list without members is left out.
        out.truncate(before);
        remove_comma(&mut out);
    } else {
        remove_comma(&mut out);
        out.push(b']');
    }
    out.push(b'}');
    media::json(200, media, out)
}

/// What became of an action.
struct Outcome<'a> {
    number: usize,
    id_prefix: &'a str,
    verdict: RecordVerdict,
    detail: Option<&'a Detail>,
}

/// Writes an item and a comma; nothing if it has no members.
fn write_item(shape: &Shape<'_>, outcome: &Outcome<'_>, shown: ItemShown, out: &mut Vec<u8>) {
    let before = out.len();
    put(out, &["{\"", shape.verb.name(), "\":{"]);
    let members = out.len();
    if shown.index {
        put(out, &["\"_index\":\"", shape.index, "\","]);
    }
    if shown.id {
        write_id(shape, outcome, out);
    }
    match outcome.verdict {
        RecordVerdict::Accepted => write_stored(shown, out),
        RecordVerdict::IdReused => write_error((409, CONFLICT), outcome, shown, out),
        RecordVerdict::Rejected => write_error((400, rejection_type(shape.verb)), outcome, shown, out),
    }
    if out.len() == members {
        out.truncate(before);
        return;
    }
    remove_comma(out);
    out.extend_from_slice(b"}},");
}

fn write_id(shape: &Shape<'_>, outcome: &Outcome<'_>, out: &mut Vec<u8>) {
    match shape.id {
        Some(id) => put(out, &["\"_id\":\"", id, "\","]),
        None => {
            put(out, &["\"_id\":\"", outcome.id_prefix, "-"]);
            write_number(outcome.number, out);
            out.extend_from_slice(b"\",");
        }
    }
}

/// Several times as fast as the formatter, for a number in every item.
fn write_number(number: usize, out: &mut Vec<u8>) {
    let mut place = 1;
    while number / place >= 10 {
        place *= 10;
    }
    while place > 0 {
        out.push(b'0' + u8::try_from(number / place % 10).unwrap_or(0));
        place /= 10;
    }
}

fn write_stored(shown: ItemShown, out: &mut Vec<u8>) {
    if shown.version && shown.result && shown.status {
        out.extend_from_slice(b"\"_version\":1,\"result\":\"created\",\"status\":201,");
        return;
    }
    for (is_shown, member) in [
        (shown.version, "\"_version\":1,"),
        (shown.result, "\"result\":\"created\","),
        (shown.status, "\"status\":201,"),
    ] {
        if is_shown {
            out.extend_from_slice(member.as_bytes());
        }
    }
}

fn write_error((status, kind): (u16, &str), outcome: &Outcome<'_>, shown: ItemShown, out: &mut Vec<u8>) {
    if shown.status {
        // Writing to a vector can't fail.
        drop(write!(out, "\"status\":{status},"));
    }
    if shown.error_type || shown.error_reason {
        out.extend_from_slice(b"\"error\":{");
        if shown.error_type {
            put(out, &["\"type\":\"", kind, "\","]);
        }
        if shown.error_reason {
            put(out, &["\"reason\":", &json::text::string(&reason(outcome.verdict, outcome.detail)), ","]);
        }
        remove_comma(out);
        out.extend_from_slice(b"},");
    }
}

/// Why a document isn't stored.
pub(super) fn reason(verdict: RecordVerdict, detail: Option<&Detail>) -> String {
    match (verdict, detail) {
        (RecordVerdict::IdReused, _) => {
            "id_reused: another document with this `_id` is stored: send a new `_id` to store both".to_owned()
        }
        (_, Some(detail)) => format!("{}: {}", detail.code, detail.detail),
        (_, None) => {
            "the document is rejected; the response has the reasons of the first rejected documents only".to_owned()
        }
    }
}

const fn rejection_type(verb: Verb) -> &'static str {
    if verb.is_accepted() { DOCUMENT } else { ARGUMENT }
}

fn put(out: &mut Vec<u8>, parts: &[&str]) {
    for part in parts {
        out.extend_from_slice(part.as_bytes());
    }
}

fn remove_comma(out: &mut Vec<u8>) {
    if out.last() == Some(&b',') {
        out.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_is_written() {
        for number in [0, 9, 10, 99, 100, 12_045, 99_999] {
            let mut out = Vec::new();
            write_number(number, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), number.to_string());
        }
    }
}
