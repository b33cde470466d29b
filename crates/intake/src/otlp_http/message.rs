//! A message in protobuf or in JSON, walked without decoding it: what reads a message is written once for both encodings.

use json::parts;

use crate::protobuf;

/// Why a record can't be read: what is wrong, and what to do.
pub(super) type Fault = &'static str;

pub(super) const NO_MESSAGE: Fault = "the bytes are no message of OTLP: send protobuf or JSON as OTLP defines them";

/// The fields of a message that are read: their numbers in protobuf, and their names in JSON.
pub(super) type Fields = [(u32, &'static str)];

/// A message.
#[derive(Clone, Copy, Debug)]
pub(super) enum Message<'a> {
    /// In the wire format of protocol buffers.
    Protobuf(&'a [u8]),
    /// An object. The whole body has passed [`json::check`].
    Json(&'a str),
}

/// A value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value<'a> {
    /// In protobuf.
    Wire(protobuf::WireValue<'a>),
    /// In JSON: neither null nor an array.
    Json(&'a str),
}

impl<'a> Value<'a> {
    /// A message within a message.
    pub(super) fn message(self) -> Result<Message<'a>, Fault> {
        match self {
            Self::Wire(protobuf::WireValue::Bytes(bytes)) => Ok(Message::Protobuf(bytes)),
            Self::Json(json) if json.starts_with('{') => Ok(Message::Json(json)),
            _ => Err(NO_MESSAGE),
        }
    }
}

impl<'a> Message<'a> {
    /// Passes the fields in `known` on, in the order of the bytes. Repeated fields are passed on one by one, except packed numbers.
    pub(super) fn walk<E: From<Fault>>(
        self,
        known: &Fields,
        mut each: impl FnMut(u32, Value<'a>) -> Result<(), E>,
    ) -> Result<(), E> {
        match self {
            Self::Protobuf(bytes) => {
                for field in protobuf::fields(bytes) {
                    let field = field.map_err(|_| NO_MESSAGE)?;
                    if known.iter().any(|(number, _)| *number == field.number) {
                        each(field.number, Value::Wire(field.value))?;
                    }
                }
            }
            Self::Json(text) => {
                for member in parts::members(text) {
                    let name = member.name();
                    let Some((number, _)) = known.iter().find(|(_, known)| is_name(&name, known)) else { continue };
                    each_element(member.value, |value| each(*number, Value::Json(value)))?;
                }
            }
        }
        Ok(())
    }

    /// Its bytes as the sender has written them.
    pub(super) const fn bytes(self) -> &'a [u8] {
        match self {
            Self::Protobuf(bytes) => bytes,
            Self::Json(text) => text.as_bytes(),
        }
    }
}

/// A value of JSON: `null` is an absent field, and an array is a repeated one.
fn each_element<'a, E>(value: &'a str, mut each: impl FnMut(&'a str) -> Result<(), E>) -> Result<(), E> {
    match value.as_bytes().first() {
        Some(b'n') => Ok(()),
        Some(b'[') => parts::elements(value).filter(|element| *element != "null").try_for_each(each),
        _ => each(value),
    }
}

/// Whether a name in JSON is that of a field, in lower camel case or in snake case: `timeUnixNano`, `time_unix_nano`.
fn is_name(name: &str, known: &str) -> bool {
    if name == known {
        return true;
    }
    let mut known = known.bytes();
    let same = |byte: u8| known.next().is_some_and(|known| known.eq_ignore_ascii_case(&byte));
    name.bytes().filter(|byte| *byte != b'_').all(same) && known.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_two_forms() {
        for name in ["timeUnixNano", "time_unix_nano"] {
            assert!(is_name(name, "timeUnixNano"), "{name}");
        }
        for name in ["", "time", "timeUnixNanos", "time_unix", "x"] {
            assert!(!is_name(name, "timeUnixNano"), "{name}");
        }
    }
}
