//! Whether the objects of a sink can be read back over the intake port, and how they are kept for that.

use std::sync::Arc;
use std::time::Duration;

use ::objects::read::ReadRules;
use limits::{OBJECT_AGE_READ_MAX, OBJECT_CACHE_BYTES_MAX, OBJECT_REVALIDATE};
use settings::{Diagnostic, InvalidValue, Section, Setting, SettingsReader, SourceSpan, Unset, duration};

/// A client that may cache a response has shown a token, or is on this machine.
const CACHE_CONTROL: &str = "private, no-cache";

/// The memory for objects, those of all sinks together.
pub(crate) const CACHE: Setting = Setting::size(
    "object_cache",
    (0, OBJECT_CACHE_BYTES_MAX),
    "memory for [objects that are read back](../../guides/stores/objects.md#reading-objects-back), of all sinks together; `0` for none",
)
.or(Unset::Size(limits::OBJECT_CACHE_BYTES));

/// How objects are given back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Serving {
    /// How they are kept.
    pub rules: ReadRules,
    /// The header `Cache-Control`.
    pub cache_control: Arc<str>,
}

/// Reads the settings; `None` where objects aren't given back.
pub(crate) fn read(reader: &mut SettingsReader<'_>, section: &Section<'_>) -> Option<Serving> {
    let is_served = reader.boolean(section, "serve").is_some_and(|found| found.value);
    let cache_control = reader.text(section, "cache_control", cache_control);
    let [revalidate, stale] = ["revalidate", "stale"].map(|key| reader.text(section, key, age));
    if !is_served {
        let spans = [
            ("cache_control", cache_control.map(|found| found.span)),
            ("revalidate", revalidate.map(|found| found.span)),
            ("stale", stale.map(|found| found.span)),
        ];
        spans.into_iter().for_each(|(key, span)| refuse(reader, section, key, span));
        return None;
    }
    let rules = ReadRules {
        revalidate: revalidate.map_or(OBJECT_REVALIDATE, |found| found.value),
        stale: stale.map_or(Duration::ZERO, |found| found.value),
    };
    Some(Serving { rules, cache_control: cache_control.map_or_else(|| CACHE_CONTROL.into(), |found| found.value) })
}

fn refuse(reader: &mut SettingsReader<'_>, section: &Section<'_>, key: &str, span: Option<SourceSpan>) {
    let Some(span) = span else { return };
    let title = format!("unused setting `{}`", section.key_path(key));
    reader.push(Diagnostic::new(title, span, "only with `serve = true`".to_owned()));
}

fn age(text: &str) -> Result<Duration, InvalidValue> {
    let age = duration::within(text, Duration::ZERO, Duration::MAX)?;
    let days = OBJECT_AGE_READ_MAX.as_secs() / 86_400;
    let too_long = || InvalidValue::new("is out of range", format!("expected 0s to {days}d"));
    if age <= OBJECT_AGE_READ_MAX { Ok(age) } else { Err(too_long()) }
}

/// The header `Cache-Control` of every response.
fn cache_control(text: &str) -> Result<Arc<str>, InvalidValue> {
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    let wrong = || InvalidValue::new("can't be a Cache-Control", "expected a text such as \"private, max-age=3600\"");
    if is_plain && text.trim() == text { Ok(text.into()) } else { Err(wrong()) }
}
