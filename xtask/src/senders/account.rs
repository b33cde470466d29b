//! The account of one sender: acknowledged events against stored ones.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use anyhow::{Context, Result};

use super::marks::{self, EVENTS};
use super::sender::Sender;
use super::tally::Tally;
use crate::campaign::sqlite;

/// Faults of one sender that are shown.
const FAULTS_SHOWN: usize = 3;
/// The heading of the lines of [`Account::line`].
pub(super) const HEADING: &str =
    "sender                               sent  acked stored doubled  lost retries  kills seconds";

/// The counts of one sender.
#[derive(Debug, Default)]
pub(super) struct Account {
    name: &'static str,
    least: usize,
    sent: usize,
    acknowledged: usize,
    stored: usize,
    /// Events with more than one row.
    doubled: Vec<usize>,
    /// Acknowledged events without a row.
    lost: Vec<usize>,
    retries: usize,
    kills: usize,
    is_killed_enough: bool,
    seconds: f64,
    answers: BTreeMap<u16, usize>,
    faults: Vec<String>,
}

impl Account {
    /// Compares the store in `folder` with the tally.
    pub(super) fn read(
        sender: &Sender,
        tally: &Tally,
        end: Option<String>,
        seconds: f64,
        folder: &Path,
    ) -> Result<Self> {
        let rows = sqlite::payloads(&folder.join("data").join("events.db"), folder)?;
        let stored = count_rows(rows)?;
        Ok(Self {
            name: sender.name,
            least: sender.least,
            sent: tally.seen.len(),
            acknowledged: tally.acknowledged.len(),
            stored: stored.len(),
            doubled: stored.iter().filter(|(_, rows)| **rows > 1).map(|(number, _)| *number).collect(),
            lost: tally.acknowledged.iter().filter(|number| !stored.contains_key(number)).copied().collect(),
            retries: tally.retries,
            kills: tally.kills(),
            is_killed_enough: tally.is_killed_enough(),
            seconds,
            answers: tally.answers.clone(),
            faults: tally.faults.iter().cloned().chain(end).collect(),
        })
    }

    /// The counts in one line.
    pub(super) fn line(&self) -> String {
        let Self { name, sent, acknowledged, stored, doubled, lost, retries, kills, seconds, .. } = self;
        let (doubled, lost) = (doubled.len(), lost.len());
        format!(
            "{name:<35} {sent:>5} {acknowledged:>6} {stored:>6} {doubled:>7} {lost:>5} {retries:>7} {kills:>6} {seconds:>7.1}"
        )
    }

    /// What is wrong, if something is.
    pub(super) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let mut fault = |is_wrong: bool, text: String| {
            if is_wrong {
                faults.push(text)
            }
        };
        fault(!self.lost.is_empty(), format!("acknowledged and not stored: {}", shown(&self.lost)));
        fault(!self.doubled.is_empty(), format!("stored more than once: {}", shown(&self.doubled)));
        fault(
            self.stored < self.least,
            format!("{} of {EVENTS} stored, at least {} are needed", self.stored, self.least),
        );
        fault(!self.is_killed_enough, format!("the server was killed {} times: too few events were seen", self.kills));
        faults.extend(self.faults.iter().take(FAULTS_SHOWN).cloned());
        if !faults.is_empty() {
            faults.push(format!(
                "answers by status (0: none): {:?}; {} faults in all",
                self.answers,
                self.faults.len()
            ));
        }
        faults
    }
}

fn shown(numbers: &[usize]) -> String {
    let first = numbers.iter().take(10).map(usize::to_string).collect::<Vec<_>>().join(", ");
    format!("{} ({first}{})", numbers.len(), if numbers.len() > 10 { ", …" } else { "" })
}

/// How many rows each event has.
fn count_rows(rows: BufReader<impl Read>) -> Result<BTreeMap<usize, usize>> {
    let mut stored = BTreeMap::new();
    for row in rows.lines() {
        for number in marks::find(row.context("reading what is stored")?.as_bytes()) {
            *stored.entry(number).or_default() += 1;
        }
    }
    Ok(stored)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account() -> Account {
        Account { stored: 1_000, least: 1_000, is_killed_enough: true, ..Account::default() }
    }

    #[test]
    fn account_names_each_fault() {
        assert!(account().faults().is_empty());
        let faulty = |account: Account| account.faults().len() == 2;
        assert!(faulty(Account { lost: vec![1], ..account() }));
        assert!(faulty(Account { doubled: vec![1], ..account() }));
        assert!(faulty(Account { stored: 999, ..account() }));
        assert!(faulty(Account { is_killed_enough: false, ..account() }));
        assert!(faulty(Account { faults: vec!["404".to_owned()], ..account() }));
    }

    #[test]
    fn rows_of_an_event_are_counted() {
        let rows = "{\"a\":\"mark-0001\",\"b\":\"mark-0001\"}\n{\"a\":\"mark-0002\"}\n{\"a\":\"mark-0001\"}\n{}\n";
        let stored = count_rows(BufReader::new(rows.as_bytes())).unwrap();
        assert_eq!(stored, BTreeMap::from([(1, 2), (2, 1)]));
    }
}
