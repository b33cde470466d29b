//! Cuts a stream of lines into blocks of whole lines.
//!
//! Where a block ends depends on nothing but where it begins and on what follows there: a load that is resumed cuts
//! the same blocks, which are then sent under the same keys.

use std::io;

use memchr::{memchr, memrchr};

use super::input::Stream;
use super::state::TAIL_BYTES;
use super::unreadable;

/// A line without an end within so many bytes is skipped without being held: the server accepts an eighth of it.
pub(super) const LINE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// A line that is skipped is read in pieces of so many bytes.
const PASSED_BYTES: usize = 256 * 1024;

/// The content of a block, and what follows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cut {
    /// The stream has ended for now.
    pub(super) has_ended: bool,
    /// A skipped line of so many bytes follows the block's lines.
    pub(super) too_long: Option<u64>,
    /// Instead of lines there are so many NUL bytes.
    pub(super) nul_bytes: u64,
}

/// The handling of a last line without a line break.
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
    /// Bytes read beyond the last block.
    carry: Vec<u8>,
    /// Bytes of a line that is being skipped; 0 between lines.
    passed: u64,
    /// The last bytes that were skipped.
    passed_tail: Vec<u8>,
    /// Why nothing more can be read.
    failed: Option<io::Error>,
}

impl Lines {
    pub(super) const fn new(input: Stream) -> Self {
        Self { input, carry: Vec::new(), passed: 0, passed_tail: Vec::new(), failed: None }
    }

    /// How much was read beyond the last block.
    pub(super) const fn read_ahead(&self) -> u64 {
        self.carry.len() as u64 + self.passed
    }

    /// The last bytes of the line that was skipped.
    pub(super) fn passed_tail(&self) -> &[u8] {
        &self.passed_tail
    }

    /// Whether the next call returns an error.
    pub(super) const fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Puts the next whole lines into `block`: all that end within `bytes`, or else the first one. One that is too long is skipped
    /// alone, with an empty block. NUL bytes at the beginning of a line are skipped in the same way. A program that keeps its
    /// offset leaves them when its log is truncated.
    ///
    /// # Errors
    /// The rest of the stream can't be read. The whole lines before that place were returned before.
    pub(super) fn next(&mut self, block: &mut Vec<u8>, bytes: usize, last_line: LastLine) -> anyhow::Result<Cut> {
        block.clear();
        if self.passed > 0 {
            return self.pass_over(last_line);
        }
        let ended = |has_ended| Ok(Cut { has_ended, ..Cut::default() });
        std::mem::swap(block, &mut self.carry);
        let (mut searched, mut limit) = (0, bytes);
        loop {
            let has_ended = self.fill(block, limit);
            if block.first() == Some(&0) {
                return Ok(self.skip_nul_bytes(block));
            }
            let within = &block[..limit.min(block.len())];
            let end = if searched == 0 { memrchr(b'\n', within) } else { memchr(b'\n', &within[searched..]) };
            let takes_all = has_ended && last_line == LastLine::Taken && !self.has_failed();
            match end {
                Some(end) if searched > 0 || !takes_all => {
                    let is_cut = self.put_back_nul_bytes(block, searched + end + 1);
                    return ended(!is_cut && has_ended && (!takes_all || self.carry.is_empty()));
                }
                _ if takes_all => {
                    let is_cut = self.put_back_nul_bytes(block, block.len());
                    return ended(!is_cut);
                }
                _ if block.len() > LINE_BYTES_MAX => {
                    self.note_passed(block);
                    *block = Vec::new();
                    return self.pass_over(last_line);
                }
                _ if has_ended => {
                    std::mem::swap(block, &mut self.carry);
                    return self.failed.take().map_or_else(|| ended(true), |error| Err(unreadable(error)));
                }
                _ => (searched, limit) = (limit, limit + bytes),
            }
        }
    }

    /// Leaves the bytes after the first `kept` bytes of a block for the next one.
    pub(super) fn put_back(&mut self, block: &mut Vec<u8>, kept: usize) {
        self.carry.splice(..0, block.drain(kept..));
    }

    /// Leaves what follows the first `kept` bytes for the next block, and of these what follows a line that is followed by NUL bytes. Says
    /// whether there is such a line.
    fn put_back_nul_bytes(&mut self, block: &mut Vec<u8>, kept: usize) -> bool {
        let line = memchr::memmem::find(&block[..kept], b"\n\0").map(|at| at + 1);
        self.put_back(block, line.unwrap_or(kept));
        line.is_some()
    }

    /// Skips the NUL bytes at the beginning of `block` and keeps none of them.
    fn skip_nul_bytes(&mut self, block: &mut Vec<u8>) -> Cut {
        let mut nul_bytes = 0;
        loop {
            let nuls = block.iter().position(|byte| *byte != 0);
            nul_bytes += nuls.unwrap_or(block.len()) as u64;
            if let Some(nuls) = nuls {
                self.put_back(block, nuls);
                block.clear();
                return Cut { nul_bytes, ..Cut::default() };
            }
            block.clear();
            if self.fill(block, PASSED_BYTES) && block.is_empty() {
                return Cut { nul_bytes, has_ended: !self.has_failed(), ..Cut::default() };
            }
        }
    }

    /// Reads until `block` has `limit` bytes. Says whether there were fewer.
    fn fill(&mut self, block: &mut Vec<u8>, limit: usize) -> bool {
        let missing = limit.saturating_sub(block.len());
        block.reserve(missing);
        if !self.has_failed()
            && let Err(error) = self.input.append(block, missing as u64)
        {
            self.failed = Some(error);
        }
        self.has_failed() || block.len() < limit
    }

    fn note_passed(&mut self, bytes: &[u8]) {
        self.passed += bytes.len() as u64;
        self.passed_tail.extend_from_slice(&bytes[bytes.len().saturating_sub(TAIL_BYTES)..]);
        let beyond = self.passed_tail.len().saturating_sub(TAIL_BYTES);
        self.passed_tail.drain(..beyond);
    }

    /// Reads to the end of a line that is too long, without buffering it.
    fn pass_over(&mut self, last_line: LastLine) -> anyhow::Result<Cut> {
        let mut piece = Vec::with_capacity(PASSED_BYTES);
        loop {
            piece.clear();
            let has_ended = self.fill(&mut piece, PASSED_BYTES);
            let end = memchr(b'\n', &piece).map(|at| at + 1);
            self.note_passed(&piece[..end.unwrap_or(piece.len())]);
            let is_over = end.is_some() || has_ended && last_line == LastLine::Taken && !self.has_failed();
            if is_over {
                self.carry.extend_from_slice(&piece[end.unwrap_or(piece.len())..]);
                let too_long = Some(std::mem::take(&mut self.passed));
                return Ok(Cut { has_ended: end.is_none(), too_long, ..Cut::default() });
            }
            if has_ended {
                let waits = Cut { has_ended: true, ..Cut::default() };
                return self.failed.take().map_or(Ok(waits), |error| Err(unreadable(error)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Cursor, Read, Write};
    use std::sync::Arc;

    fn stream(text: &str) -> Stream {
        Stream::Decoded(Box::new(Cursor::new(text.to_owned().into_bytes())))
    }

    fn blocks(text: &str, bytes: usize) -> Vec<String> {
        let mut lines = Lines::new(stream(text));
        let mut found = Vec::new();
        loop {
            let mut block = Vec::new();
            let has_ended = lines.next(&mut block, bytes, LastLine::Taken).unwrap().has_ended;
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

    /// The keys rely on this: from the same place on, and with the same bytes ahead, the same block.
    #[test]
    fn block_depends_only_on_its_beginning() {
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
    fn unread_lines_are_returned_again() {
        let mut lines = Lines::new(stream("a\nbb\nccc\ndddd\neeee\n"));
        let mut block = Vec::new();
        let mut next = |kept| {
            assert!(!lines.next(&mut block, 8, LastLine::Taken).unwrap().has_ended);
            lines.put_back(&mut block, kept);
            String::from_utf8(block.clone()).unwrap()
        };
        assert_eq!([next(2), next(1), next(6), next(0)], ["a\n", "b", "b\nccc\n", ""]);
    }

    #[test]
    fn incomplete_line_is_awaited() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"a\nb").unwrap();
        let mut lines = Lines::new(Stream::plain(file.reopen().unwrap(), Arc::default()));
        let mut block = Vec::new();
        assert!(lines.next(&mut block, 10, LastLine::Awaited).unwrap().has_ended);
        assert_eq!((block.as_slice(), lines.read_ahead()), (&b"a\n"[..], 1));
        assert!(lines.next(&mut block, 10, LastLine::Awaited).unwrap().has_ended);
        assert!(block.is_empty());
        file.write_all(b"b\nc").unwrap();
        assert!(lines.next(&mut block, 10, LastLine::Awaited).unwrap().has_ended);
        assert_eq!(block, b"bb\n");
        assert!(lines.next(&mut block, 10, LastLine::Taken).unwrap().has_ended);
        assert_eq!(block, b"c");
    }

    #[test]
    fn too_long_line_is_skipped_without_buffering() {
        let long = LINE_BYTES_MAX as u64 * 3;
        let text = |end: &'static str| io::repeat(b'x').take(long).chain(end.as_bytes());
        let mut lines = Lines::new(Stream::Decoded(Box::new(Cursor::new("a\n").chain(text("\nb\n")))));
        let mut block = Vec::new();
        let mut next = |lines: &mut Lines, last_line| {
            let cut = lines.next(&mut block, 1 << 20, last_line).unwrap();
            assert!(block.capacity() < 2 * LINE_BYTES_MAX && lines.carry.capacity() < 2 * LINE_BYTES_MAX);
            (String::from_utf8(block.clone()).unwrap(), cut.too_long, cut.has_ended)
        };
        assert_eq!(next(&mut lines, LastLine::Taken), ("a\n".into(), None, false));
        assert_eq!(next(&mut lines, LastLine::Taken), (String::new(), Some(long + 1), false));
        assert_eq!((lines.passed_tail().len(), lines.passed_tail().last()), (TAIL_BYTES, Some(&b'\n')));
        assert_eq!(next(&mut lines, LastLine::Taken), ("b\n".into(), None, true));

        let mut last = Lines::new(Stream::Decoded(Box::new(text(""))));
        assert_eq!(next(&mut last, LastLine::Awaited), (String::new(), None, true), "its end may still be written");
        assert_eq!(last.read_ahead(), long);
        assert_eq!(next(&mut last, LastLine::Taken), (String::new(), Some(long), true));
    }

    #[test]
    fn nul_bytes_between_lines_are_skipped() {
        let nuls = |count| "\0".repeat(count);
        let many = 3 * PASSED_BYTES + 7;
        for (text, expected) in [
            (format!("{}a\nb\n", nuls(many)), vec!["a\nb\n"]),
            (format!("a\n{}b\nc\n", nuls(5)), vec!["a\n", "b\nc\n"]),
            (format!("a\n{}b", nuls(many)), vec!["a\n", "b"]),
            (format!("a\n{0}b\n{0}c\n{0}", nuls(2)), vec!["a\n", "b\n", "c\n"]),
            (nuls(many), vec![]),
            ("a\0\0b\nc\0\n".to_owned(), vec!["a\0\0b\nc\0\n"]),
        ] {
            for bytes in [8, 100, 1 << 20] {
                assert_eq!(blocks(&text, bytes), expected, "{bytes}");
            }
        }
        let mut lines = Lines::new(stream(&format!("{}a\n", nuls(many))));
        let (mut block, cut) = (Vec::new(), Cut { nul_bytes: many as u64, ..Cut::default() });
        assert_eq!(lines.next(&mut block, 100, LastLine::Taken).unwrap(), cut);
        assert_eq!((block.as_slice(), lines.read_ahead() > 0), (&b""[..], true));
    }

    #[test]
    fn whole_lines_before_an_error_are_given_first() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::ErrorKind::UnexpectedEof.into())
            }
        }
        let mut lines = Lines::new(Stream::Decoded(Box::new(Cursor::new("a\nb\nc").chain(Broken))));
        let mut block = Vec::new();
        assert!(lines.next(&mut block, 100, LastLine::Taken).unwrap().has_ended && lines.has_failed());
        assert_eq!(block, b"a\nb\n");
        let error = lines.next(&mut block, 100, LastLine::Taken).unwrap_err();
        assert!(error.to_string().starts_with("can't read more of the file"), "{error}");
    }
}
