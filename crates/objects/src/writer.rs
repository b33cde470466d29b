//! Writes an object record by record, as lines or as a table.

use std::io::{self, Write};

use super::codec::{Encoder, LineCodec};
use super::parquet::Table;
use super::sealed::BUFFER_BYTES;
use super::{Line, Manifest, line};
use sink::Record;

/// Encodes records as an object's bytes.
pub(super) enum Writer<W: Write> {
    Lines(LineWriter<W>),
    Table(Table<W>),
}

impl<W: Write> Writer<W> {
    pub(super) fn new(manifest: &Manifest, output: W) -> io::Result<Self> {
        let (line, shard) = (manifest.line, manifest.lane.shard);
        Ok(match manifest.codec.of_lines() {
            Some(codec) => Self::Lines(LineWriter::new((line, codec), shard, output)?),
            None => Self::Table(Table::new(line, shard, output)?),
        })
    }

    /// Adds a record, and returns how many bytes it has before they are encoded.
    pub(super) fn add(&mut self, record: &Record<'_>) -> io::Result<usize> {
        match self {
            Self::Lines(lines) => lines.add(record),
            Self::Table(table) => table.add(record),
        }
    }

    /// Writes the rest, and returns the output.
    pub(super) fn finish(self) -> io::Result<W> {
        match self {
            Self::Lines(lines) => lines.finish(),
            Self::Table(table) => table.finish(),
        }
    }
}

/// Writes lines.
pub(super) struct LineWriter<W: Write> {
    line: Line,
    shard: u16,
    encoder: Encoder<W>,
    lines: Vec<u8>,
    /// Bytes of lines that are added together.
    piece_bytes: usize,
}

impl<W: Write> LineWriter<W> {
    fn new((line, codec): (Line, LineCodec), shard: u16, output: W) -> io::Result<Self> {
        let piece_bytes = piece_bytes(codec);
        let lines = Vec::with_capacity(piece_bytes);
        Ok(Self { line, shard, encoder: Encoder::new(codec, output)?, lines, piece_bytes })
    }

    fn add(&mut self, record: &Record<'_>) -> io::Result<usize> {
        let before = self.lines.len();
        line::write(&mut self.lines, self.line, self.shard, record);
        let bytes = self.lines.len() - before;
        if self.lines.len() >= self.piece_bytes {
            self.encoder.write_all(&self.lines)?;
            self.lines.clear();
        }
        Ok(bytes)
    }

    fn finish(mut self) -> io::Result<W> {
        self.encoder.write_all(&self.lines)?;
        self.encoder.finish()
    }
}

/// The size of the pieces that lines are added in. Large pieces of plain lines bypass the output's buffer, which saves
/// a copy. The bytes of compressed lines depend on the pieces, and must be the same if another version has begun the
/// object: these lines are added one by one.
const fn piece_bytes(codec: LineCodec) -> usize {
    match codec {
        LineCodec::None => BUFFER_BYTES,
        LineCodec::Gzip | LineCodec::Zstd => 0,
    }
}
