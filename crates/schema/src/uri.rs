//! Names of documents, and the resolution of references (RFC 3986 §5).

use text::percent;

/// The parts of a reference, without the fragment.
#[derive(Clone, Copy, Debug, Default)]
struct Parts<'a> {
    scheme: Option<&'a str>,
    authority: Option<&'a str>,
    path: &'a str,
    query: Option<&'a str>,
}

impl<'a> Parts<'a> {
    fn of(text: &'a str) -> Self {
        let (scheme, rest) = match text.split_once(':') {
            Some((scheme, rest)) if is_scheme(scheme) => (Some(scheme), rest),
            _ => (None, text),
        };
        let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query)));
        let Some(behind) = rest.strip_prefix("//") else {
            return Self { scheme, authority: None, path: rest, query };
        };
        let (authority, path) = behind.split_at(behind.find('/').unwrap_or(behind.len()));
        Self { scheme, authority: Some(authority), path, query }
    }
}

pub(super) fn is_scheme(text: &str) -> bool {
    let is_of_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    text.starts_with(|first: char| first.is_ascii_alphabetic()) && text.bytes().all(is_of_scheme)
}

/// The text before `#`, and the percent-decoded text after it.
pub(super) fn split_fragment(reference: &str) -> (&str, String) {
    let (document, fragment) = reference.split_once('#').unwrap_or((reference, ""));
    (document, percent::decode(fragment).unwrap_or_else(|| fragment.to_owned()))
}

/// The document that a reference in the document `base` names. Neither has a fragment.
pub(super) fn resolve(base: &str, reference: &str) -> String {
    if reference.is_empty() {
        return base.to_owned();
    }
    let (base, named) = (Parts::of(base), Parts::of(reference));
    if named.scheme.is_some() {
        return written(Parts { path: &cleaned(named), ..named });
    }
    if named.authority.is_some() {
        return written(Parts { scheme: base.scheme, path: &without_dots(named.path), ..named });
    }
    let merged = match named.path {
        "" => {
            let query = named.query.or(base.query);
            return written(Parts { query, ..base });
        }
        path if path.starts_with('/') => path.to_owned(),
        path if base.authority.is_some() && base.path.is_empty() => format!("/{path}"),
        path => format!("{}{path}", base.path.rsplit_once('/').map_or("", |(folder, _)| &base.path[..=folder.len()])),
    };
    written(Parts { path: &without_dots(&merged), query: named.query, ..base })
}

/// The path of a name with a scheme; of one like `urn:…` it stays unchanged.
fn cleaned(parts: Parts<'_>) -> String {
    if parts.path.starts_with('/') { without_dots(parts.path) } else { parts.path.to_owned() }
}

fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let steps: Vec<&str> = path.split('/').collect();
    let is_dots = |step: &str| step == "." || step == "..";
    for step in &steps {
        match *step {
            "." => {}
            ".." if kept.last().is_some_and(|last| !last.is_empty() && *last != "..") => {
                kept.pop();
            }
            // There is nothing above the root; above the start of a relative name there may be.
            ".." if path.starts_with('/') => {}
            step => kept.push(step),
        }
    }
    let mut clean = kept.join("/");
    if steps.last().is_some_and(|last| is_dots(last)) && !clean.ends_with('/') {
        clean.push('/');
    }
    clean
}

fn written(parts: Parts<'_>) -> String {
    let mut text = String::new();
    if let Some(scheme) = parts.scheme {
        text += &format!("{scheme}:");
    }
    if let Some(authority) = parts.authority {
        text += &format!("//{authority}");
    }
    text += parts.path;
    if let Some(query) = parts.query {
        text += &format!("?{query}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_resolve_against_their_base() {
        for (base, reference, whole) in [
            ("http://a/b/c/d?q", "g", "http://a/b/c/g"),
            ("http://a/b/c/d?q", "../g", "http://a/b/g"),
            ("http://a/b/c/d?q", "../../../g", "http://a/g"),
            ("http://a/b/c/d?q", "/g", "http://a/g"),
            ("http://a/b/c/d?q", "//g", "http://g"),
            ("http://a/b/c/d?q", "?y", "http://a/b/c/d?y"),
            ("http://a/b/c/d?q", "", "http://a/b/c/d?q"),
            ("http://a/b/c/d?q", "g:h", "g:h"),
            ("http://a", "b", "http://a/b"),
            ("schemas/a.json", "b.json", "schemas/b.json"),
            ("schemas/a.json", "../b.json", "b.json"),
            ("a.json", "../b.json", "../b.json"),
            ("", "b/c.json", "b/c.json"),
            ("urn:uuid:1", "", "urn:uuid:1"),
            ("urn:uuid:1", "urn:x:2", "urn:x:2"),
        ] {
            assert_eq!(resolve(base, reference), whole, "{reference} in {base}");
        }
    }
}
