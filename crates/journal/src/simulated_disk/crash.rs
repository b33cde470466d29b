//! Which of the unsynced changes a power cut keeps. With even chances alone the bad cases (a block without its first
//! sector, a new file without the old one's end) would be very rare, so each cut has a style.

use random::Random;

/// How a power cut chooses what survives of the changes that weren't synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutStyle {
    /// Everything survives: the cache was written just in time.
    LoseNothing,
    /// Nothing survives.
    LoseAll,
    /// Each sector by a coin.
    Halves,
    /// One sector in 16 is lost.
    FewLost,
    /// One sector in 16 survives.
    FewKept,
    /// Each write as a whole by a coin.
    WholeWrites,
    /// All survives but the sectors of each file's last write.
    LastWriteLost,
    /// All survives but the first sector of each write.
    FirstSectorsLost,
    /// Only the first sector of each write survives.
    FirstSectorsKept,
    /// Sectors reach the disk in the order of writing, up to some moment.
    InOrder,
    /// Sectors reach the disk newest first, up to some moment.
    Reversed,
    /// Each file has a separate style.
    Mixed,
}

impl CutStyle {
    /// All styles.
    pub const ALL: [Self; 12] = [
        Self::LoseNothing,
        Self::LoseAll,
        Self::Halves,
        Self::FewLost,
        Self::FewKept,
        Self::WholeWrites,
        Self::LastWriteLost,
        Self::FirstSectorsLost,
        Self::FirstSectorsKept,
        Self::InOrder,
        Self::Reversed,
        Self::Mixed,
    ];

    pub(super) fn any(random: &mut Random) -> Self {
        Self::ALL[random.index(Self::ALL.len())]
    }

    /// How many of the changes `sure..=all` of something that has its versions in order survive.
    fn prefix(self, sure: usize, all: usize, random: &mut Random) -> usize {
        match self {
            Self::LoseNothing => all,
            Self::LoseAll => sure,
            _ => match random.index(4) {
                0 => sure,
                1 => sure + random.index(all - sure + 1),
                _ => all,
            },
        }
    }

    /// For each of the undecided name changes whether it survives.
    pub(super) fn names(self, count: usize, random: &mut Random) -> Vec<bool> {
        let by_coin = !matches!(self, Self::LoseNothing | Self::LoseAll) && random.once_in(2);
        let kept = self.prefix(0, count, random);
        (0..count).map(|number| if by_coin { random.once_in(2) } else { number < kept }).collect()
    }
}

/// The fate of a written sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SectorFate {
    /// The disk has it.
    Kept,
    /// The disk has the earlier content.
    Lost,
    /// The disk has this many bytes of it, then the earlier content.
    Torn(usize),
}

/// A power cut as it affects one file.
pub(super) struct FileCut<'a> {
    style: CutStyle,
    random: &'a mut Random,
    last_write: usize,
    /// For the styles with an order: how many sectors reached the disk, or were still to come.
    moment: usize,
    sectors_seen: usize,
    coin: (usize, bool),
}

impl<'a> FileCut<'a> {
    /// For a file with this many undecided sectors, whose last write is change number `last_write`.
    pub(super) fn new(style: CutStyle, (sectors, last_write): (usize, usize), random: &'a mut Random) -> Self {
        let mut style = style;
        while style == CutStyle::Mixed {
            style = CutStyle::any(random);
        }
        let moment = random.index(sectors + 1);
        Self { style, random, last_write, moment, sectors_seen: 0, coin: (usize::MAX, false) }
    }

    pub(super) fn length_changes_kept(&mut self, sure: usize, all: usize) -> usize {
        self.style.prefix(sure, all, self.random)
    }

    /// The fate of sector `index` of `count` of change number `change`; changes and sectors come in order.
    pub(super) fn sector(&mut self, change: usize, index: usize, count: usize) -> SectorFate {
        debug_assert!(index < count, "a sector of the write");
        let seen = self.sectors_seen;
        self.sectors_seen += 1;
        let kept = match self.style {
            CutStyle::LoseNothing => return SectorFate::Kept,
            CutStyle::LoseAll | CutStyle::Mixed => return SectorFate::Lost,
            CutStyle::Halves => self.random.once_in(2),
            CutStyle::FewLost => !self.random.once_in(16),
            CutStyle::FewKept => self.random.once_in(16),
            CutStyle::WholeWrites => self.coin_of(change),
            CutStyle::LastWriteLost => change != self.last_write,
            CutStyle::FirstSectorsLost => index > 0,
            CutStyle::FirstSectorsKept => index == 0,
            CutStyle::InOrder => seen < self.moment,
            CutStyle::Reversed => seen >= self.moment,
        };
        match kept {
            false => SectorFate::Lost,
            true if self.random.once_in(64) => SectorFate::Torn(1 + self.random.index(511)),
            true => SectorFate::Kept,
        }
    }

    fn coin_of(&mut self, change: usize) -> bool {
        if self.coin.0 != change {
            self.coin = (change, self.random.once_in(2));
        }
        self.coin.1
    }
}
