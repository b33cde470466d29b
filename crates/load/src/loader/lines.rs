//! Cuts a stream of lines into blocks of whole lines.
//!
//! Where a block ends depends on nothing but where it begins and on what follows there: a load that is resumed cuts
//! the same blocks, so that they go out under the same keys.

use std::io;

use memchr::{memchr, memrchr};

use super::LoadError;
use super::input::Stream;

/// A line without an end within so many bytes is no line: the server takes an eighth of it.
pub(super) const LINE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// What becomes of a last line without a line break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LastLine {
    /// It is a line.
    Taken,
    /// The rest of it may still be written.
    Awaited,
}

/// A stream of lines.
pub(super) struct Lines {
    input: Stream,
    /// What was read beyond the last block.
    carry: Vec<u8>,
}

impl Lines {
    pub(super) const fn new(input: Stream) -> Self {
        Self { input, carry: Vec::new() }
    }

    /// How much was read beyond the last block.
    pub(super) const fn read_ahead(&self) -> usize {
        self.carry.len()
    }

    /// Puts the next whole lines into `block`: all that end within `bytes`, or else the first one. Says whether
    /// the stream has ended for now.
    pub(super) fn next(&mut self, block: &mut Vec<u8>, bytes: usize, last_line: LastLine) -> Result<bool, LoadError> {
        block.clear();
        std::mem::swap(block, &mut self.carry);
        let (mut searched, mut limit) = (0, bytes);
        loop {
            let has_ended = self.fill(block, limit).map_err(LoadError::Read)?;
            let within = &block[..limit.min(block.len())];
            let end = if searched == 0 { memrchr(b'\n', within) } else { memchr(b'\n', &within[searched..]) };
            let takes_all = has_ended && last_line == LastLine::Taken;
            match end {
                Some(end) if searched > 0 || !takes_all => {
                    self.put_back(block, searched + end + 1);
                    return Ok(has_ended && (!takes_all || self.carry.is_empty()));
                }
                _ if takes_all => return Ok(true),
                _ if has_ended => {
                    std::mem::swap(block, &mut self.carry);
                    return Ok(true);
                }
                _ if block.len() > LINE_BYTES_MAX => return Err(LoadError::LineTooLong),
                _ => (searched, limit) = (limit, limit + bytes),
            }
        }
    }

    /// Leaves what stands behind the first `kept` bytes of a block for the next one.
    pub(super) fn put_back(&mut self, block: &mut Vec<u8>, kept: usize) {
        self.carry.splice(..0, block.drain(kept..));
    }

    /// Reads until `block` has `limit` bytes. Says whether there were fewer.
    fn fill(&mut self, block: &mut Vec<u8>, limit: usize) -> io::Result<bool> {
        let missing = limit.saturating_sub(block.len());
        block.reserve(missing);
        self.input.append(block, missing as u64)?;
        Ok(block.len() < limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Cursor, Write};
    use std::sync::Arc;

    fn stream(text: &str) -> Stream {
        Stream::Decoded(Box::new(Cursor::new(text.to_owned().into_bytes())))
    }

    fn blocks(text: &str, bytes: usize) -> Vec<String> {
        let mut lines = Lines::new(stream(text));
        let mut found = Vec::new();
        loop {
            let mut block = Vec::new();
            let has_ended = lines.next(&mut block, bytes, LastLine::Taken).unwrap();
            if !block.is_empty() {
                found.push(String::from_utf8(block).unwrap());
            }
            if has_ended {
                return found;
            }
        }
    }

    #[test]
    fn blocks_are_whole_lines() {
        assert_eq!(blocks("a\nbb\nccc\n", 5), ["a\nbb\n", "ccc\n"]);
        assert_eq!(blocks("a\nbb\nccc", 6), ["a\nbb\n", "ccc"]);
        assert_eq!(blocks("aaaaaaa\nb\nc\n", 3), ["aaaaaaa\n", "b\n", "c\n"]);
        assert_eq!(blocks("aaaaaaa\nb\nc\n", 5), ["aaaaaaa\n", "b\nc\n"]);
        assert_eq!(blocks("\n\n\n", 2), ["\n\n", "\n"]);
        assert_eq!(blocks("", 2), [""; 0]);
    }

    /// What the keys rest on: from the same place on, and with the same bytes ahead, the same block.
    #[test]
    fn a_block_depends_on_its_beginning_alone() {
        let text = "a\nbb\nccc\ndddddddd\n\neeeee\nf\n";
        for bytes in 1..12 {
            let all = blocks(text, bytes);
            let mut offset = 0;
            for (at, block) in all.iter().enumerate() {
                assert_eq!(blocks(&text[offset..], bytes), all[at..], "{bytes} from {offset}");
                offset += block.len();
            }
            assert_eq!(offset, text.len());
        }
    }

    #[test]
    fn what_is_put_back_comes_again() {
        let mut lines = Lines::new(stream("a\nbb\nccc\ndddd\neeee\n"));
        let mut block = Vec::new();
        let mut next = |kept| {
            assert!(!lines.next(&mut block, 8, LastLine::Taken).unwrap());
            lines.put_back(&mut block, kept);
            String::from_utf8(block.clone()).unwrap()
        };
        assert_eq!([next(2), next(1), next(6), next(0)], ["a\n", "b", "b\nccc\n", ""]);
    }

    #[test]
    fn a_line_that_is_still_written_is_awaited() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"a\nb").unwrap();
        let mut lines = Lines::new(Stream::plain(file.reopen().unwrap(), Arc::default()));
        let mut block = Vec::new();
        assert!(lines.next(&mut block, 10, LastLine::Awaited).unwrap());
        assert_eq!((block.as_slice(), lines.read_ahead()), (&b"a\n"[..], 1));
        assert!(lines.next(&mut block, 10, LastLine::Awaited).unwrap());
        assert!(block.is_empty());
        file.write_all(b"b\nc").unwrap();
        assert!(lines.next(&mut block, 10, LastLine::Awaited).unwrap());
        assert_eq!(block, b"bb\n");
        assert!(lines.next(&mut block, 10, LastLine::Taken).unwrap());
        assert_eq!(block, b"c");
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let mut lines = Lines::new(Stream::Decoded(Box::new(io::repeat(b'x'))));
        assert!(matches!(lines.next(&mut Vec::new(), 1 << 20, LastLine::Taken), Err(LoadError::LineTooLong)));
    }
}
