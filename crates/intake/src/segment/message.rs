//! One message, from its members to a payload.

use std::borrow::Cow;

use json::parts::{self, Member};
use json::text;
use limits::EVENT_BYTES_MAX;

use crate::type_name;

/// Members that a retry changes, and the sender's secret. They are neither stored nor compared.
const LEFT_OUT: [&str; 3] = ["sentAt", "_metadata", "writeKey"];
/// Members of a batch that its messages have, unless they have their own.
const SHARED: [&str; 2] = ["context", "integrations"];

/// The members that the messages of a batch share.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shared<'a> {
    values: [Option<&'a str>; 2],
}

impl<'a> Shared<'a> {
    /// Keeps a member of a batch if its messages share it.
    pub(super) fn keep(&mut self, member: Member<'a>) {
        if let Some(at) = SHARED.iter().position(|name| *name == member.name()) {
            self.values[at] = Some(member.value);
        }
    }

    /// The bytes that they add to a message at most.
    pub(super) fn bytes(&self) -> usize {
        self.values.iter().flatten().map(|value| value.len()).sum()
    }
}

/// What a message is.
pub(super) struct Message<'a> {
    pub(super) type_name: String,
    pub(super) id: Option<Cow<'a, str>>,
}

/// Reads a message, and writes its payload. `call` is the type of a message that doesn't say it.
pub(super) fn write<'a>(
    message: &'a str,
    call: Option<&str>,
    shared: Shared<'_>,
    out: &mut String,
) -> Result<Message<'a>, Cow<'static, str>> {
    if !message.starts_with('{') {
        return Err(format!("the message is {}: send an object", text::kind(message)).into());
    }
    // One that is too large is only read.
    let is_written = message.len() <= EVENT_BYTES_MAX;
    let (mut kind, mut id, mut missing) = (None, None, shared.values);
    out.push('{');
    for member in parts::members(message) {
        let name = member.name();
        match &*name {
            name if LEFT_OUT.contains(&name) => continue,
            "type" => kind = Some(member.value),
            "messageId" => id = Some(member.value),
            name => {
                if let Some(at) = SHARED.iter().position(|known| *known == name) {
                    missing[at] = None;
                }
            }
        }
        if is_written {
            add(member.key, member.value, out);
        }
    }
    for (name, value) in SHARED.iter().zip(missing) {
        if let Some(value) = value {
            add(&text::string(name), value, out);
        }
    }
    if kind.is_none()
        && let Some(call) = call
    {
        add("\"type\"", &text::string(call), out);
    }
    out.push('}');
    let kind = match (call, kind.and_then(text::read_string)) {
        // The path counts, as Segment's does.
        (Some(call), _) => call.into(),
        (None, Some(kind)) => kind,
        (None, None) => return Err("`type` is missing or no text: send the message's type, such as \"track\"".into()),
    };
    Ok(Message { type_name: type_name(&format!("segment.{kind}"))?, id: id.and_then(text::scalar) })
}

fn add(key: &str, value: &str, out: &mut String) {
    if out.len() > 1 {
        out.push(',');
    }
    out.push_str(key);
    out.push(':');
    out.push_str(value);
}
