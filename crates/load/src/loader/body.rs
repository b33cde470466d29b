//! Builds the bodies of a block's batches: the selected lines, edited, within the server's limits.
//!
//! The content of each body depends only on the block's lines and their order, for the same reason as with blocks.

use std::ops::Range;

use limits::BATCH_RECORDS_MAX;
use memchr::{memchr, memchr_iter};

use super::edit::{self, Edit};
use super::select::{Selection, Undecided};

/// The changes of lines before they are sent.
#[derive(Clone, Debug, Default)]
pub(super) struct Shape {
    pub(super) selection: Selection,
    pub(super) edits: Vec<Edit>,
    /// A body that has so many bytes gets no further line.
    pub(super) bytes: usize,
}

/// The body of one batch.
pub(super) struct Piece<'a> {
    /// Where its first line begins in the block.
    pub(super) offset: usize,
    pub(super) body: &'a [u8],
    block: &'a [u8],
    /// Where each line of the body is in the block; none if the body is the block.
    lines: Option<&'a [Range<usize>]>,
}

impl Shape {
    /// Returns the bodies one after the other, and before them the undecided lines; the result is how many lines are
    /// selected.
    pub(super) fn pieces<E>(
        &self,
        block: &[u8],
        block_lines: u64,
        undecided: impl FnMut(Range<usize>, &Undecided) -> Result<(), E>,
        mut send: impl FnMut(&Piece<'_>) -> Result<(), E>,
    ) -> Result<u64, E> {
        if self.selection.takes_all() && self.edits.is_empty() && block_lines <= BATCH_RECORDS_MAX as u64 {
            send(&Piece { offset: 0, body: block, block, lines: None })?;
            return Ok(block_lines);
        }
        let mut selected = Vec::new();
        self.selection.lines(block, |line| selected.push(line), undecided)?;
        let mut body = Vec::with_capacity(self.bytes);
        let mut first = 0;
        while first < selected.len() {
            body.clear();
            let mut end = first;
            while end < selected.len() && end - first < BATCH_RECORDS_MAX && body.len() < self.bytes {
                self.append(&block[selected[end].clone()], &mut body);
                end += 1;
            }
            let lines = &selected[first..end];
            send(&Piece { offset: lines[0].start, body: &body, block, lines: Some(lines) })?;
            first = end;
        }
        Ok(selected.len() as u64)
    }

    fn append(&self, line: &[u8], body: &mut Vec<u8>) {
        let content = line.strip_suffix(b"\n").unwrap_or(line);
        if self.edits.is_empty() {
            body.extend_from_slice(content);
        } else {
            let content = content.strip_prefix(json::BYTE_ORDER_MARK).unwrap_or(content);
            edit::apply(&self.edits, content, body);
        }
        body.push(b'\n');
    }
}

impl Piece<'_> {
    /// A line of the body, from 1, with its line break; none if there are fewer.
    pub(super) fn line(&self, wanted: usize) -> Option<&[u8]> {
        let start = nth_line(self.body, &mut 0, 0, wanted)?;
        let line = &self.body[start..];
        (!line.is_empty()).then(|| &line[..memchr(b'\n', line).map_or(line.len(), |end| end + 1)])
    }

    /// For lines of the body, from 1 and ascending: each line's number in the block, from 0, and the line as
    /// read.
    pub(super) fn find_lines(&self, wanted: impl Iterator<Item = usize>, mut give: impl FnMut(usize, u64, &[u8])) {
        let (mut at, mut number, mut line_at) = (0, 0, 0);
        for wanted in wanted {
            let range = match self.lines {
                Some(lines) => lines.get(wanted.wrapping_sub(1)).cloned(),
                None => {
                    let start = nth_line(self.block, &mut line_at, at, wanted);
                    start.map(|start| {
                        start..memchr(b'\n', &self.block[start..]).map_or(self.block.len(), |end| start + end + 1)
                    })
                }
            };
            let Some(range) = range.filter(|range| range.start >= at) else { continue };
            number += memchr_iter(b'\n', &self.block[at..range.start]).count() as u64;
            at = range.start;
            let line = &self.block[range];
            give(wanted, number, line.strip_suffix(b"\n").unwrap_or(line));
        }
    }
}

/// Where line `wanted`, from 1, begins. The walk continues from the last one: `from` is the start of the line after `line_at`
/// lines.
fn nth_line(block: &[u8], line_at: &mut usize, from: usize, wanted: usize) -> Option<usize> {
    let mut start = from;
    *line_at = (*line_at).max(1);
    while *line_at < wanted {
        start += memchr(b'\n', &block[start..])? + 1;
        *line_at += 1;
    }
    Some(start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    fn pieces(shape: &Shape, block: &str) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        let lines = block.lines().count() as u64;
        let sent = shape.pieces(
            block.as_bytes(),
            lines,
            |_, _| Ok(()),
            |piece| {
                found.push((piece.offset, String::from_utf8(piece.body.to_vec()).unwrap()));
                Ok::<_, Infallible>(())
            },
        );
        assert!(sent.is_ok());
        found
    }

    fn shape(filter: &str, edits: &[Edit]) -> Shape {
        let filter = (!filter.is_empty()).then(|| filter.parse().unwrap());
        Shape { selection: Selection { filter, condition: None }, edits: edits.to_vec(), bytes: 8 }
    }

    #[test]
    fn bodies_hold_the_lines_that_match() {
        let block = "{\"a\":1}\n{\"b\":2}\nx\n{\"a\":3}";
        assert_eq!(pieces(&shape("", &[]), block), [(0, block.to_owned())]);
        assert_eq!(pieces(&shape("a", &[]), block), [(0, "{\"a\":1}\n".into()), (18, "{\"a\":3}\n".into())]);
        let edit = [Edit::set("/a=4").unwrap()];
        let expected = [(0, "{\"a\":4}\n".to_owned()), (18, "{\"a\":4}\n".to_owned())];
        assert_eq!(pieces(&shape("a", &edit), block), expected);
        assert_eq!(pieces(&shape("none", &[]), block), []);
    }

    #[test]
    fn body_respects_the_record_limit() {
        let block = "1\n".repeat(BATCH_RECORDS_MAX + 1);
        let shape = Shape { bytes: 1 << 20, ..Shape::default() };
        let found = pieces(&shape, &block);
        let lengths: Vec<_> = found.iter().map(|(offset, body)| (*offset, body.len())).collect();
        assert_eq!(lengths, [(0, 2 * BATCH_RECORDS_MAX), (2 * BATCH_RECORDS_MAX, 2)]);
    }

    #[test]
    fn lines_of_a_body_are_found_as_sent() {
        let edit = [Edit::set("/a=4").unwrap()];
        let mut found = Vec::new();
        let sent = shape("a", &edit).pieces(
            b"x\n{\"a\":1}\n\n",
            3,
            |_, _| Ok(()),
            |piece| {
                found = [1, 2].map(|line| piece.line(line).map(<[u8]>::to_vec)).into();
                Ok::<_, Infallible>(())
            },
        );
        assert!(sent.is_ok());
        assert_eq!(found, [Some(b"{\"a\":4}\n".to_vec()), None]);
        let piece = Piece { offset: 0, body: b"1\n\n2", block: b"", lines: None };
        assert_eq!([1, 2, 3, 4].map(|line| piece.line(line)), [Some(&b"1\n"[..]), Some(b"\n"), Some(b"2"), None]);
    }

    #[test]
    fn lines_of_body_are_found_in_block() {
        let block = b"a1\n\nb\na2\nb\nb\na3";
        let find = |shape: &Shape| {
            let mut found = Vec::new();
            let sent = shape.pieces(
                block,
                7,
                |_, _| Ok(()),
                |piece| {
                    piece.find_lines([1, 3, 9].into_iter(), |wanted, number, line| {
                        found.push((wanted, number, String::from_utf8(line.to_vec()).unwrap()));
                    });
                    Ok::<_, Infallible>(())
                },
            );
            assert!(sent.is_ok());
            found
        };
        let bytes = 100;
        assert_eq!(find(&Shape { bytes, ..Shape::default() }), [(1, 0, "a1".into()), (3, 2, "b".into())]);
        assert_eq!(find(&Shape { bytes, ..shape("a", &[]) }), [(1, 0, "a1".into()), (3, 6, "a3".into())]);
    }
}
