//! Events as a table of Apache Parquet, for tools that read columns (<https://parquet.apache.org/docs/file-format/>):
//! groups of rows with one page a column, plain and compressed with zstd, and a footer with their places. The same
//! events give the same bytes each time.
//!
//! It is implemented here because only one thing is needed: to write values of six types, page by page. The crates that
//! also read, and support every encoding, are larger than the rest of this crate.

mod chunk;
mod columns;
mod thrift;

use std::io::{self, Write};

use super::Line;
use chunk::{Chunk, Written};
use columns::Column;
use sink::Record;
use thrift::structure;

/// The bytes at the beginning and the end.
const MAGIC: &[u8; 4] = b"PAR1";
/// The version of the format: pages of the first version.
const VERSION: i32 = 1;
/// The program, and the version of this encoder. It isn't the program's version, with which an object that was begun
/// would change.
const WRITER: &[u8] = b"forebay version 1";
/// A group of rows ends when its values reach this size. Memory holds them, and twice the compressed size of the
/// largest column.
const GROUP_BYTES: usize = 4 << 20;

/// A group of rows, for the footer.
struct Group {
    columns: Vec<Written>,
    rows: i64,
    offset: i64,
}

/// Writes a table row by row.
pub(super) struct Table<W> {
    output: W,
    shard: u16,
    columns: &'static [Column],
    chunks: Vec<Chunk>,
    /// The size of the values of the chunks.
    bytes: usize,
    rows: i64,
    groups: Vec<Group>,
    /// The position in the output.
    offset: u64,
}

impl<W: Write> Table<W> {
    /// Begins a table of events of `shard`.
    pub(super) fn new(line: Line, shard: u16, mut output: W) -> io::Result<Self> {
        output.write_all(MAGIC)?;
        let columns = columns::of(line);
        let chunks = columns.iter().map(Chunk::new).collect();
        let offset = MAGIC.len() as u64;
        Ok(Self { output, shard, columns, chunks, bytes: 0, rows: 0, groups: Vec::new(), offset })
    }

    /// Adds a row, and returns how many bytes its values have.
    pub(super) fn add(&mut self, record: &Record<'_>) -> io::Result<usize> {
        let values = self.columns.iter().map(|column| (column.value)(self.shard, record));
        let bytes = self.chunks.iter_mut().zip(values).map(|(chunk, value)| chunk.add(value)).sum();
        self.rows += 1;
        self.bytes += bytes;
        if self.bytes >= GROUP_BYTES {
            self.end_group()?;
        }
        Ok(bytes)
    }

    fn end_group(&mut self) -> io::Result<()> {
        let mut group = Group { columns: Vec::new(), rows: self.rows, offset: self.offset.cast_signed() };
        for chunk in &mut self.chunks {
            let mut page = Vec::new();
            group.columns.push(chunk.end(&mut page, self.offset)?);
            self.output.write_all(&page)?;
            self.offset += page.len() as u64;
        }
        self.groups.push(group);
        (self.rows, self.bytes) = (0, 0);
        Ok(())
    }

    /// Ends the table, and returns the output.
    pub(super) fn finish(mut self) -> io::Result<W> {
        if self.rows > 0 {
            self.end_group()?;
        }
        let mut footer = self.footer();
        let length = u32::try_from(footer.len()).map_err(io::Error::other)?;
        footer.extend_from_slice(&length.to_le_bytes());
        footer.extend_from_slice(MAGIC);
        self.output.write_all(&footer)?;
        Ok(self.output)
    }

    /// `FileMetaData`.
    fn footer(&self) -> Vec<u8> {
        let mut footer = Vec::new();
        structure(&mut footer, |file| {
            let root = std::iter::once(None);
            let schema: Vec<Option<&Column>> = root.chain(self.columns.iter().map(Some)).collect();
            file.i32(1, VERSION).structures(2, &schema, |element, column| match column {
                Some(column) => column.write(element),
                None => {
                    element.binary(4, b"events").i32(5, count(self.columns));
                }
            });
            file.i64(3, self.groups.iter().map(|group| group.rows).sum());
            file.structures(4, &self.groups, |fields, group| group.write(fields));
            file.binary(6, WRITER);
            // The smallest and largest values use the order of the columns' types (`TypeDefinedOrder`).
            file.structures(7, self.columns, |order, _| {
                order.structure(1, |_| {});
            });
        });
        footer
    }
}

impl Group {
    /// `RowGroup`.
    fn write(&self, fields: &mut thrift::Fields<'_>) {
        fields.structures(1, &self.columns, |column, written| written.write(column));
        fields.i64(2, self.columns.iter().map(|column| column.bytes).sum()).i64(3, self.rows).i64(5, self.offset);
        fields.i64(6, self.columns.iter().map(|column| column.coded_bytes).sum());
    }
}

fn count(columns: &[Column]) -> i32 {
    i32::try_from(columns.len()).unwrap_or(i32::MAX)
}
