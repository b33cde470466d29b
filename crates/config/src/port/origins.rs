//! `cors_origins`: origins of web pages, written as browsers write them, since they are compared byte by byte.

use settings::{Diagnostic, InvalidValue, Located, Section, SettingsReader};

/// Every origin.
const ANY: &str = "*";

/// The origins of a list: each once, and `*` alone.
pub(crate) fn read(reader: &mut SettingsReader<'_>, section: &Section<'_>, key: &str) -> Vec<String> {
    let origins = reader.texts(section, key).map(|list| list.value).unwrap_or_default();
    for (index, origin) in origins.iter().enumerate() {
        if let Err(wrong) = check(&origin.value) {
            let title = format!("invalid value for `{}[{index}]`", section.key_path(key));
            reader.push(Diagnostic::new(title, origin.span.clone(), wrong.label).help(wrong.help));
        } else if let Some(first) = origins[..index].iter().find(|first| first.value == origin.value) {
            let title = format!("conflict: `{}` names an origin twice", section.key_path(key));
            let mistake = Diagnostic::new(title, origin.span.clone(), "here again");
            reader.push(mistake.also(first.span.clone(), "named here"));
        } else if origin.value == ANY && origins.len() > 1 {
            let title = format!("conflict: `{}` allows all origins and names some", section.key_path(key));
            let help = "write [\"*\"], or leave out \"*\"";
            reader.push(Diagnostic::new(title, origin.span.clone(), "all of them").help(help.to_owned()));
        }
    }
    origins.into_iter().map(|Located { value, .. }| value).collect()
}

fn check(text: &str) -> Result<(), InvalidValue> {
    let wrong = |label: &str| {
        let help =
            "an origin is a scheme, a host and optionally a port, as in https://app.example or http://localhost:3000";
        Err(InvalidValue::new("is not the origin of a web page", label).help(help))
    };
    if text == ANY {
        return Ok(());
    }
    let Some((scheme, rest)) = text.split_once("://") else { return wrong("expected a scheme and `://`") };
    if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return wrong("expected lowercase, as browsers send it");
    }
    if !is_scheme(scheme) {
        return wrong("the text before `://` is not a scheme");
    }
    if rest.contains(['/', '?', '#', '@']) {
        return wrong("expected only host and port after `://`");
    }
    let (host, port) = split(rest);
    if !is_host(host) {
        return wrong("expected a host after `://`");
    }
    match (port, scheme) {
        (Some("80"), "http") | (Some("443"), "https") => wrong("leave out this port, as browsers do"),
        (Some(port), _) if !is_port(port) => wrong("expected a port from 1 to 65535"),
        _ => Ok(()),
    }
}

/// Host and port; the colons within brackets are the host's.
fn split(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    }
}

/// RFC 3986 §3.1.
fn is_scheme(text: &str) -> bool {
    let is_of_scheme = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"+-.".contains(&byte);
    text.starts_with(|first: char| first.is_ascii_lowercase()) && text.bytes().all(is_of_scheme)
}

fn is_host(text: &str) -> bool {
    match text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte)),
    }
}

fn is_port(text: &str) -> bool {
    !text.starts_with(['0', '+']) && text.parse::<u16>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_written_as_browsers_write_them() {
        for text in [
            "*",
            "https://a.example",
            "http://localhost:3000",
            "http://[::1]:81",
            "https://[2001:db8::1]",
            "http://a:443",
            "moz-extension://0f3d",
        ] {
            assert!(check(text).is_ok(), "{text}");
        }
        for text in [
            "",
            "null",
            "a.example",
            "//a",
            "https://",
            "https://a/",
            "https://a/b",
            "https://a:443",
            "http://a:80",
            "https://a:0",
            "https://a:65536",
            "https://a:+1",
            "https://a:",
            "https://A",
            "HTTPS://a",
            "https://u@a",
            "https://a b",
            "https://é",
            "https://[::1",
            "https://*.a",
            "1s://a",
            "https://a\r\nx: y",
        ] {
            assert!(check(text).is_err(), "{text}");
        }
    }
}
