//! `time` of a type: how the time of an event is read, and what becomes of an event whose time cannot be read.

use json::JsonPointer;
use settings::{Diagnostic, InvalidValue, POINTER, Section, Setting, SettingsReader, Unset, words};
use timestamp::TimeRule;

/// The settings that say how the time is read.
const OPTIONS: [&str; 3] = [FORMAT.name, ZONE.name, UNREADABLE.name];
/// The pointer to the time.
pub(crate) const TIME: Setting = Setting::new(
    "time",
    POINTER,
    "the JSON pointer to the time of the event, for [aggregates](aggregates.md) and days in names. Events without one use their receive time. \
     Read after the steps, when the event is accepted",
)
.example("\"/time\"");
/// The format of the time.
pub(crate) const FORMAT: Setting = Setting::text(
    "time_format",
    "the format of the time, as [`coerce`](../transforms.md#kinds-and-forms) reads it: `rfc3339`, `unix`, `unix_ms`, `unix_us`, `unix_ns`, \
     `rfc2822`, `clf` or a pattern ([formats](types.md#formats-of-time))",
)
.or(Unset::Text("rfc3339"));
/// The zone of the time.
pub(crate) const ZONE: Setting = Setting::text(
    "time_zone",
    "the zone of times without one: `UTC`, or the offset from UTC, as `+01:00`. If unset, such a time is unreadable",
)
.example("\"UTC\"");
/// What becomes of events with an unreadable time.
pub(crate) const UNREADABLE: Setting = Setting::choice(
    "time_unreadable",
    &words(&UNREADABLE_WORDS),
    "for an event with an unreadable time: `received` uses the receive time, `refuse` answers 422 `time` ([formats](types.md#formats-of-time))",
)
.or(Unset::Text("received"));
const UNREADABLE_WORDS: [(&str, bool); 2] = [("received", false), ("refuse", true)];

/// The rule for the time at this pointer.
pub(crate) fn read(
    reader: &mut SettingsReader<'_>,
    section: &Section<'_>,
    at: Option<JsonPointer>,
) -> Option<TimeRule> {
    let has_time = section.get("time").is_some() || at.is_some();
    let rule = TimeRule::from(at.unwrap_or(JsonPointer::WHOLE));
    let format = reader.text(section, OPTIONS[0], |text| {
        let with_format = rule.clone().with_format(text);
        with_format.map(|_| text.to_owned()).map_err(|why| InvalidValue::new("is not a time format", why))
    });
    let zone = reader.text(section, OPTIONS[1], |text| {
        let wanted = "expected \"UTC\" or an offset from UTC, such as \"+01:00\"";
        let with_zone = rule.clone().with_zone(text);
        with_zone.map(|_| text.to_owned()).ok_or_else(|| InvalidValue::new("is not a time zone", wanted))
    });
    let refuses = reader.word(section, UNREADABLE.name, "is not a supported action", &UNREADABLE_WORDS);
    if !has_time {
        let spans = [format.map(|found| found.span), zone.map(|found| found.span), refuses.map(|found| found.span)];
        for (option, span) in OPTIONS.into_iter().zip(spans).filter_map(|(option, span)| Some((option, span?))) {
            let title = format!("unused setting `{}` without `time`", section.key_path(option));
            reader.push(Diagnostic::new(title, span, "the type has no `time`"));
        }
        return None;
    }
    let rule = format.iter().try_fold(rule, |rule, found| rule.with_format(&found.value)).ok()?;
    let rule = zone.iter().try_fold(rule, |rule, found| rule.with_zone(&found.value))?;
    Some(if refuses.is_some_and(|found| found.value) { rule.refusing() } else { rule })
}
