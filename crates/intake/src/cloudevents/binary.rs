//! Binary mode: the attributes in headers, the data in the body.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use crate::IntakeHead;

use super::data::Data;
use super::event::{Event, Invalid};

/// The prefix of the headers of attributes.
const PREFIX: &str = "ce-";

/// The attributes of a request.
#[derive(Debug)]
pub(super) struct Attributes(Vec<(String, String)>);

impl Attributes {
    /// Reads them; `None` if there are none.
    pub(super) fn read(head: &IntakeHead<'_>) -> Option<Self> {
        let named = fields(head).filter_map(|(name, value)| {
            let name =
                name.get(..PREFIX.len()).filter(|start| start.eq_ignore_ascii_case(PREFIX)).and(name.get(3..))?;
            let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
            is_name.then(|| (name.to_ascii_lowercase(), decoded(&value)))
        });
        // The data is the body, and its media type is that of the request.
        let mut found: Vec<_> = named.filter(|(name, _)| name != "data" && name != "datacontenttype").collect();
        if found.is_empty() {
            return None;
        }
        if let Some(media_type) = head.header("content-type").filter(|value| !value.is_empty()) {
            found.push(("datacontenttype".to_owned(), media_type.to_owned()));
        }
        Some(Self(found))
    }

    /// The event of a body.
    pub(super) fn event<'a>(&'a self, body: &'a [u8]) -> Result<(Event<'a>, Data<'a>), Invalid> {
        let mut event = Event::default();
        for (name, value) in &self.0 {
            event.add(Cow::Borrowed(name), Cow::Borrowed(value))?;
        }
        event.check()?;
        let data = Data::of_bytes(&mut event, Cow::Borrowed(body))?;
        Ok((event, data))
    }
}

/// The header fields. A value that isn't UTF-8 is Latin-1: some libraries write it so, and don't encode it.
fn fields<'h>(head: &IntakeHead<'h>) -> impl Iterator<Item = (&'h str, Cow<'h, str>)> + use<'h> {
    head.lines.split(|byte| *byte == b'\n').skip(1).filter_map(|line| {
        let (name, value) = line.split_at_checked(line.iter().position(|byte| *byte == b':')?)?;
        let value = value.get(1..)?.trim_ascii();
        let latin = || Cow::Owned(value.iter().map(|byte| char::from(*byte)).collect());
        Some((str::from_utf8(name).ok()?, str::from_utf8(value).map_or_else(|_| latin(), Cow::Borrowed)))
    })
}

/// The text of a header's value (CloudEvents HTTP binding, §3.1.3.2): first without quotes, then without percent encoding.
fn decoded(value: &str) -> String {
    let quoted = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let plain = quoted.map_or_else(|| Cow::Borrowed(value), |inner| Cow::Owned(unescaped(inner)));
    percent_decode_str(&plain).decode_utf8_lossy().into_owned()
}

fn unescaped(quoted: &str) -> String {
    let mut characters = quoted.chars();
    let next = || match characters.next()? {
        '\\' => characters.next(),
        other => Some(other),
    };
    std::iter::from_fn(next).collect()
}
