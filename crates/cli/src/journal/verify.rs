//! `forebay journal verify`: checks everything in a data directory that Forebay needs to run, and reports what is there and what is damaged.
//! It only reads.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;

use config::token_file::TokenFile;
use dead_letters::damaged_dead_letters;
use eventlog::{Losses, damaged_id_files};
use journal::{DataDirectory, Finding, Inspected, damaged_state_files};
use ledger::SavedLedger;
use text::{OperatorCommand, counted};

use super::EXIT_DAMAGED;
use crate::errors::at;
use crate::output::print;

/// Directories of the data directory that hold state files. Those of the journals of dead letters do, too.
const WITH_STATE_FILES: [&str; 4] = ["", "objects", "aggregates", "replays"];
const DEAD: &str = "dead";

const RESTORE: &str =
    "Restore the directory from a copy, or start Forebay: it reports what is lost and continues with the rest";
const DEAD_ADVICE: &str =
    "Restore the directory from a copy, or start Forebay: it continues with the dead letters that can be read";
const STATE_ADVICE: &str =
    "If the other one of `.0` and `.1` is intact, the next start uses it. Otherwise restore a copy";
const IDS_ADVICE: &str = "Remove the file: then only the store recognises duplicates of its ids";

fn repair() -> String {
    format!(
        "Restore a copy, or run {} to keep the events that can be read. Have clients resend lost events",
        OperatorCommand::JournalRepair
    )
}

fn accept() -> String {
    format!("Restore a copy, or accept the loss with {}", OperatorCommand::JournalAcceptLoss)
}

#[derive(Default)]
struct Totals {
    segments: u64,
    blocks: u64,
    records: u64,
    damaged: u64,
    lost: u64,
}

/// The findings so far.
#[derive(Default)]
struct Report {
    totals: Totals,
    lines: Vec<String>,
}

/// The range of a shard's journal.
struct Extent {
    oldest: Option<u64>,
    next: u64,
}

pub(super) fn run(directory: &DataDirectory) -> anyhow::Result<u8> {
    let mut report = Report::default();
    let saved = report.ledger(directory);
    let counted = saved.as_ref().map_or(&[][..], SavedLedger::counted_up_to);
    let on_disk = directory.shards_on_disk().map_err(at(directory.path()))?;
    let shards = on_disk.max(u16::try_from(counted.len()).unwrap_or(u16::MAX));
    for shard in 0..shards {
        let extent = report.shard(directory, shard)?;
        report.compare(directory, shard, &extent, saved.as_ref());
    }
    report.others(directory, saved.as_ref())?;
    report.print()
}

impl Report {
    fn damage(&mut self, path: &Path, what: impl Display, advice: &str) {
        self.totals.damaged += 1;
        self.lines.push(format!("{}: {what}. {advice}.", path.display()));
    }

    fn finding(&mut self, path: &Path, what: impl Display, finding: &Finding, advice: &str) {
        self.totals.lost += finding.lost_count();
        self.damage(path, format_args!("{what}: {finding}"), advice);
    }

    /// The ledger, if it can be read. Its damaged copies are found with all other state files.
    fn ledger(&mut self, directory: &DataDirectory) -> Option<SavedLedger> {
        let saved = SavedLedger::load(directory);
        saved.map_err(|error| self.damage(&directory.path().join("ledger"), error, "Restore a copy")).ok()
    }

    fn shard(&mut self, directory: &DataDirectory, shard: u16) -> anyhow::Result<Extent> {
        let path = directory.shard(shard);
        let mut extent = Extent { oldest: None, next: 1 };
        let inspected = journal::inspect_shard(directory.disk(), &path, &mut |item| match item {
            Inspected::Segment(header) => {
                self.totals.segments += 1;
                extent.oldest.get_or_insert(header.first);
                extent.next = extent.next.max(header.first);
            }
            Inspected::Block { block, .. } => {
                self.totals.blocks += 1;
                self.totals.records += block.records().count() as u64;
                extent.next = extent.next.max(block.header().end());
            }
            Inspected::Damaged(stretch) | Inspected::Torn(stretch) => {
                self.totals.records += stretch.survivors().len() as u64;
                extent.next = extent.next.max(stretch.sequences().end);
                self.finding(&path, format_args!("shard {shard}"), stretch.finding(), &repair());
            }
            Inspected::Finding(finding) => self.finding(&path, format_args!("shard {shard}"), finding, &repair()),
        });
        match inspected {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            inspected => inspected.map_err(at(&path))?,
        }
        Ok(extent)
    }

    /// Compares a shard's journal with the ledger.
    fn compare(&mut self, directory: &DataDirectory, shard: u16, extent: &Extent, saved: Option<&SavedLedger>) {
        let path = directory.shard(shard);
        let counted = saved.and_then(|saved| saved.counted_up_to().get(usize::from(shard))).copied().unwrap_or(0);
        let needed = saved.and_then(|saved| saved.needed_from(shard)).unwrap_or(u64::MAX);
        let late = extent.oldest.filter(|oldest| needed < *oldest).map(|oldest| Finding::begins_late(needed, oldest));
        for finding in late.into_iter().chain(Finding::ends_early(extent.next, counted)) {
            self.finding(&path, format_args!("shard {shard}"), &finding, RESTORE);
        }
    }

    fn others(&mut self, directory: &DataDirectory, saved: Option<&SavedLedger>) -> anyhow::Result<()> {
        let root = directory.path();
        if let Some(saved) = saved {
            for (path, finding) in damaged_dead_letters(directory, saved).map_err(at(&root.join(DEAD)))? {
                self.finding(&path, "dead letters", &finding, DEAD_ADVICE);
            }
        }
        let mut folders: Vec<_> = WITH_STATE_FILES.iter().map(|name| root.join(name)).collect();
        let sinks = directory.disk().list(&root.join(DEAD)).unwrap_or_default();
        folders.extend(sinks.into_iter().map(|sink| root.join(DEAD).join(sink)));
        for folder in folders {
            let damaged = match damaged_state_files(directory.disk(), &folder) {
                Err(error) if error.kind() == io::ErrorKind::NotADirectory => Vec::new(),
                damaged => damaged.map_err(at(&folder))?,
            };
            damaged.iter().for_each(|path| self.damage(path, "the state file is damaged", STATE_ADVICE));
        }
        for path in damaged_id_files(directory).map_err(at(&root.join("duplicates")))? {
            self.damage(&path, "the file of ids is damaged", IDS_ADVICE);
        }
        let tokens = TokenFile::within(root);
        if let Err(error) = tokens.read() {
            self.damage(tokens.path(), error, "Restore a copy");
        }
        match Losses::open(directory) {
            Ok(losses) => losses.open_ones().iter().for_each(|loss| self.damage(root, loss, &accept())),
            Err(error) => self.damage(&root.join("losses"), error, "Restore a copy"),
        }
        Ok(())
    }

    fn print(self) -> anyhow::Result<u8> {
        let Totals { segments, blocks, records, damaged, lost } = self.totals;
        let summary =
            format!("{}, {}, {}", counted(segments, "segment"), counted(blocks, "block"), counted(records, "record"));
        print(|output| {
            self.lines.iter().try_for_each(|line| writeln!(output, "{line}"))?;
            if damaged == 0 {
                return writeln!(output, "ok: {summary}");
            }
            let (places, lost) = (counted(damaged, "place"), counted(lost, "record"));
            writeln!(output, "damaged: {places}, {lost} lost; {summary} can be read")
        })?;
        Ok(if damaged == 0 { 0 } else { EXIT_DAMAGED })
    }
}
