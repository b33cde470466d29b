//! One event, from its members to a payload.

use std::borrow::Cow;

use json::{parts, text};

use super::replies::{BLANK_EVENT, NO_EVENT};
use super::time;
use crate::{IntakeHead, type_name};

/// The type of an event without `sourcetype`.
const TYPE: &str = "hec";
/// The members that describe an event.
const DESCRIPTION: [&str; 4] = ["host", "source", "sourcetype", "index"];

/// What the query says of events that don't say it: JSON strings.
#[derive(Debug, Default)]
pub(super) struct Defaults {
    values: [Option<String>; 4],
}

/// Why an event is rejected.
pub(super) struct Fault {
    /// Splunk's number of the reason.
    pub(super) code: u8,
    pub(super) detail: Cow<'static, str>,
}

impl Defaults {
    pub(super) fn of(head: &IntakeHead<'_>) -> Self {
        let value = |name| head.parameter(name).filter(|value| !value.is_empty()).map(|value| text::string(&value));
        Self { values: DESCRIPTION.map(value) }
    }

    /// The bytes that they add to an event at most.
    pub(super) fn bytes(&self) -> usize {
        self.values.iter().flatten().map(String::len).sum()
    }
}

/// The members of an event as they are written. A member that is null is absent.
#[derive(Debug, Default)]
pub(super) struct Members<'a> {
    time: Option<&'a str>,
    description: [Option<&'a str>; 4],
    event: Option<&'a str>,
    fields: Option<&'a str>,
}

impl<'a> Members<'a> {
    /// Whether the event has a time.
    pub(super) const fn has_time(&self) -> bool {
        self.time.is_some()
    }

    /// Reads a value of a body.
    pub(super) fn of(value: &'a str, defaults: &'a Defaults) -> Result<Self, Fault> {
        if !value.starts_with('{') {
            return Err(Fault::new(format!(
                "the value is {}: send an object with the member `event`",
                text::kind(value)
            )));
        }
        let mut members = Self::default();
        for member in parts::members(value) {
            let value = Some(member.value).filter(|value| *value != "null");
            match &*member.name() {
                "time" => members.time = value,
                "event" => members.event = value,
                "fields" => members.fields = value,
                name => {
                    if let Some(at) = DESCRIPTION.iter().position(|known| *known == name) {
                        members.description[at] = value.filter(|value| *value != "\"\"");
                    }
                }
            }
        }
        Ok(members.or(defaults))
    }

    /// An event that is a line of text, as a JSON string.
    pub(super) fn of_line(line: &'a str, defaults: &'a Defaults) -> Self {
        Self { event: Some(line), ..Self::default() }.or(defaults)
    }

    fn or(mut self, defaults: &'a Defaults) -> Self {
        for (value, default) in self.description.iter_mut().zip(&defaults.values) {
            *value = value.or(default.as_deref());
        }
        self
    }

    /// The name of the event's type.
    pub(super) fn type_name(&self) -> Result<Cow<'static, str>, Fault> {
        let [_, _, source_type, _] = self.description;
        match source_type.map(text::scalar) {
            None => Ok(TYPE.into()),
            Some(Some(name)) => type_name(&name).map(Cow::Owned).map_err(Fault::new),
            Some(None) => Err(Fault::new("`sourcetype` is no text: send a string")),
        }
    }

    /// Writes the payload.
    pub(super) fn write(&self, out: &mut String) -> Result<(), Fault> {
        let event = self.event.ok_or(Fault { code: NO_EVENT, detail: "".into() })?;
        if event == "\"\"" {
            return Err(Fault { code: BLANK_EVENT, detail: "".into() });
        }
        out.push('{');
        if let Some(written) = self.time {
            let time = text::scalar(written).and_then(|text| time::read(&text));
            let time = time.ok_or_else(|| Fault::new("`time` is no time: send seconds since 1970"))?;
            member("time", &text::string(&time), out);
        }
        for (name, value) in DESCRIPTION.iter().zip(self.description) {
            match value.map(|value| (value, value.starts_with(['{', '[']))) {
                Some((_, true)) => return Err(Fault::new(format!("`{name}` is no text: send a string"))),
                Some((value, false)) => member(name, value, out),
                None => {}
            }
        }
        member("event", event, out);
        if let Some(fields) = self.fields {
            if !fields.starts_with('{') {
                return Err(Fault::new(format!("`fields` is {}: send an object", text::kind(fields))));
            }
            member("fields", fields, out);
        }
        out.push('}');
        Ok(())
    }
}

impl Fault {
    pub(super) fn of_large_line() -> Self {
        Self::new("the line has more than 1 MiB: send shorter ones")
    }

    fn new(detail: impl Into<Cow<'static, str>>) -> Self {
        Self { code: 6, detail: detail.into() }
    }
}

fn member(name: &str, value: &str, out: &mut String) {
    if out.len() > 1 {
        out.push(',');
    }
    text::write_string(name, out);
    out.push(':');
    out.push_str(value);
}
