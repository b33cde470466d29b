//! A body that is one JSON array, as it arrives in chunks.

use limits::{BATCH_RECORDS_MAX, EVENT_BYTES_MAX};

use super::boundary::Boundary;
use super::{BatchError, Item, too_large};
use crate::words::{COMMA_FOR_VALUE, ENDS_WITHIN_ARRAY, LAST_COMMA, TRAILING};
use crate::{JsonError, JsonErrorKind, RecordRejection, check, check_beginning, first_byte};

/// Finds the elements of an array and checks each. Only an element that two chunks share is copied; of one that is too
/// large, at most the bytes of a record are kept.
#[derive(Debug)]
pub(super) struct Array {
    place: Place,
    /// The offset of the next byte in the body.
    at: usize,
    /// Elements that were returned.
    given: usize,
    /// The beginning of the element, from earlier chunks.
    carry: Vec<u8>,
}

/// The state of the reader.
#[derive(Debug)]
enum Place {
    /// The bracket that opens the array.
    Opening,
    /// The first element, or the bracket that closes the array.
    First,
    /// An element.
    Next,
    /// More of an element that began at `start`.
    Element { start: usize, boundary: Boundary, size: Size },
    /// Whitespace.
    Closed,
}

#[derive(Clone, Copy, Debug)]
enum Size {
    Allowed,
    /// It is skipped up to its end.
    TooLarge,
}

impl Array {
    /// The reader of an array whose bracket is at `start` in the body.
    pub(super) const fn new(start: usize) -> Self {
        Self { place: Place::Opening, at: start, given: 0, carry: Vec::new() }
    }

    /// Accepts the next chunk and returns the elements that end in it.
    pub(super) fn push(&mut self, mut chunk: &[u8], sink: &mut impl FnMut(Item<'_>)) -> Result<(), BatchError> {
        while !chunk.is_empty() {
            let passed = match self.place {
                Place::Element { .. } => self.pass_element(chunk, sink)?,
                _ => self.pass_between(chunk)?,
            };
            self.at += passed;
            chunk = &chunk[passed..];
        }
        Ok(())
    }

    /// Ends the body: the array must have been closed.
    pub(super) fn finish(&self) -> Result<(), BatchError> {
        match self.place {
            Place::Closed => Ok(()),
            Place::Element { start, size: Size::Allowed, .. } => {
                // A fault within it is more precise than its missing end.
                let _refused = judge(start, check(&self.carry))?;
                Err(fault(self.at, ENDS_WITHIN_ARRAY))
            }
            _ => Err(fault(self.at, ENDS_WITHIN_ARRAY)),
        }
    }

    /// Whether the closing bracket was read.
    pub(super) const fn is_closed(&self) -> bool {
        matches!(self.place, Place::Closed)
    }

    #[cfg(test)]
    pub(super) fn kept_bytes(&self) -> usize {
        self.carry.capacity()
    }

    /// Skips the bytes between elements, up to the first byte of one.
    fn pass_between(&mut self, chunk: &[u8]) -> Result<usize, BatchError> {
        let Some(blank) = first_byte(chunk) else {
            return Ok(chunk.len());
        };
        let at = self.at + blank;
        let (place, passed) = match (&self.place, chunk[blank]) {
            (Place::Opening, b'[') => (Place::First, 1),
            (Place::First, b']') => (Place::Closed, 1),
            (Place::First | Place::Next, b',') => return Err(fault(at, COMMA_FOR_VALUE)),
            (Place::Next, b']') => return Err(fault(at, LAST_COMMA)),
            (Place::First | Place::Next, _) => (Place::of_element(at), 0),
            _ => return Err(fault(at, TRAILING)),
        };
        self.place = place;
        Ok(blank + passed)
    }

    /// Skips the bytes of an element, and the one that ends it.
    fn pass_element(&mut self, chunk: &[u8], sink: &mut impl FnMut(Item<'_>)) -> Result<usize, BatchError> {
        let Place::Element { start, ref mut boundary, size } = self.place else { return Ok(0) };
        let Some(end) = boundary.find(chunk) else {
            self.keep(start, chunk)?;
            return Ok(chunk.len());
        };
        if self.carry.is_empty() && matches!(size, Size::Allowed) && end <= EVENT_BYTES_MAX {
            self.give(start, &chunk[..end], sink)?;
        } else {
            self.keep(start, &chunk[..end])?;
            self.give_kept(start, sink)?;
        }
        self.place = if chunk[end] == b',' { Place::Next } else { Place::Closed };
        Ok(end + 1)
    }

    /// Keeps more of an element, unless it is too large. Then the part that was received is checked for the last time.
    fn keep(&mut self, element: usize, part: &[u8]) -> Result<(), BatchError> {
        let Place::Element { size: size @ Size::Allowed, .. } = &mut self.place else { return Ok(()) };
        let room = EVENT_BYTES_MAX - self.carry.len();
        if part.len() <= room {
            self.carry.extend_from_slice(part);
            return Ok(());
        }
        *size = Size::TooLarge;
        let mut beginning = std::mem::take(&mut self.carry);
        beginning.extend_from_slice(&part[..room]);
        check_beginning(&beginning).map_err(|error| BatchError::NotJson(error.moved_by(element)))
    }

    fn give_kept(&mut self, start: usize, sink: &mut impl FnMut(Item<'_>)) -> Result<(), BatchError> {
        if let Place::Element { size: Size::TooLarge, .. } = self.place {
            let number = self.next_number()?;
            sink(Item {
                line: number,
                value: 1,
                ordinal: number,
                type_name: None,
                id: None,
                record: Err(too_large(number)),
                raw: &[],
            });
            return Ok(());
        }
        let mut element = std::mem::take(&mut self.carry);
        self.give(start, &element, sink)?;
        element.clear();
        self.carry = element;
        Ok(())
    }

    fn give(&mut self, start: usize, element: &[u8], sink: &mut impl FnMut(Item<'_>)) -> Result<(), BatchError> {
        let number = self.next_number()?;
        let record = judge(start, check(element))?.map_err(|error| RecordRejection::of_json(number, error));
        sink(Item { line: number, value: 1, ordinal: number, type_name: None, id: None, record, raw: element });
        Ok(())
    }

    fn next_number(&mut self) -> Result<u32, BatchError> {
        if self.given == BATCH_RECORDS_MAX {
            return Err(BatchError::TooManyRecords);
        }
        self.given += 1;
        Ok(u32::try_from(self.given).expect("the limit of records has 17 bits"))
    }
}

impl Place {
    fn of_element(start: usize) -> Self {
        Self::Element { start, boundary: Boundary::default(), size: Size::Allowed }
    }
}

/// A fault that makes the end of the element uncertain is one of the body. Offsets then count from the body's start.
fn judge(start: usize, checked: Result<&str, JsonError>) -> Result<Result<&str, JsonError>, BatchError> {
    match checked {
        Err(error) if matches!(error.kind, JsonErrorKind::Syntax | JsonErrorKind::Utf8) => {
            Err(BatchError::NotJson(error.moved_by(start)))
        }
        judged => Ok(judged),
    }
}

fn fault(at: usize, words: &'static str) -> BatchError {
    BatchError::NotJson(JsonError::syntax(at, words))
}
