//! Lines that may be one value over several lines, as pretty printers write it. None of its parts is a record: `2` on a
//! separate line is the element of an array there.

use serde::de::IgnoredAny;
use serde_json::Deserializer;

use super::BatchError;
use crate::{BYTE_ORDER_MARK, JsonError, RecordRejection, check, first_byte, utf8};

/// The message for a value that continues over lines.
pub(super) const OVER_LINES: &str = "the value continues on the next line, but a batch of lines needs each value on one line: convert it with \
     `jq -c .`, or send a single value to /ingest/event";

/// Lines from one on that ends within a value.
#[derive(Debug)]
pub(super) struct Span {
    /// The lines with their breaks.
    text: Vec<u8>,
    /// The number of the first line.
    pub(super) line: u32,
    /// The fault of the first line alone.
    pub(super) own: RecordRejection,
    /// No record was before it.
    pub(super) is_first: bool,
    /// Lines that aren't blank.
    pub(super) lines: u32,
    /// This many bytes are the beginning of a value.
    open: usize,
    /// More than the first line was checked.
    is_checked: bool,
}

/// The extent of a value.
#[derive(Debug)]
pub(super) enum Extent {
    /// More lines could belong to it.
    Open,
    /// To this byte.
    Whole(usize),
    /// The lines up to this byte are separate rejections, and the line that begins there isn't one of them.
    Torn(usize),
    /// It isn't JSON, and continues after these lines.
    Faulty(JsonError),
}

impl Span {
    pub(super) fn new(line: &[u8], own: RecordRejection, is_first: bool) -> Self {
        let number = own.line;
        let mut span = Self { text: Vec::new(), line: number, own, is_first, lines: 0, open: 0, is_checked: false };
        span.push(line);
        span.open = span.text.len();
        span
    }

    /// Adds a line.
    pub(super) fn push(&mut self, line: &[u8]) {
        self.text.extend_from_slice(line);
        self.text.push(b'\n');
        self.lines += u32::from(first_byte(line).is_some());
    }

    pub(super) const fn bytes(&self) -> usize {
        self.text.len()
    }

    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Whether it is time to check the lines: each time their bytes have doubled, so every byte is checked only a few
    /// times.
    pub(super) const fn is_due(&self) -> bool {
        (!self.is_checked && self.lines > 1) || self.text.len() >= 2 * self.open
    }

    /// The extent of the value.
    pub(super) fn extent(&mut self) -> Extent {
        self.is_checked = true;
        let text = match utf8(&self.text) {
            Ok(text) => text,
            Err(error) => return self.faulty(error),
        };
        let mut values = Deserializer::from_str(text).into_iter::<IgnoredAny>();
        match values.next() {
            Some(Err(error)) if error.is_eof() => {
                self.open = self.text.len();
                Extent::Open
            }
            Some(Err(error)) => {
                let error = JsonError::of_syntax(text, &error);
                self.faulty(error)
            }
            _ => Extent::Whole(values.byte_offset()),
        }
    }

    /// A line that begins or holds an array or an object, at a place where the value can't continue, shows that the
    /// line before it was truncated.
    fn faulty(&self, error: JsonError) -> Extent {
        let at = error.offset.min(self.text.len() - 1);
        let first_end = memchr::memchr(b'\n', &self.text).unwrap_or(at);
        if at <= first_end {
            return Extent::Torn(first_end + 1);
        }
        let start = memchr::memrchr(b'\n', &self.text[..at]).map_or(0, |newline| newline + 1);
        let line = &self.text[start..];
        let line = &line[..memchr::memchr(b'\n', line).unwrap_or(line.len())];
        let is_after_blank = first_byte(line).is_some_and(|blank| start + blank == at);
        let begins_record = is_after_blank && matches!(self.text[at], b'{' | b'[');
        if begins_record && (at == start || check(line).is_ok()) { Extent::Torn(start) } else { Extent::Faulty(error) }
    }

    /// The rejection of the value; `fault` is within it.
    pub(super) fn refusal(&self, fault: Option<JsonError>) -> RecordRejection {
        let refusal = RecordRejection { detail: OVER_LINES.into(), ..self.own.clone() };
        match fault {
            Some(JsonError { offset, kind, detail }) => RecordRejection {
                code: kind.into(),
                detail: format!("{detail}; {OVER_LINES}").into(),
                offset: Some(offset),
                ..refusal
            },
            None => refusal,
        }
    }

    /// The number of the line that begins at a byte.
    pub(super) fn line_at(&self, start: usize) -> u32 {
        let before = memchr::memchr_iter(b'\n', &self.text[..start]).count();
        self.line + u32::try_from(before).unwrap_or(0)
    }
}

/// Whether lines begin with a value that continues over the end of its line; `text` is all of them, or their beginning.
#[must_use]
pub fn begins_over_lines(text: &[u8]) -> bool {
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let mut lines = text.split(|byte| *byte == b'\n').skip_while(|line| first_byte(line).is_none());
    let Some(first) = lines.next() else { return false };
    let Some(error) = check(first).err().filter(JsonError::is_open) else { return false };
    let mut span = Span::new(first, RecordRejection::of_json(1, error), true);
    lines.for_each(|line| span.push(line));
    match span.extent() {
        Extent::Open => span.lines > 1,
        Extent::Whole(_) | Extent::Faulty(_) => true,
        Extent::Torn(_) => false,
    }
}

/// Passes lines with breaks one by one.
pub(super) fn each_line(
    mut text: &[u8],
    mut give: impl FnMut(&[u8]) -> Result<(), BatchError>,
) -> Result<(), BatchError> {
    while let Some(end) = memchr::memchr(b'\n', text) {
        give(&text[..end])?;
        text = &text[end + 1..];
    }
    Ok(())
}
