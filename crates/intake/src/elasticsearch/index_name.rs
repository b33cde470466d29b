//! The type of an index.

use crate::type_name;

/// Digits of the number that a rollover appends.
const ROLLOVER_DIGITS: usize = 6;

/// The name of the type of an index: without `.ds-` of a data stream's index, the number of a rollover, and the date.
///
/// # Errors
/// See [`type_name`].
pub(super) fn type_of(index: &str) -> Result<String, String> {
    let stream = index.strip_prefix(".ds-").unwrap_or(index);
    type_name(kept(stream, without_date(without_rollover(without_date_math(stream)))))
}

/// `part`, unless nothing is left of the name.
const fn kept<'a>(whole: &'a str, part: &'a str) -> &'a str {
    if part.is_empty() { whole } else { part }
}

/// `<logs-{now/d}-000001>` without what date math replaces.
fn without_date_math(index: &str) -> &str {
    let Some(inner) = index.strip_prefix('<').and_then(|rest| rest.strip_suffix('>')) else { return index };
    inner.split('{').next().unwrap_or_default().trim_end_matches(is_separator)
}

fn without_rollover(index: &str) -> &str {
    match index.rsplit_once('-') {
        Some((rest, digits)) if digits.len() == ROLLOVER_DIGITS && is_number(digits) => rest,
        _ => index,
    }
}

/// Without `2026.11.28`, `2026-11-28`, `2026.11`, `2026.48` (a week), `2026.11.28.13` or `20261128` at the end.
fn without_date(index: &str) -> &str {
    let mut end = index;
    let mut parts = [0; 4];
    for count in 1..=parts.len() {
        let Some((rest, digits)) = end.rsplit_once(is_separator) else { return index };
        let Some(number) = number(digits) else { return index };
        if let Some(part) = parts.get_mut(count - 1) {
            *part = number;
        }
        match digits.len() {
            2 => end = rest,
            4 if is_date(number, &parts[..count - 1]) => return rest,
            8 if count == 1 && is_date(number / 10_000, &[number % 100, number / 100 % 100]) => return rest,
            _ => return index,
        }
    }
    index
}

/// Whether numbers are a date; `fields` is in reverse order.
fn is_date(year: u32, fields: &[u32]) -> bool {
    let is_day = |month: u32, day: u32| (1..=12).contains(&month) && (1..=31).contains(&day);
    (1970..2200).contains(&year)
        && match *fields {
            [month_or_week] => (1..=53).contains(&month_or_week),
            [day, month] => is_day(month, day),
            [hour, day, month] => is_day(month, day) && hour < 24,
            _ => false,
        }
}

const fn is_separator(character: char) -> bool {
    matches!(character, '-' | '.' | '_')
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn number(digits: &str) -> Option<u32> {
    is_number(digits).then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_becomes_type_without_date() {
        for (index, expected) in [
            ("orders", "orders"),
            ("logs-2026.11.28", "logs"),
            ("logs-2026-11-28", "logs"),
            ("logs_2026_11_28", "logs"),
            ("logs-2026.11.28-000001", "logs"),
            ("logs-000017", "logs"),
            ("logs-2026.11", "logs"),
            ("logs-2026.48", "logs"),
            ("logs-2026.11.28.13", "logs"),
            ("logs-20261128", "logs"),
            (".ds-filebeat-8.19.0-2026.11.28-000001", "filebeat-8.19.0"),
            (".ds-logs-nginx.access-default-2026.11.28-000003", "logs-nginx.access-default"),
            ("<logs-{now/d}-000001>", "logs"),
            ("<logstash-{now/d{yyyy.MM.dd|+12:00}}>", "logstash"),
            ("Logs App", "logs_app"),
        ] {
            assert_eq!(type_of(index).as_deref(), Ok(expected), "{index}");
        }
    }

    #[test]
    fn other_numbers_stay_in_the_type() {
        for index in [
            "filebeat-8.19.0",
            "app-1.12.10",
            "logs-2026",
            "logs-1234.11.28",
            "logs-2026.13.28",
            "logs-2026.54",
            "logs-2026.11.32",
            "logs-2026.11.28.24",
            "logs-2026.11.28.10.10",
            "logs-20261328",
            "logs-0000001",
            "x-12345",
            "11.28",
            "2026.11.28",
        ] {
            assert_eq!(type_of(index).as_deref(), Ok(index));
        }
        assert_eq!(type_of("-000001").as_deref(), Ok("0-000001"));
        assert_eq!(type_of("<{now/d}>").as_deref(), Ok("0__now_d__"));
        assert!(type_of("").is_err() && type_of(&"a".repeat(65)).is_err());
    }
}
