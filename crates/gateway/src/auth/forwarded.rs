//! Reads the hops that proxies report: `X-Forwarded-For`, and `Forwarded` (RFC 7239).

use std::net::{IpAddr, SocketAddr};

use http1::{is_of_name, is_of_value as is_of_field};

/// A header that reports hops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Header {
    XForwardedFor,
    Forwarded,
}

/// The sender of a request to a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hop {
    Address(IpAddr),
    /// The proxy doesn't say, or it can't be read.
    Unknown,
}

/// Passes on every hop that a head names, from left to right and line by line.
pub(crate) fn hops(head: &[u8], found: &mut impl FnMut(Header, Hop)) {
    for line in head.split(|byte| *byte == b'\n').skip(1) {
        let Some(colon) = memchr::memchr(b':', line) else { continue };
        let (name, value) = (&line[..colon], &line[colon + 1..]);
        if name.eq_ignore_ascii_case(b"x-forwarded-for") {
            // A quote has no meaning in this list: a client can't hide what a proxy appends after it.
            let elements =
                value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|element| !element.is_empty());
            elements.for_each(|element| found(Header::XForwardedFor, hop(element)));
        } else if name.eq_ignore_ascii_case(b"forwarded") {
            let value = value.trim_ascii();
            // If a line breaks the grammar, what a proxy appended can't be distinguished from what its client wrote.
            if forwarded(value, &mut |_| {}).is_none() {
                found(Header::Forwarded, Hop::Unknown);
            } else {
                forwarded(value, &mut |hop| found(Header::Forwarded, hop));
            }
        }
    }
}

/// Passes on the hops of a line of `Forwarded`, which may have empty elements like every list; `None` if it breaks the grammar (RFC 7239 §4).
fn forwarded(mut line: &[u8], found: &mut impl FnMut(Hop)) -> Option<()> {
    loop {
        line = line.trim_ascii_start();
        if !matches!(line, [] | [b',', ..]) {
            let (hop, rest) = element(line)?;
            found(hop);
            line = rest.trim_ascii_start();
        }
        match line {
            [] => return Some(()),
            [b',', rest @ ..] => line = rest,
            _ => return None,
        }
    }
}

/// Takes an element off a line: parameters, each at most once of those that matter here, with `;` between them.
fn element(mut line: &[u8]) -> Option<(Hop, &[u8])> {
    let mut hop_found = None;
    loop {
        let (name, rest) = token(line)?;
        let (value, rest) = value(rest.strip_prefix(b"=")?)?;
        if name.eq_ignore_ascii_case(b"for") && hop_found.replace(hop(value)).is_some() {
            return None;
        }
        let rest = rest.trim_ascii_start();
        let Some(next) = rest.strip_prefix(b";") else { return Some((hop_found.unwrap_or(Hop::Unknown), rest)) };
        line = next.trim_ascii_start();
    }
}

fn token(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = line.iter().position(|byte| !is_of_name(*byte)).unwrap_or(line.len());
    (end > 0).then(|| line.split_at(end))
}

/// A token, or the text between quotes, without unescaping: an address has no escapes. Proxies also write IPv6 addresses and ports without
/// quotes.
fn value(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let Some(quoted) = line.strip_prefix(b"\"") else {
        let is_of_value = |byte: u8| is_of_name(byte) || matches!(byte, b':' | b'[' | b']');
        let end = line.iter().position(|byte| !is_of_value(*byte)).unwrap_or(line.len());
        return (end > 0).then(|| line.split_at(end));
    };
    let mut at = 0;
    loop {
        match quoted.get(at)? {
            b'"' => return Some((&quoted[..at], &quoted[at + 1..])),
            b'\\' => at += 2,
            byte if is_of_field(*byte) => at += 1,
            _ => return None,
        }
    }
}

/// An address, with a port or without; one of IPv6 may have brackets.
fn hop(text: &[u8]) -> Hop {
    let Ok(text) = str::from_utf8(text) else { return Hop::Unknown };
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let address = bare.parse().ok().or_else(|| text.parse::<SocketAddr>().ok().map(|address| address.ip()));
    address.map_or(Hop::Unknown, |address: IpAddr| Hop::Address(address.to_canonical()))
}
