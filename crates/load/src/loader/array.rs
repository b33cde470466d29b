//! Turns a JSON array of any size into lines, one for each element.
//!
//! It looks only for where elements end: whether they are JSON is for the server to say.

use std::io::{BufRead, BufReader, Read};

use super::LoadError;
use super::lines::LINE_BYTES_MAX;
use super::state::TAIL_BYTES;

/// A stream that is one array.
pub(super) struct Array<R> {
    input: BufReader<R>,
    scanner: Scanner,
    /// Bytes taken from the stream.
    offset: u64,
    /// The last ones of them.
    tail: Vec<u8>,
}

/// Where in the array the last byte stood.
struct Scanner {
    place: Place,
    depth: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The opening bracket wasn't there yet.
    Before,
    /// Within an element, or in the white space around it.
    Element,
    String,
    /// Behind a backslash within a string.
    Escape,
    /// Behind the closing bracket.
    After,
}

/// What a byte of the array means for the lines.
enum Step {
    Nothing,
    /// The byte belongs to an element.
    Take(u8),
    /// An element ended.
    End,
}

impl<R: Read> Array<R> {
    /// `offset` bytes were taken already: then the next ones are those of an element.
    pub(super) fn new(input: R, offset: u64) -> Self {
        let place = if offset == 0 { Place::Before } else { Place::Element };
        Self {
            input: BufReader::with_capacity(1 << 16, input),
            scanner: Scanner { place, depth: 0 },
            offset,
            tail: Vec::new(),
        }
    }

    /// Bytes of the stream that blocks were made of.
    pub(super) const fn offset(&self) -> u64 {
        self.offset
    }

    /// The last bytes before [`Array::offset`].
    pub(super) fn tail(&self) -> &[u8] {
        &self.tail
    }

    /// Puts the next elements into `block` until it has about `bytes`. Says whether the array has ended.
    pub(super) fn next(&mut self, block: &mut Vec<u8>, bytes: usize) -> Result<bool, LoadError> {
        block.clear();
        loop {
            let available = self.input.fill_buf().map_err(LoadError::Read)?;
            if available.is_empty() {
                return if self.scanner.place == Place::After { Ok(true) } else { Err(LoadError::OpenArray) };
            }
            let (used, is_full) = self.scanner.take(available, block, bytes)?;
            self.tail.extend_from_slice(&available[used.saturating_sub(TAIL_BYTES)..used]);
            let beyond = self.tail.len().saturating_sub(TAIL_BYTES);
            self.tail.drain(..beyond);
            self.input.consume(used);
            self.offset += used as u64;
            // Behind the closing bracket only the stream's end may come.
            if is_full && self.scanner.place != Place::After {
                return Ok(false);
            }
            if block.len() > LINE_BYTES_MAX.max(2 * bytes) {
                return Err(LoadError::LineTooLong);
            }
        }
    }
}

impl Scanner {
    /// Takes bytes until they end or the block is full. Says how many, and which of both it was.
    fn take(&mut self, bytes: &[u8], block: &mut Vec<u8>, enough: usize) -> Result<(usize, bool), LoadError> {
        for (at, byte) in bytes.iter().enumerate() {
            match self.step(*byte)? {
                Step::Nothing => {}
                // Between tokens a line break is white space; within a string JSON has none.
                Step::Take(b'\n' | b'\r') => block.push(b' '),
                Step::Take(byte) => block.push(byte),
                Step::End => {
                    end_element(block);
                    if block.len() >= enough {
                        return Ok((at + 1, true));
                    }
                }
            }
        }
        Ok((bytes.len(), false))
    }

    fn step(&mut self, byte: u8) -> Result<Step, LoadError> {
        let is_blank = matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        let (place, step) = match (self.place, byte) {
            (Place::Before, b'[') => (Place::Element, Step::Nothing),
            (Place::Before | Place::After, _) if is_blank => (self.place, Step::Nothing),
            (Place::Before | Place::After, _) => return Err(LoadError::NoArray),
            (Place::Element, b',') if self.depth == 0 => (Place::Element, Step::End),
            (Place::Element, b']') if self.depth == 0 => (Place::After, Step::End),
            (Place::Element, b'"') => (Place::String, Step::Take(byte)),
            (Place::String, b'"') | (Place::Escape, _) => {
                (if self.place == Place::String { Place::Element } else { Place::String }, Step::Take(byte))
            }
            (Place::String, b'\\') => (Place::Escape, Step::Take(byte)),
            (Place::Element, b'[' | b'{') => {
                self.depth += 1;
                (Place::Element, Step::Take(byte))
            }
            (Place::Element, b']' | b'}') => {
                self.depth = self.depth.saturating_sub(1);
                (Place::Element, Step::Take(byte))
            }
            (place, _) => (place, Step::Take(byte)),
        };
        self.place = place;
        Ok(step)
    }
}

/// Ends the line of an element, without the blanks behind it. One that is empty stays a blank line.
fn end_element(block: &mut Vec<u8>) {
    while block.last().is_some_and(|byte| matches!(byte, b' ' | b'\t')) {
        block.pop();
    }
    block.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, bytes: usize) -> Result<Vec<String>, LoadError> {
        // A chunk at a time of a single byte, so that any state may stand at a chunk's end.
        let mut array = Array::new(text.as_bytes(), 0);
        array.input = BufReader::with_capacity(1, text.as_bytes());
        let mut found = Vec::new();
        loop {
            let mut block = Vec::new();
            let has_ended = array.next(&mut block, bytes)?;
            found.push(String::from_utf8(block).unwrap());
            if has_ended {
                assert_eq!((array.offset(), array.tail()), (text.len() as u64, text.as_bytes()));
                return Ok(found);
            }
        }
    }

    #[test]
    fn each_element_becomes_a_line() {
        for (text, expected) in [
            ("[1,2]", "1\n2\n"),
            (" [ {\"a\" :\n [1,2]} ,\"],[\\\"\" ]\n ", " {\"a\" :  [1,2]}\n\"],[\\\"\"\n"),
            ("[[],{}]", "[]\n{}\n"),
            ("[]", "\n"),
        ] {
            assert_eq!(lines(text, 1000).unwrap().concat(), expected, "{text}");
        }
    }

    #[test]
    fn an_array_goes_on_from_where_a_block_ended() {
        let text = "[{\"a\":1}, 22 ,[3,3],\"4\"]";
        let whole = lines(text, 1).unwrap();
        let mut array = Array::new(text.as_bytes(), 0);
        let mut block = Vec::new();
        for expected in &whole[1..] {
            array.next(&mut block, 1).unwrap();
            let offset = usize::try_from(array.offset()).unwrap();
            let mut rest = Array::new(&text.as_bytes()[offset..], array.offset());
            rest.next(&mut block, 1).unwrap();
            assert_eq!(block, expected.as_bytes());
        }
    }

    #[test]
    fn what_is_no_whole_array_is_refused() {
        assert!(matches!(lines("[1,2", 100), Err(LoadError::OpenArray)));
        assert!(matches!(lines("[1] 2", 100), Err(LoadError::NoArray)));
        assert!(matches!(lines("{}", 100), Err(LoadError::NoArray)));
    }
}
