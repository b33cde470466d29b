//! Reads what proxies say of those before them: `X-Forwarded-For`, and `Forwarded` (RFC 7239).

use std::net::{IpAddr, SocketAddr};

/// The header that something stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Header {
    XForwardedFor,
    Forwarded,
}

/// Who sent a request to a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hop {
    Address(IpAddr),
    /// The proxy doesn't say, or it can't be read.
    Unknown,
}

/// Gives every hop that a head names, from left to right and line by line.
pub(crate) fn hops(head: &[u8], found: &mut impl FnMut(Header, Hop)) {
    for line in head.split(|byte| *byte == b'\n').skip(1) {
        let Some(colon) = memchr::memchr(b':', line) else { continue };
        let (name, value) = (&line[..colon], &line[colon + 1..]);
        if name.eq_ignore_ascii_case(b"x-forwarded-for") {
            elements(value, b',', &mut |element| found(Header::XForwardedFor, hop(element)));
        } else if name.eq_ignore_ascii_case(b"forwarded") {
            elements(value, b',', &mut |element| found(Header::Forwarded, forwarded_hop(element)));
        }
    }
}

/// The parts of a list that aren't empty. A separator within quotes is none.
fn elements(list: &[u8], separator: u8, found: &mut impl FnMut(&[u8])) {
    let (mut start, mut is_quoted, mut is_escaped) = (0, false, false);
    for (at, byte) in list.iter().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            byte if *byte == separator && !is_quoted => {
                give(&list[start..at], found);
                start = at + 1;
            }
            _ => {}
        }
    }
    give(&list[start..], found);
}

fn give(element: &[u8], found: &mut impl FnMut(&[u8])) {
    let element = element.trim_ascii();
    if !element.is_empty() {
        found(element);
    }
}

/// The `for` of an element of `Forwarded`.
fn forwarded_hop(element: &[u8]) -> Hop {
    let mut hop_found = Hop::Unknown;
    elements(element, b';', &mut |pair| {
        if let Some((name, value)) = pair.split_at_checked("for=".len())
            && name.eq_ignore_ascii_case(b"for=")
        {
            // An address needs no escapes: what has any is none.
            let bare = value.strip_prefix(b"\"").map_or(Some(value), |rest| rest.strip_suffix(b"\""));
            hop_found = bare.map_or(Hop::Unknown, hop);
        }
    });
    hop_found
}

/// An address, with a port or without; one of IPv6 may have brackets.
fn hop(text: &[u8]) -> Hop {
    let Ok(text) = str::from_utf8(text) else { return Hop::Unknown };
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let address = bare.parse().ok().or_else(|| text.parse::<SocketAddr>().ok().map(|address| address.ip()));
    address.map_or(Hop::Unknown, |address: IpAddr| Hop::Address(address.to_canonical()))
}
