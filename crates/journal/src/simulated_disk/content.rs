//! The bytes of a file as pages that copies share until one of them is written. A page that was never written is
//! unallocated: it reads as zeros and occupies no space.

use std::ops::Range;
use std::sync::{Arc, LazyLock};

/// The unit that a disk writes as a whole, unless it is torn.
pub(super) const SECTOR_BYTES: usize = 512;
/// The unit of sharing and of allocation.
pub(super) const PAGE_BYTES: usize = 4096;
/// Sectors of a page.
pub(super) const PAGE_SECTORS: usize = PAGE_BYTES / SECTOR_BYTES;

/// A page's bytes.
pub(super) type Page = [u8; PAGE_BYTES];

/// All zero-filled pages are this one, so zero-filling a file ahead costs nearly nothing.
static ZEROS: LazyLock<Arc<Page>> = LazyLock::new(|| Arc::new([0; PAGE_BYTES]));

/// A file's bytes and length. Bytes of pages beyond the length are zero, and no page is wholly beyond it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Content {
    pages: Vec<Option<Arc<Page>>>,
    length: usize,
}

impl Content {
    pub(super) const fn length(&self) -> usize {
        self.length
    }

    /// Pages that occupy space.
    pub(super) fn allocated_pages(&self) -> usize {
        self.pages.iter().flatten().count()
    }

    pub(super) fn is_hole(&self, page: usize) -> bool {
        self.pages.get(page).is_none_or(Option::is_none)
    }

    /// The page, shared; zeros if it is unallocated.
    pub(super) fn page(&self, page: usize) -> Arc<Page> {
        self.pages.get(page).and_then(Clone::clone).unwrap_or_else(|| ZEROS.clone())
    }

    /// Cuts the content or extends it by unallocated pages.
    pub(super) fn set_length(&mut self, length: usize) {
        self.pages.truncate(length.div_ceil(PAGE_BYTES));
        if length < self.length
            && !length.is_multiple_of(PAGE_BYTES)
            && let Some(Some(last)) = self.pages.get_mut(length / PAGE_BYTES)
        {
            Arc::make_mut(last)[length % PAGE_BYTES..].fill(0);
        }
        self.length = length;
    }

    /// Reads what there is at `offset`, at most `buffer.len()` bytes.
    pub(super) fn read(&self, buffer: &mut [u8], offset: usize) -> usize {
        let end = self.length.min(offset.saturating_add(buffer.len()));
        if end <= offset {
            return 0;
        }
        for (page, within, at) in pieces(offset..end) {
            let target = &mut buffer[at..at + within.len()];
            match self.pages.get(page) {
                Some(Some(bytes)) => target.copy_from_slice(&bytes[within]),
                _ => target.fill(0),
            }
        }
        end - offset
    }

    /// Writes `bytes` at `offset`, and grows the length to their end if it is less.
    pub(super) fn write(&mut self, bytes: &[u8], offset: usize) {
        self.grow(offset + bytes.len());
        for (page, within, at) in pieces(offset..offset + bytes.len()) {
            let piece = &bytes[at..at + within.len()];
            let slot = self.slot(page);
            match <&Page>::try_from(piece) {
                Ok(whole) if *whole == **ZEROS => *slot = Some(ZEROS.clone()),
                Ok(whole) => *slot = Some(Arc::new(*whole)),
                Err(_) => Arc::make_mut(slot.get_or_insert_with(|| ZEROS.clone()))[within].copy_from_slice(piece),
            }
        }
    }

    /// Takes over `range` (within the page) from `image`, which is a state of that page; nothing beyond the length.
    pub(super) fn take(&mut self, page: usize, range: Range<usize>, image: &Arc<Page>) {
        let end = range.end.min(self.length.saturating_sub(page * PAGE_BYTES));
        if range.start >= end {
            return;
        }
        let slot = self.slot(page);
        if range.start == 0 && end == PAGE_BYTES {
            *slot = Some(image.clone());
        } else {
            let bytes = Arc::make_mut(slot.get_or_insert_with(|| ZEROS.clone()));
            bytes[range.start..end].copy_from_slice(&image[range.start..end]);
        }
    }

    pub(super) fn grow(&mut self, length: usize) {
        self.length = self.length.max(length);
    }

    pub(super) fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.length];
        self.read(&mut bytes, 0);
        bytes
    }

    fn slot(&mut self, page: usize) -> &mut Option<Arc<Page>> {
        if self.pages.len() <= page {
            self.pages.resize(page + 1, None);
        }
        &mut self.pages[page]
    }
}

/// Cuts a range of bytes at the page boundaries: page, range within it, and the same range within the whole.
fn pieces(range: Range<usize>) -> impl Iterator<Item = (usize, Range<usize>, usize)> {
    let Range { start, end } = range;
    (start / PAGE_BYTES..end.div_ceil(PAGE_BYTES)).map(move |page| {
        let base = page * PAGE_BYTES;
        let from = start.max(base);
        (page, from - base..end.min(base + PAGE_BYTES) - base, from - start)
    })
}
