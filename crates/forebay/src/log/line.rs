//! One line of the log: `TIME LEVEL MESSAGE  name=value …` for operators, or a JSON object for programs.

use std::borrow::Cow;

use config::LogLevel;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;
use text::rfc3339;

/// Bytes of a time down to its milliseconds.
const MILLISECONDS_END: usize = 23;
/// The fields by which events of the same message are of different kinds. Their values come from the configuration or from discovery, so
/// there are few.
const SUBJECT: [&str; 4] = ["sink", "upstream", "server", "server_sink"];

/// An event of the log.
pub(super) struct Line<'a> {
    /// Microseconds since 1970, UTC.
    pub(super) at: i64,
    pub(super) level: LogLevel,
    pub(super) message: &'a str,
    pub(super) fields: Vec<(&'static str, Value)>,
}

impl<'a> Line<'a> {
    /// A message without fields.
    pub(super) fn now(level: LogLevel, message: &'a str) -> Self {
        Self { at: clock::unix_microseconds(), level, message, fields: Vec::new() }
    }

    /// The sink, or the writer of an upstream, that the event is about.
    pub(super) fn subject(&self) -> impl Iterator<Item = &str> {
        let of_subject = self.fields.iter().filter(|(name, _)| SUBJECT.contains(name));
        of_subject.filter_map(|(_, value)| value.as_str())
    }

    /// The line, with its line break.
    pub(super) fn shown(&self, is_json: bool) -> String {
        if is_json {
            // Texts and numbers can't fail to be written.
            return serde_json::to_string(self).unwrap_or_default() + "\n";
        }
        let mut line = format!("{} {:5} {}", self.time(), self.level, visible(self.message));
        for (at, (name, value)) in self.fields.iter().enumerate() {
            line += if at == 0 { "  " } else { " " };
            line += name;
            line.push('=');
            match value {
                Value::String(text) if is_bare(text) => line += text,
                Value::String(text) => line += &Value::from(&*visible(text)).to_string(),
                other => line += &other.to_string(),
            }
        }
        line + "\n"
    }

    fn time(&self) -> String {
        let time = rfc3339::format(self.at);
        time.get(..MILLISECONDS_END).unwrap_or_default().to_owned() + "Z"
    }
}

impl Serialize for Line<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("time", &self.time())?;
        object.serialize_entry("level", &self.level.name())?;
        object.serialize_entry("message", &visible(self.message))?;
        for (name, value) in &self.fields {
            match value {
                Value::String(text) => object.serialize_entry(name, &visible(text))?,
                other => object.serialize_entry(name, other)?,
            }
        }
        object.end()
    }
}

/// Whether a text needs no quotes: nothing in it separates fields.
fn is_bare(text: &str) -> bool {
    let separates = |character: char| character.is_whitespace() || matches!(character, '"' | '=' | '\\');
    !text.is_empty() && !text.contains(separates) && matches!(text::escape_control(text), Cow::Borrowed(_))
}

/// A text that may have several lines. Nothing in it is obeyed by the terminal that shows it.
fn visible(text: &str) -> String {
    text.split('\n').map(text::escape_control).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(message: &str) -> Line<'_> {
        let fields = vec![
            ("lane", "0/search".into()),
            ("shard", 0.into()),
            ("reason", "say \"no\"\nto \u{1b}[31m".into()),
            ("type", "".into()),
        ];
        Line { at: 1_764_122_645_123_456, level: LogLevel::Warning, message, fields }
    }

    #[test]
    fn json_is_one_object_on_one_line() {
        let shown = line("two\nlines and \"quotes\" and \u{7}").shown(true);
        assert_eq!(
            shown,
            "{\"time\":\"2025-11-26T02:04:05.123Z\",\"level\":\"warning\",\"message\":\"two\\nlines and \\\"quotes\\\" and \\\\u0007\",\
             \"lane\":\"0/search\",\"shard\":0,\"reason\":\"say \\\"no\\\"\\nto \\\\u001b[31m\",\"type\":\"\"}\n"
        );
    }

    #[test]
    fn text_quotes_values_that_look_like_fields() {
        assert_eq!(
            line("lane waits").shown(false),
            "2025-11-26T02:04:05.123Z WARN  lane waits  lane=0/search shard=0 reason=\"say \\\"no\\\"\\nto \\\\u001b[31m\" type=\"\"\n"
        );
    }
}
