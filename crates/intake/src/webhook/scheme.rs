//! A form of signatures: where the signature is, what it covers, and where the time and the id are.

use std::borrow::Cow;

use super::algorithm::{Algorithm, Encoding};

/// A form of signatures.
#[derive(Clone, Debug)]
pub(super) struct Scheme {
    /// The header of the signature.
    pub(super) header: Cow<'static, str>,
    /// The first one is usual; each is valid.
    pub(super) algorithms: &'static [Algorithm],
    pub(super) encoding: Encoding,
    /// What separates the elements of the header; nothing if it is one element.
    pub(super) separators: &'static [char],
    /// Elements that begin with it are signatures.
    pub(super) prefix: Cow<'static, str>,
    /// The signed text.
    pub(super) signed: Cow<'static, [Part]>,
    /// Where the time of the signature is.
    pub(super) time: Time,
    /// Where the id of the event is.
    pub(super) id: Id,
}

/// A part of the signed text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// A constant.
    Text(Cow<'static, str>),
    /// The time, as the request has it.
    Time,
    /// The id of [`Id::Header`].
    Id,
    /// The body.
    Body,
    /// The URL of the intake with the query of the request.
    Url,
    /// The sorted parameters of the form.
    Form,
}

/// Where the time of the signature is, in seconds or milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Time {
    /// The signature has none.
    None,
    /// In this header.
    Header(Cow<'static, str>),
    /// In the element of the signature's header that begins so.
    Element(Cow<'static, str>),
}

/// Where the id of the event is. Nothing else than signed texts can be one: another header could be changed with each replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Id {
    /// The SHA-256 of the signed text.
    Signed,
    /// A header that is a part of the signed text.
    Header(Cow<'static, str>),
    /// The member of the body at this JSON pointer; without one as [`Id::Signed`].
    Member(Cow<'static, str>),
}

impl Scheme {
    /// The elements of the signature's header.
    pub(super) fn elements<'h>(&self, header: &'h str) -> impl Iterator<Item = &'h str> + use<'h> {
        let separators = self.separators;
        header.split(move |character| separators.contains(&character)).map(str::trim_ascii)
    }
}

/// The parts of a text with placeholders.
///
/// # Errors
/// What is wrong with it.
pub(super) fn parse(template: &str) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    let mut rest = template;
    while !rest.is_empty() {
        let Some((before, from)) = rest.split_once('{') else {
            parts.push(Part::Text(Cow::Owned(rest.to_owned())));
            break;
        };
        if !before.is_empty() {
            parts.push(Part::Text(Cow::Owned(before.to_owned())));
        }
        let (name, after) = from.split_once('}').ok_or("no `}` follows the `{`")?;
        parts.push(match name {
            "timestamp" => Part::Time,
            "id" => Part::Id,
            "body" => Part::Body,
            _ => return Err(format!("`{{{name}}}` is unknown: expected {{body}}, {{timestamp}} or {{id}}")),
        });
        rest = after;
    }
    if parts.iter().filter(|part| **part == Part::Body).count() != 1 {
        return Err("expected {body} once: without it the event isn't signed".to_owned());
    }
    let is_open = |pair: &[Part]| pair[0] == Part::Id && !matches!(pair[1], Part::Text(_));
    if parts.windows(2).any(is_open) {
        return Err("a text must follow {id}: without one, the end of the id isn't signed".to_owned());
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_have_parts() {
        let text = |text: &'static str| Part::Text(text.into());
        assert_eq!(parse("{body}"), Ok(vec![Part::Body]));
        assert_eq!(
            parse("v0:{timestamp}:{body}x"),
            Ok(vec![text("v0:"), Part::Time, text(":"), Part::Body, text("x")])
        );
        assert_eq!(parse("{id}.{body}"), Ok(vec![Part::Id, text("."), Part::Body]));
        for wrong in ["", "{timestamp}", "{body}{body}", "{body", "{Body}", "{id}{body}"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
