//! Finds the place of a time in a shard's log, by the headers of blocks.

use std::io;

use crate::scan::{KnownExtent, Scan};
use crate::segment::SegmentHeader;
use crate::segments::Segments;

impl Segments {
    /// The sequence of the first block that was written at `time` or later, in microseconds since 1970, UTC. It is beyond `durable`, the last
    /// durable sequence, if there is none. If the wall clock was set back, it may be another block. Reads the disk.
    ///
    /// # Errors
    /// The file system's error, also if a segment was freed in the meantime.
    pub fn written_since(&self, time: i64, durable: u64) -> io::Result<u64> {
        let headers = self.headers_now();
        let (mut low, mut high) = (0, headers.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let (mut scan, known) = self.scan(&headers, middle, durable)?;
            match scan.next_written_at(known)? {
                Some(written) if written < time => low = middle + 1,
                _ => high = middle,
            }
        }
        if headers.is_empty() {
            return Ok(durable.saturating_add(1));
        }
        let (mut scan, known) = self.scan(&headers, low.saturating_sub(1), durable)?;
        scan.skip_before(time, known)?;
        Ok(scan.expected())
    }

    fn scan(&self, headers: &[SegmentHeader], at: usize, durable: u64) -> io::Result<(Scan, KnownExtent)> {
        let header = headers.get(at).ok_or(io::ErrorKind::NotFound)?;
        let next_segment = headers.get(at + 1).map(|next| next.first);
        Ok((Scan::new(self.open(header)?, *header), KnownExtent { next_segment, durable }))
    }
}
