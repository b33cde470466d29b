//! The ring of a lane or shard: pairs of time and cursor in pages of one file, the oldest of which is overwritten.
//!
//! Nothing is synced. A file that isn't readable as a ring is begun again.

use std::io;
use std::path::Path;

use journal::disk::DiskFile;

use crate::files::Files;
use crate::page::{HEADER_BYTES, PAGE_BYTES, PAIR_BYTES, PAIRS, PageHeader, ProgressSample};

/// Pages of a file.
pub(crate) const PAGES: u64 = 64;
/// The greatest length of a file.
pub(crate) const RING_BYTES: u64 = PAGES * PAGE_BYTES as u64;

/// The place of the next pair in a ring; it is read from the file before the first.
#[derive(Debug, Default)]
pub(crate) struct RingWriter(Option<Place>);

#[derive(Clone, Copy, Debug)]
struct Place {
    page: PageHeader,
    slot: usize,
    last: ProgressSample,
}

impl RingWriter {
    /// Adds pairs, in order. A cursor before the last one begins another generation.
    ///
    /// # Errors
    /// The file system's error; the ring may have some of the pairs. The next call reads the place again.
    pub(crate) fn append(&mut self, files: &Files, path: &Path, samples: &[ProgressSample]) -> io::Result<()> {
        let file = files.open(path)?;
        let mut place = match self.0.take() {
            Some(place) => Some(place),
            None => find(&*file)?,
        };
        for sample in samples {
            place = Some(write(&*file, place, *sample)?);
        }
        self.0 = place;
        Ok(())
    }
}

/// The place after the last pair of a ring; `None` if the file is no ring, and then it is empty.
fn find(file: &dyn DiskFile) -> io::Result<Option<Place>> {
    let Some(page) = headers(file)?.last().copied() else {
        file.set_length(0)?;
        return Ok(None);
    };
    if file.length()? > RING_BYTES {
        file.set_length(RING_BYTES)?;
    }
    let bytes = read_page(file, &page)?;
    let last = page.pairs(&bytes).last();
    let (slot, last) = last.map_or((0, page.first), |(slot, last)| (slot + 1, last));
    Ok(Some(Place { page, slot, last }))
}

/// Writes a pair after `place`, and returns the place after it.
fn write(file: &dyn DiskFile, place: Option<Place>, sample: ProgressSample) -> io::Result<Place> {
    let next = place.filter(|place| place.slot < PAIRS && place.last.cursor <= sample.cursor);
    let pair = next
        .filter(|place| place.last.time <= sample.time)
        .and_then(|place| Some((place, place.page.encode_pair(place.slot, sample)?)));
    if let Some((place, pair)) = pair {
        let offset = offset_of(&place.page) + (HEADER_BYTES + place.slot * PAIR_BYTES) as u64;
        file.write_all_at(&pair, offset)?;
        return Ok(Place { slot: place.slot + 1, last: sample, ..place });
    }
    let went_back = place.is_some_and(|place| sample.cursor < place.last.cursor);
    let page = PageHeader {
        number: place.map_or(0, |place| place.page.number.wrapping_add(1)),
        generation: place.map_or(0, |place| place.page.generation.wrapping_add(u64::from(went_back))),
        first: sample,
    };
    file.write_all_at(&page.encode(), offset_of(&page))?;
    Ok(Place { page, slot: 0, last: sample })
}

const fn offset_of(page: &PageHeader) -> u64 {
    page.number % PAGES * PAGE_BYTES as u64
}

/// The headers of a ring's pages, the oldest first.
pub(crate) fn headers(file: &dyn DiskFile) -> io::Result<Vec<PageHeader>> {
    let (mut found, pages) = (Vec::new(), file.length()?.div_ceil(PAGE_BYTES as u64).min(PAGES));
    for at in 0..pages {
        let mut bytes = [0; HEADER_BYTES];
        file.read_full_at(&mut bytes, at * PAGE_BYTES as u64)?;
        found.extend(PageHeader::decode(&bytes).filter(|page| page.number % PAGES == at));
    }
    found.sort_unstable_by_key(|page| page.number);
    Ok(found)
}

/// The bytes of a page that the file has.
pub(crate) fn read_page(file: &dyn DiskFile, page: &PageHeader) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; PAGE_BYTES];
    let read = file.read_full_at(&mut bytes, offset_of(page))?;
    bytes.truncate(read);
    Ok(bytes)
}
