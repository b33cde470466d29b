//! The headers of a request that posts events.

use std::borrow::Cow;

use event::TypeName;
use json::batch::Form;
use text::percent;

use super::ack_mode::AckMode;
use super::ids::check_key;
use crate::error_code::ErrorCode;
use crate::event_types::{Slot, TypeCache};
use crate::problem::{Problem, Refused};
use http1::{Coding, Fields};

/// The type of an event without a named type.
pub const DEFAULT_TYPE: &str = "event";

/// The type that a path names, without its percent-encoding.
fn of_path(name: &str) -> Result<Cow<'_, str>, Refused> {
    if !name.contains('%') {
        return Ok(name.into());
    }
    let decoded = percent::decode(name).map(Cow::Owned);
    decoded.ok_or_else(|| {
        Problem::boxed(ErrorCode::UnknownType, "the type in the path must be percent-encoded UTF-8 (RFC 3986)")
    })
}

fn form(fields: &Fields<'_>) -> Form {
    let content_type = fields.content_type.and_then(|value| str::from_utf8(value).ok());
    Form::of_content_type(content_type.unwrap_or_default())
}

/// Whether the content type is that of a web form, which `curl -d` sends for every body.
fn is_web_form(fields: &Fields<'_>) -> bool {
    let media_type = fields.content_type.and_then(|value| value.split(|byte| *byte == b';').next());
    media_type.is_some_and(|name| name.trim_ascii().eq_ignore_ascii_case(b"application/x-www-form-urlencoded"))
}

fn wants_json(fields: &Fields<'_>) -> bool {
    let is_json = |range: &str| range.split(';').next().is_some_and(|name| name.trim() == "application/json");
    let ranges = fields.accept.and_then(|value| str::from_utf8(value).ok());
    ranges.is_some_and(|ranges| ranges.split(',').any(is_json))
}

fn atomic(fields: &Fields<'_>) -> Result<bool, Refused> {
    match fields.atomic {
        None => Ok(false),
        Some(value) if value.eq_ignore_ascii_case(b"true") => Ok(true),
        Some(value) if value.eq_ignore_ascii_case(b"false") => Ok(false),
        Some(_) => Err(Problem::of_header("invalid Forebay-Atomic: use `true` or `false`")),
    }
}

/// The coding of the body. Only one is allowed: each further one would multiply the size that a few bytes can decode to.
fn coding(fields: &Fields<'_>) -> Result<Option<Coding>, Refused> {
    let Some(name) = fields.content_encoding else { return Ok(None) };
    let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
    if is("gzip") || is("x-gzip") {
        Ok(Some(Coding::Gzip))
    } else if is("deflate") {
        Ok(Some(Coding::Deflate))
    } else if is("zstd") {
        Ok(Some(Coding::Zstd))
    } else if is("identity") {
        Ok(None)
    } else {
        Err(Problem::boxed(ErrorCode::ContentEncoding, "unsupported Content-Encoding: use gzip, deflate or zstd, once"))
    }
}

/// The checked parameters of a request that posts events.
pub(crate) struct IngestParams {
    /// The type, unless each payload names its own.
    pub(crate) slot: Option<Slot>,
    /// Whether the request names just this type.
    pub(crate) is_named: bool,
    /// [`TypeCache::readings`] when the head was parsed.
    readings: u32,
    pub(crate) key: Option<Box<[u8]>>,
    /// All records of a batch are accepted, or none.
    pub(crate) atomic: bool,
    /// When the request is answered, if the head says it.
    pub(crate) ack: AckMode,
    /// The response to a single event has its id and position.
    pub(crate) json: bool,
    /// How the body is encoded.
    pub(crate) coding: Option<Coding>,
    /// How the records of a batch are separated.
    pub(crate) form: Form,
    /// Whether a batch may have been sent with `curl -d`, which removes the line breaks of files.
    pub(crate) is_web_form: bool,
}

impl IngestParams {
    /// # Errors
    /// The request is rejected regardless of its body.
    pub(crate) fn of(
        fields: &Fields<'_>,
        is_batch: bool,
        path_type: Option<&str>,
        types: &mut TypeCache,
    ) -> Result<Self, Refused> {
        let coding = coding(fields)?;
        if let Some(key) = fields.key {
            check_key(key, "the Idempotency-Key")?;
        }
        // A header that isn't text isn't a name.
        let header_type = || fields.type_name.map(|value| str::from_utf8(value).unwrap_or_default());
        let path_type = path_type.map(of_path).transpose()?;
        let name = path_type.as_deref().or_else(header_type);
        if name.is_none() {
            types.table().check_stable()?;
        }
        let slot = match name {
            Some(name) => Some(types.find(name)?),
            None if types.table().reads_payloads() => None,
            None => Some(types.find(DEFAULT_TYPE)?),
        };
        let is_named = slot.is_some_and(|slot| name == Some(types.get(slot).name.as_str()));
        let form = if is_batch { form(fields) } else { Form::Detect };
        let is_web_form = is_batch && is_web_form(fields);
        let (atomic, ack) = (atomic(fields)?, AckMode::of_header(fields.ack)?.of_head(types, slot));
        let (key, json, readings) = (fields.key.map(Box::from), wants_json(fields), types.readings());
        Ok(Self { slot, is_named, readings, key, atomic, ack, json, coding, form, is_web_form })
    }

    /// The parameters of an intake's request, whose records are of the type `name` unless the protocol names theirs. `Forebay-Ack` has no
    /// effect: success means that the records are on disk. With `has_own_coding`, the protocol decodes the body.
    ///
    /// # Errors
    /// The request is rejected regardless of its body.
    pub(crate) fn of_intake(
        fields: &Fields<'_>,
        name: Option<&TypeName>,
        (atomic, has_own_coding): (bool, bool),
        types: &mut TypeCache,
    ) -> Result<Self, Refused> {
        types.table().check_stable()?;
        let slot = name.map(|name| types.find(name.as_str())).transpose()?;
        Ok(Self {
            slot,
            is_named: false,
            readings: types.readings(),
            key: None,
            atomic,
            ack: AckMode::Disk,
            json: false,
            coding: if has_own_coding { None } else { coding(fields)? },
            form: Form::Array,
            is_web_form: false,
        })
    }

    /// The parameters of an event that Forebay posts, of the type at `slot`.
    pub(crate) fn of_own_event(types: &TypeCache, slot: Slot, key: Box<[u8]>) -> Self {
        Self {
            slot: Some(slot),
            is_named: true,
            readings: types.readings(),
            key: Some(key),
            atomic: false,
            ack: AckMode::Disk,
            json: false,
            coding: None,
            form: Form::Detect,
            is_web_form: false,
        }
    }

    /// Whether the head would be parsed like this now too.
    ///
    /// # Errors
    /// The configuration has changed: the events could be of another type, or transforms could read other headers.
    pub(crate) fn check_reading(&self, types: &TypeCache) -> Result<(), Problem> {
        if self.readings == types.readings() {
            return Ok(());
        }
        let steps = self.slot.and_then(|slot| types.get(slot).rules.steps.as_ref());
        let asks = steps.is_some_and(|steps| steps.headers().next().is_some());
        if self.is_named && !asks { Ok(()) } else { Err(Problem::changing()) }
    }
}
