//! Lines of access logs, in the common and the combined format.

use std::borrow::Cow;

use super::Members;
use crate::change::Changed;
use text::rfc3339;
use timestamp::{TimeFormat, Zone};

const WRONG: &str = "the string is not a line of an access log: client, ident, user, [time], \"request\", status, bytes, and \
                     optionally \"referrer\" and \"agent\"";

/// The fields of a line; a `-` in it is null.
pub(super) fn parse(text: &str, out: &mut String) -> Changed {
    read(text.trim(), out).ok_or_else(|| WRONG.to_owned())
}

fn read(line: &str, out: &mut String) -> Option<()> {
    let (client, rest) = word(line)?;
    let (_ident, rest) = word(rest)?;
    let (user, rest) = word(rest)?;
    let (time, rest) = rest.strip_prefix('[')?.split_once(']')?;
    let time = TimeFormat::parse("clf").ok()?.read(time, Some(Zone::UTC)).ok()?;
    let (request, rest) = quoted(rest)?;
    let (status, rest) = word(rest.trim_start())?;
    let (bytes, rest) = word(rest)?;

    let mut members = Members::begin(out);
    members.string("client", client);
    nullable(&mut members, "user", user);
    members.string("time", &rfc3339::format_short(time));
    write_request(&request, &mut members);
    members.json("status", digits(status)?);
    members.json("bytes", if bytes == "-" { "null" } else { digits(bytes)? });
    if let Some((referrer, rest)) = quoted(rest) {
        nullable(&mut members, "referrer", &referrer);
        if let Some((agent, _)) = quoted(rest) {
            nullable(&mut members, "agent", &agent);
        }
    }
    members.end();
    Some(())
}

/// Method, path and protocol, or the unchanged request if it has other parts.
fn write_request(request: &str, members: &mut Members<'_>) {
    let parts: Vec<_> = request.split(' ').collect();
    match parts.as_slice() {
        [method, path, protocol] => {
            members.string("method", method);
            members.string("path", path);
            members.string("protocol", protocol);
        }
        _ => nullable(members, "request", request),
    }
}

fn nullable(members: &mut Members<'_>, name: &str, value: &str) {
    if value == "-" { members.json(name, "null") } else { members.string(name, value) }
}

fn word(text: &str) -> Option<(&str, &str)> {
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    (!word.is_empty()).then(|| (word, rest.trim_start()))
}

/// A quoted text, and the rest.
fn quoted(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let within = text.trim_start().strip_prefix('"')?;
    let mut is_escaped = false;
    let end = within.char_indices().find_map(|(at, character)| {
        let is_end = character == '"' && !is_escaped;
        is_escaped = character == '\\' && !is_escaped;
        is_end.then_some(at)
    })?;
    let (text, rest) = (&within[..end], &within[end + 1..]);
    let decoded = if text.contains('\\') {
        Cow::Owned(text.replace("\\\"", "\"").replace("\\\\", "\\"))
    } else {
        Cow::Borrowed(text)
    };
    Some((decoded, rest))
}

/// A number as JSON may have it: without zeros before it.
fn digits(text: &str) -> Option<&str> {
    let is_number = !text.is_empty() && text.len() <= 20 && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.trim_start_matches('0');
    is_number.then_some(if number.is_empty() { "0" } else { number })
}
