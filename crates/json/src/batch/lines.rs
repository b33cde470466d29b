//! Lines that arrive in chunks. Most hold one value, which is checked once and borrowed from its chunk.

use event::FURTHER_VALUES_FROM;
use limits::{BATCH_RECORDS_MAX, EVENT_BYTES_MAX};

use super::span::{Extent, Span, each_line};
use super::{BatchError, Item, too_large, values};
use crate::{BYTE_ORDER_MARK, JsonError, RecordRejection, check, check_limits, first_byte};

/// Bytes of a line that are kept until its end arrives, unless it has several values: those of an event and a `\r`.
const CARRY_BYTES_MAX: usize = EVENT_BYTES_MAX + 1;

/// Finds the lines of a body and checks each.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// The line's beginning, from earlier chunks.
    carry: Vec<u8>,
    length: Length,
    /// Lines that have ended.
    ended: u32,
    /// Records that were returned.
    given: usize,
    /// How many of these were the first of their line, and how many weren't.
    firsts: u32,
    further: u32,
    mode: Mode,
}

/// The length of the line that has begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Length {
    #[default]
    Allowed,
    /// It has more bytes than a record, and may have several records.
    OfSeveral,
    /// It is too long already: its bytes are skipped up to its end.
    TooLong,
}

/// The kind of the current lines.
#[derive(Debug, Default)]
enum Mode {
    #[default]
    Records,
    /// They may be one value over several lines.
    Span(Box<Span>),
    /// They are the rest of such a value, which is rejected.
    Rest,
}

impl Lines {
    pub(super) fn push(&mut self, mut chunk: &[u8], sink: &mut impl FnMut(Item<'_>)) -> Result<(), BatchError> {
        while let Some(end) = memchr::memchr(b'\n', chunk) {
            self.end_line(&chunk[..end], sink)?;
            chunk = &chunk[end + 1..];
        }
        self.keep(chunk);
        Ok(())
    }

    /// The last line needs no `\n`.
    pub(super) fn finish(mut self, sink: &mut impl FnMut(Item<'_>)) -> Result<(), BatchError> {
        self.end_line(&[], sink)?;
        // After a value over several lines there may be another one.
        while matches!(self.mode, Mode::Span(_)) {
            self.check_span(true, sink)?;
        }
        Ok(())
    }

    pub(super) fn kept_bytes(&self) -> usize {
        let span = if let Mode::Span(span) = &self.mode { span.bytes() } else { 0 };
        self.carry.capacity() + span
    }

    fn keep(&mut self, part: &[u8]) {
        match self.length {
            Length::TooLong => {}
            Length::Allowed if self.carry.len() + part.len() > CARRY_BYTES_MAX => {
                let room = CARRY_BYTES_MAX - self.carry.len();
                self.carry.extend_from_slice(&part[..room]);
                if values::begins_with_one_of_several(&self.carry) {
                    self.length = Length::OfSeveral;
                    self.carry.extend_from_slice(&part[room..]);
                } else {
                    self.length = Length::TooLong;
                    self.carry = Vec::new();
                }
            }
            _ => self.carry.extend_from_slice(part),
        }
    }

    fn end_line(&mut self, rest: &[u8], sink: &mut impl FnMut(Item<'_>)) -> Result<(), BatchError> {
        self.ended += 1;
        if self.carry.is_empty() && self.length == Length::Allowed {
            return self.line(rest, sink);
        }
        self.keep(rest);
        let mut line = std::mem::take(&mut self.carry);
        if std::mem::take(&mut self.length) == Length::TooLong {
            return self.too_long(sink);
        }
        self.line(&line, sink)?;
        if line.capacity() <= 2 * CARRY_BYTES_MAX {
            line.clear();
            self.carry = line;
        }
        Ok(())
    }

    fn line(&mut self, line: &[u8], sink: &mut impl FnMut(Item<'_>)) -> Result<(), BatchError> {
        if line.len() > EVENT_BYTES_MAX {
            return self.long_line(line, sink);
        }
        match &mut self.mode {
            Mode::Records => self.take(line, sink),
            Mode::Span(span) => {
                span.push(line);
                let is_due = span.is_due() || span.bytes() > EVENT_BYTES_MAX;
                if is_due { self.check_span(false, sink) } else { Ok(()) }
            }
            // Pretty printers indent all lines of a value but its first and its last one.
            Mode::Rest => {
                match line.first() {
                    Some(b'}' | b']') => self.mode = Mode::Records,
                    Some(b'{' | b'[') => {
                        self.mode = Mode::Records;
                        return self.take(line, sink);
                    }
                    _ => {}
                }
                Ok(())
            }
        }
    }

    /// A line with more bytes than a record may have, and optionally a `\r`.
    fn long_line(&mut self, line: &[u8], sink: &mut impl FnMut(Item<'_>)) -> Result<(), BatchError> {
        let text = line.strip_suffix(b"\r").unwrap_or(line);
        if text.len() > EVENT_BYTES_MAX && !values::begins_with_one_of_several(text) {
            return self.too_long(sink);
        }
        self.end_span(sink)?;
        if text.len() > EVENT_BYTES_MAX { self.take_several(text, sink) } else { self.take(text, sink) }
    }

    fn too_long(&mut self, sink: &mut impl FnMut(Item<'_>)) -> Result<(), BatchError> {
        self.end_span(sink)?;
        let line = self.ended;
        self.give((line, 1), Err(too_large(line)), &[], sink)
    }

    /// A line of a record, or of several.
    fn take(&mut self, line: &[u8], sink: &mut impl FnMut(Item<'_>)) -> Result<(), BatchError> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        if first_byte(line).is_none() {
            return Ok(());
        }
        match check(line) {
            Ok(value) => self.give((self.ended, 1), Ok(value), line, sink),
            Err(error) if error.is_trailing() => self.take_several(line, sink),
            Err(error) if error.is_open() => {
                let own = RecordRejection::of_json(self.ended, error);
                self.mode = Mode::Span(Box::new(Span::new(line, own, self.given == 0)));
                Ok(())
            }
            Err(error) => self.refuse(error, line, sink),
        }
    }

    /// All values of a line, or none of them if the line isn't JSON.
    fn take_several(&mut self, line: &[u8], sink: &mut impl FnMut(Item<'_>)) -> Result<(), BatchError> {
        let ranges = match values::split(line)? {
            Ok(ranges) => ranges,
            Err(error) => return self.refuse(error, line, sink),
        };
        for (number, range) in (1..).zip(ranges) {
            let raw = &line[range.clone()];
            let record = if raw.len() > EVENT_BYTES_MAX {
                Err(too_large(self.ended))
            } else {
                // The whole line is UTF-8.
                let text = str::from_utf8(raw).unwrap_or_default();
                let checked = check_limits(text).map(|()| text);
                checked.map_err(|error| RecordRejection::of_json(self.ended, error.moved_by(range.start)))
            };
            self.give((self.ended, number), record, raw, sink)?;
        }
        Ok(())
    }

    fn refuse(&mut self, error: JsonError, line: &[u8], sink: &mut impl FnMut(Item<'_>)) -> Result<(), BatchError> {
        let number = self.ended;
        self.give((number, 1), Err(RecordRejection::of_json(number, error)), line, sink)
    }

    /// Finds the end of the value. If these are all lines, it ends with them.
    fn check_span(&mut self, is_end: bool, sink: &mut impl FnMut(Item<'_>)) -> Result<(), BatchError> {
        let Mode::Span(mut span) = std::mem::take(&mut self.mode) else { return Ok(()) };
        match span.extent() {
            Extent::Open if is_end && span.lines > 1 && span.is_first => self.refuse_span(&span, None, sink),
            Extent::Open if is_end => self.give_lines(&span, span.bytes(), sink),
            Extent::Open if span.bytes() > EVENT_BYTES_MAX => {
                self.mode = Mode::Rest;
                self.refuse_span(&span, None, sink)
            }
            Extent::Open => {
                self.mode = Mode::Span(span);
                Ok(())
            }
            Extent::Whole(end) => {
                self.refuse_span(&span, None, sink)?;
                self.process_rest(&span, end, sink)
            }
            Extent::Torn(start) => {
                self.give_lines(&span, start, sink)?;
                self.process_rest(&span, start, sink)
            }
            Extent::Faulty(error) => {
                let start = error.offset.min(span.bytes());
                let rest = memchr::memchr(b'\n', &span.text()[start..]).map_or(span.bytes(), |end| start + end + 1);
                self.mode = Mode::Rest;
                self.refuse_span(&span, Some(error), sink)?;
                self.process_rest(&span, rest, sink)
            }
        }
    }

    /// One rejection for all lines of a value.
    fn refuse_span(
        &mut self,
        span: &Span,
        fault: Option<JsonError>,
        sink: &mut impl FnMut(Item<'_>),
    ) -> Result<(), BatchError> {
        self.give((span.line, 1), Err(span.refusal(fault)), &[], sink)
    }

    /// Processes the bytes after a value, or the lines after the ones that were returned, as if they arrived now.
    fn process_rest(&mut self, span: &Span, start: usize, sink: &mut impl FnMut(Item<'_>)) -> Result<(), BatchError> {
        let ended = self.ended;
        self.ended = span.line_at(start) - 1;
        each_line(&span.text()[start..], |line| {
            self.ended += 1;
            self.line(line, sink)
        })?;
        self.ended = ended;
        Ok(())
    }

    /// The lines are no value over several lines: each of those before `end` is a record, or several, or a separate
    /// rejection.
    fn give_lines(&mut self, span: &Span, end: usize, sink: &mut impl FnMut(Item<'_>)) -> Result<(), BatchError> {
        let ended = self.ended;
        self.ended = span.line - 1;
        each_line(&span.text()[..end], |line| {
            self.ended += 1;
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            match check(line) {
                _ if first_byte(line).is_none() => Ok(()),
                Ok(value) => self.give((self.ended, 1), Ok(value), line, sink),
                Err(error) if error.is_trailing() => self.take_several(line, sink),
                Err(error) => self.refuse(error, line, sink),
            }
        })?;
        self.ended = ended;
        Ok(())
    }

    /// Another line can't belong to the value.
    fn end_span(&mut self, sink: &mut impl FnMut(Item<'_>)) -> Result<(), BatchError> {
        match std::mem::take(&mut self.mode) {
            Mode::Span(span) => {
                let ended = self.ended;
                self.ended = ended - 1;
                self.give_lines(&span, span.bytes(), sink)?;
                self.ended = ended;
                Ok(())
            }
            other => {
                self.mode = other;
                Ok(())
            }
        }
    }

    fn give(
        &mut self,
        (line, value): (u32, u32),
        record: Result<&str, RecordRejection>,
        raw: &[u8],
        sink: &mut impl FnMut(Item<'_>),
    ) -> Result<(), BatchError> {
        if self.given == BATCH_RECORDS_MAX {
            return Err(BatchError::TooManyRecords);
        }
        self.given += 1;
        let ordinal = if value == 1 {
            self.firsts += 1;
            self.firsts
        } else {
            self.further += 1;
            FURTHER_VALUES_FROM + self.further - 1
        };
        sink(Item { line, value, ordinal, type_name: None, id: None, record, raw });
        Ok(())
    }
}
