//! The values of one column in one group of rows: collected, then written as one page
//! (<https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift>).

use std::io;

use flate2::Crc;

use super::columns::{Column, Value};
use super::thrift::{Fields, structure, write_unsigned};
use crate::codec::ZSTD_LEVEL;

const PLAIN: i32 = 0;
const RLE: i32 = 3;
const ZSTD: i32 = 6;
const DATA_PAGE: i32 = 0;

/// A number of consecutive rows that all have a value, or all have none.
struct Run {
    has_value: bool,
    rows: u64,
}

/// The values of a column.
pub(super) struct Chunk {
    column: &'static Column,
    /// Consecutive (`PLAIN`).
    values: Vec<u8>,
    rows: i32,
    absent: i64,
    /// Of an optional column.
    runs: Vec<Run>,
    /// Of numbers and times: the least and the largest.
    range: Option<(i64, i64)>,
}

impl Chunk {
    pub(super) const fn new(column: &'static Column) -> Self {
        Self { column, values: Vec::new(), rows: 0, absent: 0, runs: Vec::new(), range: None }
    }

    /// Adds the next row's value, and returns how many bytes it takes.
    pub(super) fn add(&mut self, value: Option<Value<'_>>) -> usize {
        self.rows += 1;
        if self.column.is_optional {
            self.note(value.is_some());
        }
        let before = self.values.len();
        match value {
            None => self.absent += 1,
            Some(Value::Uuid(bytes)) => self.values.extend_from_slice(&bytes),
            Some(Value::Bytes(bytes)) => {
                // An event has at most a few megabytes.
                self.values.extend_from_slice(&u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
                self.values.extend_from_slice(bytes);
            }
            Some(Value::Small(number)) => self.values.extend_from_slice(&number.to_le_bytes()),
            Some(Value::Large(number)) => {
                let (least, largest) = self.range.unwrap_or((number, number));
                self.range = Some((least.min(number), largest.max(number)));
                self.values.extend_from_slice(&number.to_le_bytes());
            }
        }
        self.values.len() - before
    }

    fn note(&mut self, has_value: bool) {
        match self.runs.last_mut() {
            Some(run) if run.has_value == has_value => run.rows += 1,
            _ => self.runs.push(Run { has_value, rows: 1 }),
        }
    }

    /// Writes the page to `output`, which is at `offset` of the object, and resets the chunk for the next rows.
    pub(super) fn end(&mut self, output: &mut Vec<u8>, offset: u64) -> io::Result<Written> {
        let page = self.page();
        let coded = zstd::bulk::compress(&page, ZSTD_LEVEL)?;
        let before = output.len();
        structure(output, |header| {
            header.i32(1, DATA_PAGE).i32(2, length(&page)).i32(3, length(&coded)).i32(4, checksum(&coded));
            header.structure(5, |page| {
                page.i32(1, self.rows).i32(2, PLAIN).i32(3, RLE).i32(4, RLE);
            });
        });
        let header_bytes = output.len() - before;
        output.extend_from_slice(&coded);
        let written = Written {
            column: self.column,
            rows: self.rows.into(),
            absent: self.absent,
            range: self.range,
            offset: offset.cast_signed(),
            bytes: (header_bytes + page.len()) as i64,
            coded_bytes: (header_bytes + coded.len()) as i64,
        };
        *self = Self::new(self.column);
        Ok(written)
    }

    /// Which rows have a value (runs of one bit, and their length before them), and the values.
    fn page(&mut self) -> Vec<u8> {
        let values = std::mem::take(&mut self.values);
        if !self.column.is_optional {
            return values;
        }
        let mut levels = Vec::new();
        for run in &self.runs {
            write_unsigned(&mut levels, run.rows << 1);
            levels.push(run.has_value.into());
        }
        [&length(&levels).to_le_bytes(), levels.as_slice(), &values].concat()
    }
}

/// The length of a page: a group of rows has a few megabytes.
fn length(bytes: &[u8]) -> i32 {
    i32::try_from(bytes.len()).unwrap_or(i32::MAX)
}

fn checksum(bytes: &[u8]) -> i32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum().cast_signed()
}

/// Where the values of a column in one group of rows are, for the footer.
pub(super) struct Written {
    column: &'static Column,
    rows: i64,
    absent: i64,
    range: Option<(i64, i64)>,
    offset: i64,
    pub(super) bytes: i64,
    pub(super) coded_bytes: i64,
}

impl Written {
    /// `ColumnChunk`.
    pub(super) fn write(&self, fields: &mut Fields<'_>) {
        fields.i64(2, 0).structure(3, |data| {
            data.i32(1, self.column.kind.physical()).integers(2, &[PLAIN, RLE]);
            data.binaries(3, &[self.column.name.as_bytes()]).i32(4, ZSTD).i64(5, self.rows);
            data.i64(6, self.bytes).i64(7, self.coded_bytes).i64(9, self.offset);
            data.structure(12, |statistics| self.write_statistics(statistics));
        });
    }

    fn write_statistics(&self, fields: &mut Fields<'_>) {
        fields.i64(3, self.absent);
        if let Some((least, largest)) = self.range {
            fields.binary(5, &largest.to_le_bytes()).binary(6, &least.to_le_bytes());
        }
    }
}
