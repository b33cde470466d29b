//! Counts of a campaign, so one that tests nothing is noticed.

use std::fmt;

use journal::simulated_disk::CutStyle;

use super::process::Seen;

/// Counts of a campaign.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    /// Disk states after a cut that were recovered from and checked.
    pub(crate) states: u64,
    pub(crate) by_style: [u64; CutStyle::ALL.len()],
    pub(crate) runs: u64,
    pub(crate) commits: u64,
    pub(crate) cuts_within_operations: u64,
    pub(crate) cuts_in_recovery: u64,
    pub(crate) kills: u64,
    pub(crate) torn_tails: u64,
    pub(crate) torn_without_header: u64,
    /// Requests that were not answered but are in the log.
    pub(crate) unanswered_kept: u64,
    pub(crate) rolled: u64,
    pub(crate) recycled: u64,
    pub(crate) recycled_used: u64,
    pub(crate) freed: u64,
    pub(crate) seals: u64,
}

impl Tally {
    pub(crate) fn count(&mut self, style: CutStyle, seen: &Seen, acknowledged: u64) {
        self.states += 1;
        let at = CutStyle::ALL.iter().position(|known| *known == style).expect("it is one of them");
        self.by_style[at] += 1;
        self.torn_tails += seen.findings.iter().filter(|finding| finding.case == 'C').count() as u64;
        self.torn_without_header += seen.findings.iter().filter(|finding| finding.case == 'E').count() as u64;
        self.unanswered_kept += u64::from(seen.events.last().is_some_and(|(sequence, _)| *sequence > acknowledged));
    }

    /// The cases that a campaign of more than a few thousand states must have had.
    #[cfg(not(feature = "mutant-no-checksum"))]
    pub(crate) fn check(&self) {
        let met = [
            ("states of the rarest style", self.by_style.into_iter().min().unwrap_or_default()),
            ("commits", self.commits),
            ("cuts within operations", self.cuts_within_operations),
            ("cuts in recovery", self.cuts_in_recovery),
            ("kills", self.kills),
            ("torn tails", self.torn_tails),
            ("torn tails without a header", self.torn_without_header),
            ("unanswered requests kept", self.unanswered_kept),
            ("segments rolled", self.rolled),
            ("files recycled", self.recycled),
            ("recycled files used", self.recycled_used),
            ("segments freed", self.freed),
            ("seals", self.seals),
        ];
        for (what, count) in met {
            let least = self.states / 10_000;
            assert!(count > least, "vacuous: {count} {what} in {} states", self.states);
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} states in {} runs: {} commits, {} cuts within operations, {} in recovery, {} kills, {} seals, \
             torn tails {} and {} without header, {} unanswered requests kept, segments: {} rolled, {} freed, \
             {} recycled, {} used again; by style",
            self.states,
            self.runs,
            self.commits,
            self.cuts_within_operations,
            self.cuts_in_recovery,
            self.kills,
            self.seals,
            self.torn_tails,
            self.torn_without_header,
            self.unanswered_kept,
            self.rolled,
            self.freed,
            self.recycled,
            self.recycled_used,
        )?;
        CutStyle::ALL.iter().zip(self.by_style).try_for_each(|(style, count)| write!(f, " {style:?} {count}"))
    }
}
