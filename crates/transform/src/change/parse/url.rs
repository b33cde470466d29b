//! URLs and their queries.

use super::{Members, Repeating};
use crate::change::Changed;
use ::text::percent;
use json::text;

/// The parts that there are, as they are written; a port is a number.
pub(super) fn parse(text: &str, out: &mut String) -> Changed {
    let (rest, fragment) = split(text, '#');
    let (rest, query) = split(rest, '?');
    let (scheme, rest) = split_scheme(rest);
    let mut members = Members::begin(out);
    members.some("scheme", scheme.map(str::to_ascii_lowercase).as_deref());
    let path = match rest.strip_prefix("//") {
        Some(rest) => {
            let end = rest.find('/').unwrap_or(rest.len());
            write_authority(&rest[..end], &mut members)?;
            &rest[end..]
        }
        None => rest,
    };
    members.string("path", path);
    members.some("query", query);
    members.some("fragment", fragment);
    members.end();
    Ok(())
}

/// Members of a query; of those that come more than once, the values as an array.
pub(super) fn parse_query(text: &str, out: &mut String) {
    let mut members = Repeating::default();
    for pair in text.strip_prefix('?').unwrap_or(text).split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        members.push(decode(name), text::string(&decode(value)));
    }
    members.write(out);
}

fn split(text: &str, at: char) -> (&str, Option<&str>) {
    text.split_once(at).map_or((text, None), |(before, behind)| (before, Some(behind)))
}

fn split_scheme(text: &str) -> (Option<&str>, &str) {
    let is_scheme = |name: &str| {
        name.starts_with(|first: char| first.is_ascii_alphabetic())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    };
    match text.split_once(':') {
        Some((name, rest)) if is_scheme(name) => (Some(name), rest),
        _ => (None, text),
    }
}

/// `user:password@host:port`: what follows the colon of a user is left out.
fn write_authority(text: &str, members: &mut Members<'_>) -> Changed {
    let (user, host) = text.rsplit_once('@').map_or((None, text), |(user, host)| (Some(user), host));
    members.some("user", user.map(|user| user.split_once(':').map_or(user, |(user, _)| user)));
    let (host, port) = match host.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port),
        _ => (host, ""),
    };
    members.string("host", &host.to_ascii_lowercase());
    if port.is_empty() {
        return Ok(());
    }
    let number: u16 = port.parse().map_err(|_| "the port is not a number up to 65535".to_owned())?;
    members.json("port", &number.to_string());
    Ok(())
}

/// `+` is a blank; a `%` without two digits stays, and bytes that are no UTF-8 become `\u{fffd}`.
fn decode(text: &str) -> String {
    percent::decode_lossy(&text.replace('+', " "))
}
