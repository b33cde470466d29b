//! Converts a JSON array of any size to lines, one for each element.
//!
//! It only finds where elements end: the server checks whether they are JSON.

use std::io::{BufRead, BufReader, ErrorKind, Read};

use anyhow::{anyhow, bail};

use super::lines::{Cut, LINE_BYTES_MAX};
use super::state::TAIL_BYTES;
use super::unreadable;

const OPEN_ARRAY: &str = "it ends within a JSON array: the file was truncated. The elements before that were loaded. Complete the file and start again";
const NO_ARRAY: &str = "there is more content after the end of its JSON array: move that content to another file";

/// A stream that is one array.
pub(super) struct Array<R> {
    input: BufReader<R>,
    scanner: Scanner,
    /// How far the stream is read, and where its last whole element ended.
    read: Reached,
    done: Reached,
    /// Why no element follows.
    failed: Option<anyhow::Error>,
}

/// A place in the stream.
#[derive(Clone, Default)]
struct Reached {
    offset: u64,
    /// The last bytes before it.
    tail: Vec<u8>,
}

impl Reached {
    fn advance(&mut self, bytes: &[u8]) {
        self.offset += bytes.len() as u64;
        self.tail.extend_from_slice(&bytes[bytes.len().saturating_sub(TAIL_BYTES)..]);
        let beyond = self.tail.len().saturating_sub(TAIL_BYTES);
        self.tail.drain(..beyond);
    }
}

/// The state at the last byte of the array.
struct Scanner {
    place: Place,
    depth: usize,
    /// Where the current element begins in the block.
    element_at: usize,
    /// Bytes of an element that is too long: none of it is kept. 0 for any other.
    passed: u64,
    /// Such an element has ended.
    too_long: Option<u64>,
}

/// How far bytes were consumed.
struct Consumed {
    used: usize,
    /// The block is complete.
    is_full: bool,
    /// The end of the last whole element in them.
    done: Option<usize>,
    failed: Option<anyhow::Error>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The opening bracket wasn't there yet.
    Before,
    /// Within an element, or in the white space around it.
    Element,
    String,
    /// After a backslash within a string.
    Escape,
    /// After the closing bracket.
    After,
}

/// The meaning of a byte of the array for the lines.
enum Step {
    Nothing,
    /// The byte belongs to an element.
    Take(u8),
    /// An element ended.
    End,
}

impl<R: Read> Array<R> {
    /// `offset` bytes were consumed already: then the next ones are those of an element.
    pub(super) fn new(input: R, offset: u64) -> Self {
        let place = if offset == 0 { Place::Before } else { Place::Element };
        Self {
            input: BufReader::with_capacity(1 << 16, input),
            scanner: Scanner { place, depth: 0, element_at: 0, passed: 0, too_long: None },
            read: Reached { offset, ..Reached::default() },
            done: Reached { offset, ..Reached::default() },
            failed: None,
        }
    }

    /// Bytes of the stream that are in blocks.
    pub(super) const fn offset(&self) -> u64 {
        self.done.offset
    }

    /// Whether the next call returns an error.
    pub(super) const fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// The last bytes before [`Array::offset`].
    pub(super) fn tail(&self) -> &[u8] {
        &self.done.tail
    }

    /// Puts the next elements into `block` until it has about `bytes`, or until `cut`, where a block ended before. An element that is
    /// too long is skipped, and ends the block.
    ///
    /// # Errors
    /// It is no array, or the rest of the stream can't be read. The whole elements before that place were returned before.
    pub(super) fn next(&mut self, block: &mut Vec<u8>, bytes: usize, cut: u64) -> anyhow::Result<Cut> {
        block.clear();
        self.scanner.element_at = 0;
        loop {
            if let Some(error) = self.failed.take() {
                return self.end_early(block, error);
            }
            let available = match self.input.fill_buf() {
                Ok([]) if self.scanner.place == Place::After => {
                    self.done = self.read.clone();
                    return Ok(Cut { has_ended: true, too_long: self.scanner.too_long.take(), ..Cut::default() });
                }
                Ok([]) => return self.end_early(block, anyhow!(OPEN_ARRAY)),
                Ok(available) => available,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return self.end_early(block, unreadable(error)),
            };
            let cut = cut.checked_sub(self.read.offset).and_then(|length| usize::try_from(length).ok());
            let Consumed { used, is_full, done, failed } = self.scanner.take(available, block, bytes, cut);
            if let Some(done) = done {
                self.done = self.read.clone();
                self.done.advance(&available[..done]);
            }
            self.read.advance(&available[..used]);
            self.input.consume(used);
            self.failed = failed;
            // After the closing bracket only the stream's end may come.
            if is_full && self.scanner.place != Place::After {
                return Ok(Cut { has_ended: false, too_long: self.scanner.too_long.take(), ..Cut::default() });
            }
            self.scanner.pass_over(block);
        }
    }

    /// Gives the whole elements that are there, and the error by the next call.
    fn end_early(&mut self, block: &mut Vec<u8>, error: anyhow::Error) -> anyhow::Result<Cut> {
        block.truncate(self.scanner.element_at);
        let too_long = self.scanner.too_long.take();
        if block.is_empty() && too_long.is_none() {
            return Err(error);
        }
        self.failed = Some(error);
        Ok(Cut { has_ended: true, too_long, ..Cut::default() })
    }
}

impl Scanner {
    /// Takes bytes until they end, the block is full, or they are no array's.
    fn take(&mut self, bytes: &[u8], block: &mut Vec<u8>, enough: usize, cut: Option<usize>) -> Consumed {
        let mut consumed = Consumed { used: bytes.len(), is_full: false, done: None, failed: None };
        for (at, byte) in bytes.iter().enumerate() {
            match self.step(*byte) {
                Err(error) => return Consumed { used: at, failed: Some(error), ..consumed },
                Ok(Step::Nothing) => {}
                Ok(Step::Take(_)) if self.passed > 0 => self.passed += 1,
                // Between tokens a line break is white space; within a string JSON has none.
                Ok(Step::Take(b'\n' | b'\r')) => block.push(b' '),
                Ok(Step::Take(byte)) => block.push(byte),
                Ok(Step::End) => {
                    // A load that resumes after the last element needs the bracket to know that it was the last.
                    let done = at + usize::from(self.place != Place::After);
                    consumed.done = Some(done);
                    if self.passed > 0 {
                        self.too_long = Some(std::mem::take(&mut self.passed));
                        return Consumed { used: at + 1, is_full: true, ..consumed };
                    }
                    end_element(block);
                    self.element_at = block.len();
                    if block.len() >= enough || cut == Some(done) {
                        return Consumed { used: at + 1, is_full: true, ..consumed };
                    }
                }
            }
        }
        consumed
    }

    /// Keeps nothing of an element that is too long.
    fn pass_over(&mut self, block: &mut Vec<u8>) {
        let length = block.len().saturating_sub(self.element_at);
        if length > LINE_BYTES_MAX {
            self.passed = length as u64;
            block.truncate(self.element_at);
            block.shrink_to(LINE_BYTES_MAX);
        }
    }

    fn step(&mut self, byte: u8) -> anyhow::Result<Step> {
        let is_blank = matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        let (place, step) = match (self.place, byte) {
            // A byte order mark.
            (Place::Before, 0xef | 0xbb | 0xbf) => (self.place, Step::Nothing),
            (Place::Before, b'[') => (Place::Element, Step::Nothing),
            (Place::Before | Place::After, _) if is_blank => (self.place, Step::Nothing),
            (Place::Before | Place::After, _) => bail!(NO_ARRAY),
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

/// Ends the line of an element, without the blanks after it. An empty one stays a blank line.
fn end_element(block: &mut Vec<u8>) {
    while block.last().is_some_and(|byte| matches!(byte, b' ' | b'\t')) {
        block.pop();
    }
    block.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, bytes: usize) -> anyhow::Result<Vec<String>> {
        // A chunk has a single byte: each state occurs at a chunk's end.
        let mut array = Array::new(text.as_bytes(), 0);
        array.input = BufReader::with_capacity(1, text.as_bytes());
        let mut found = Vec::new();
        loop {
            let mut block = Vec::new();
            let has_ended = array.next(&mut block, bytes, 0)?.has_ended;
            found.push(String::from_utf8(block).unwrap());
            if has_ended && !array.has_failed() {
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
            ("\u{feff}[1]", "1\n"),
        ] {
            assert_eq!(lines(text, 1000).unwrap().concat(), expected, "{text}");
        }
    }

    #[test]
    fn array_resumes_at_the_end_of_a_block() {
        let text = "[{\"a\":1}, 22 ,[3,3],\"4\"]";
        let whole = lines(text, 1).unwrap();
        let mut array = Array::new(text.as_bytes(), 0);
        let mut block = Vec::new();
        for expected in &whole[1..] {
            array.next(&mut block, 1, 0).unwrap();
            let offset = usize::try_from(array.offset()).unwrap();
            let mut rest = Array::new(&text.as_bytes()[offset..], array.offset());
            rest.next(&mut block, 1, 0).unwrap();
            assert_eq!(block, expected.as_bytes());
        }
    }

    #[test]
    fn incomplete_array_fails_after_its_whole_elements() {
        for (text, whole, consumed) in [("[1,2", "1\n", 3), ("[1,2,", "1\n2\n", 5), ("[1] 2", "1\n", 2)] {
            let mut array = Array::new(text.as_bytes(), 0);
            let mut block = Vec::new();
            assert!(array.next(&mut block, 100, 0).unwrap().has_ended);
            assert_eq!((std::str::from_utf8(&block).unwrap(), array.offset()), (whole, consumed), "{text}");
            assert_eq!(array.tail(), &text.as_bytes()[..usize::try_from(consumed).unwrap()]);
            assert!(array.has_failed());
            let error = array.next(&mut block, 100, 0).unwrap_err();
            assert!([OPEN_ARRAY, NO_ARRAY].contains(&&*error.to_string()), "{text}: {error}");
        }
        let error = |text, bytes| lines(text, bytes).unwrap_err().to_string();
        assert_eq!(error("[1,2", 1), OPEN_ARRAY);
        assert_eq!(error("{}", 100), NO_ARRAY);
        assert_eq!(error("[", 100), OPEN_ARRAY);
    }

    #[test]
    fn block_ends_where_it_ended_before() {
        let mut array = Array::new("[1,2,3]".as_bytes(), 0);
        let mut block = Vec::new();
        array.next(&mut block, 100, 5).unwrap();
        assert_eq!((&*block, array.offset()), (&b"1\n2\n"[..], 5));
    }

    #[test]
    fn too_long_element_is_skipped_without_buffering() {
        let long = LINE_BYTES_MAX as u64 * 3;
        for (end, rest) in [("\",2]", "2\n"), ("\"]", "")] {
            let text = "[1,\"".as_bytes().chain(std::io::repeat(b'x').take(long)).chain(end.as_bytes());
            let mut array = Array::new(text, 0);
            let mut block = Vec::new();
            let cut = array.next(&mut block, 1 << 20, 0).unwrap();
            assert_eq!((&*block, cut.too_long), (&b"1\n"[..], Some(long + 2)));
            assert!(block.capacity() < 2 * LINE_BYTES_MAX);
            if !cut.has_ended {
                let cut = array.next(&mut block, 1 << 20, 0).unwrap();
                assert_eq!((&*block, cut), (rest.as_bytes(), Cut { has_ended: true, ..Cut::default() }));
            }
            assert_eq!(array.offset(), 4 + long + end.len() as u64);
        }
    }
}
