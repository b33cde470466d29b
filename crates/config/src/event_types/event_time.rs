//! `time` of a type: how the time of an event is read, and what becomes of an event whose time cannot be read.

use json::JsonPointer;
use settings::{Diagnostic, InvalidValue, Section, SettingsReader};
use timestamp::TimeRule;

/// The settings that say how the time is read.
const OPTIONS: [&str; 3] = ["time_format", "time_zone", "time_unreadable"];

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
    let words = &[("received", false), ("refuse", true)];
    let refuses = reader.word(section, OPTIONS[2], "is not a supported action", words);
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
