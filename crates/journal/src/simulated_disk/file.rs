//! One file: the content that the running process sees, the content that survives any power cut, and the changes
//! between the two.

use std::ops::Range;
use std::sync::Arc;

use super::content::{Content, PAGE_BYTES, PAGE_SECTORS, Page, SECTOR_BYTES};
use super::crash::{FileCut, SectorFate};

/// Whether a change has reached the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Not synced yet.
    Unsynced,
    /// A sync failed over it: the disk may have it or not, and no later sync makes it sure.
    Forsaken,
    /// Synced, but after a forsaken change; kept because the two have an order.
    Synced,
}

/// A write, or a change of the length (which has no sectors).
#[derive(Clone, Debug)]
struct Change {
    /// The sectors that were written, numbered from the file's beginning.
    sectors: Range<usize>,
    /// The pages that hold these sectors, right after the write: a disk gets whole sectors.
    images: Vec<Arc<Page>>,
    /// The file's length after the change, if the change set it.
    length: Option<usize>,
    fate: Fate,
}

/// A file without its names.
#[derive(Clone, Debug, Default)]
pub(super) struct File {
    visible: Content,
    durable: Content,
    /// Each sector's content before the last write to it.
    previous: Content,
    /// Sectors that reads are served from `previous`.
    stale: Vec<Range<usize>>,
    /// The changes since `durable`. Empty means that `visible` equals `durable`.
    changes: Vec<Change>,
}

impl File {
    /// A file that is wholly durable.
    pub(super) fn of(bytes: &[u8]) -> Self {
        let mut durable = Content::default();
        durable.write(bytes, 0);
        Self { visible: durable.clone(), durable, ..Self::default() }
    }

    pub(super) const fn visible(&self) -> &Content {
        &self.visible
    }

    pub(super) const fn is_durable(&self) -> bool {
        self.changes.is_empty()
    }

    pub(super) fn read(&self, buffer: &mut [u8], offset: usize) -> usize {
        let read = self.visible.read(buffer, offset);
        for sectors in &self.stale {
            let start = (sectors.start * SECTOR_BYTES).max(offset);
            let end = (sectors.end * SECTOR_BYTES).min(offset + read);
            if start < end {
                let old = &mut buffer[start - offset..end - offset];
                old.fill(0);
                self.previous.read(old, start);
            }
        }
        read
    }

    pub(super) fn write(&mut self, bytes: &[u8], offset: usize) {
        if bytes.is_empty() {
            return;
        }
        let end = offset + bytes.len();
        let sectors = offset / SECTOR_BYTES..end.div_ceil(SECTOR_BYTES);
        for (page, range) in page_ranges(&sectors) {
            self.previous.grow((page + 1) * PAGE_BYTES);
            self.previous.take(page, range, &self.visible.page(page));
        }
        let length = (end > self.visible.length()).then_some(end);
        self.visible.write(bytes, offset);
        let images = page_ranges(&sectors).map(|(page, _)| self.visible.page(page)).collect();
        self.changes.push(Change { sectors, images, length, fate: Fate::Unsynced });
    }

    pub(super) fn set_length(&mut self, length: usize) {
        self.visible.set_length(length);
        self.changes.push(Change { sectors: 0..0, images: Vec::new(), length: Some(length), fate: Fate::Unsynced });
    }

    /// Makes all changes durable but the forsaken ones.
    pub(super) fn sync(&mut self) {
        if self.changes.iter().any(|change| change.fate == Fate::Forsaken) {
            self.refate(Fate::Synced);
        } else {
            self.settle();
        }
    }

    /// A sync failed: as in Linux, the changes stay visible and count as clean from now on.
    pub(super) fn fail_sync(&mut self) {
        self.refate(Fate::Forsaken);
    }

    /// Makes everything durable that is visible.
    pub(super) fn settle(&mut self) {
        self.durable.clone_from(&self.visible);
        self.changes.clear();
    }

    fn refate(&mut self, fate: Fate) {
        for change in self.changes.iter_mut().filter(|change| change.fate == Fate::Unsynced) {
            change.fate = fate;
        }
    }

    /// Inverts a bit on the medium, and in what is read now.
    pub(super) fn flip_bit(&mut self, byte: usize, mask: u8) {
        for content in [&mut self.durable, &mut self.visible] {
            let mut old = [0];
            if content.read(&mut old, byte) == 1 {
                content.write(&[old[0] ^ mask], byte);
            }
        }
    }

    /// Serves reads of these sectors from before their last write, from now on.
    pub(super) fn serve_stale(&mut self, sectors: Range<usize>) {
        self.stale.push(sectors);
    }

    pub(super) fn serve_fresh(&mut self) {
        self.stale.clear();
    }

    /// The file after a power cut.
    pub(super) fn survivors(&self, cut: &mut FileCut<'_>) -> Self {
        let mut content = self.durable.clone();
        // The disk stores a length in one place, so the versions up to a certain one have reached it.
        let sure = self.changes.iter().rposition(|change| change.fate == Fate::Synced).map_or(0, |last| last + 1);
        let lengths_kept = cut.length_changes_kept(sure, self.changes.len());
        for (number, change) in self.changes.iter().enumerate() {
            if number < lengths_kept {
                change.length.inspect(|&length| content.set_length(length));
            }
            let mut fates = |sector: usize| match change.fate {
                Fate::Synced => SectorFate::Kept,
                _ => cut.sector(number, sector - change.sectors.start, change.sectors.len()),
            };
            change.reach(&mut content, &mut fates);
        }
        Self {
            visible: content.clone(),
            durable: content,
            previous: self.previous.clone(),
            stale: self.stale.clone(),
            changes: Vec::new(),
        }
    }

    /// How many sectors' fate a cut decides, and the number of the last write.
    pub(super) fn at_stake(&self) -> (usize, usize) {
        let open = self.changes.iter().enumerate().filter(|(_, change)| change.fate != Fate::Synced);
        open.fold((0, 0), |(sectors, last), (number, change)| {
            (sectors + change.sectors.len(), if change.sectors.is_empty() { last } else { number })
        })
    }
}

impl Change {
    /// Lets each of the sectors reach `content` as its fate has it.
    fn reach(&self, content: &mut Content, fates: &mut impl FnMut(usize) -> SectorFate) {
        for ((page, range), image) in page_ranges(&self.sectors).zip(&self.images) {
            let mut kept = range.start..range.start;
            let first = page * PAGE_SECTORS;
            for sector in first + range.start / SECTOR_BYTES..first + range.end / SECTOR_BYTES {
                let within = (sector - first) * SECTOR_BYTES;
                let bytes = match fates(sector) {
                    SectorFate::Kept => SECTOR_BYTES,
                    SectorFate::Torn(bytes) => bytes,
                    SectorFate::Lost => 0,
                };
                // Runs of kept sectors go in one piece: a whole page is then shared and not copied.
                if kept.end == within {
                    kept.end += bytes;
                } else {
                    content.take(page, kept, image);
                    kept = within..within + bytes;
                }
            }
            content.take(page, kept, image);
        }
    }
}

/// The pages that hold these sectors, each with the range of bytes within it.
fn page_ranges(sectors: &Range<usize>) -> impl Iterator<Item = (usize, Range<usize>)> + use<> {
    let Range { start, end } = *sectors;
    (start / PAGE_SECTORS..end.div_ceil(PAGE_SECTORS)).map(move |page| {
        let first = page * PAGE_SECTORS;
        let within = start.max(first) - first..end.min(first + PAGE_SECTORS) - first;
        (page, within.start * SECTOR_BYTES..within.end * SECTOR_BYTES)
    })
}
