//! Which transactions of a server had ended at a moment, in the server's form: "10:20:10,14" means all before 20 but 10
//! and 14.
//!
//! The form is that of `txid_snapshot` (PostgreSQL's documentation, "Transaction ID and Snapshot Information Functions").

use std::fmt::{self, Display, Formatter};

use bytes::{Buf, BufMut};

/// The maximum of running transactions that are kept; the next one and all later ones count as running.
const RUNNING_MAX: usize = 100;

/// The transactions that had ended: those before `end` that aren't `running`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Snapshot {
    /// The first transaction that may not have ended.
    begin: i64,
    /// The first that hadn't begun.
    end: i64,
    /// Transactions in between that hadn't ended, ascending, each as its distance from `begin`.
    running: Vec<u32>,
}

impl Snapshot {
    /// Parses the server's form; `None` for anything else.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let (begin, end, running) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?, parts.next()?);
        let mut snapshot = Self { begin, end, running: Vec::new() };
        for number in running.split(',').filter(|number| !number.is_empty()) {
            let number: i64 = number.parse().ok()?;
            match u32::try_from(number.checked_sub(begin)?) {
                Ok(distance) if snapshot.running.len() < RUNNING_MAX => snapshot.running.push(distance),
                // This one and all later ones are left for the next snapshot: none of them is skipped.
                _ => {
                    snapshot.end = number;
                    break;
                }
            }
        }
        (parts.next().is_none() && snapshot.is_valid()).then_some(snapshot)
    }

    fn is_valid(&self) -> bool {
        let ascends = self.running.is_sorted_by(|one, next| one < next);
        let ends_before = self.running().last().is_none_or(|last| last < self.end);
        self.begin >= 1 && self.begin <= self.end && ascends && ends_before
    }

    /// The first transaction that may not have ended.
    pub(super) const fn begin(&self) -> i64 {
        self.begin
    }

    /// The first transaction that hadn't begun.
    pub(super) const fn end(&self) -> i64 {
        self.end
    }

    /// The transactions in between that hadn't ended.
    pub(super) fn running(&self) -> impl Iterator<Item = i64> {
        self.running.iter().map(|distance| self.begin.saturating_add(i64::from(*distance)))
    }

    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        bytes.put_i64(self.begin);
        bytes.put_i64(self.end);
        // There are a hundred at most.
        bytes.put_u8(u8::try_from(self.running.len()).unwrap_or(u8::MAX));
        self.running.iter().for_each(|distance| bytes.put_u32(*distance));
    }

    /// Reads what [`Self::write`] wrote, from the front of `bytes`.
    pub(super) fn read(bytes: &mut &[u8]) -> Option<Self> {
        let (begin, end) = (bytes.try_get_i64().ok()?, bytes.try_get_i64().ok()?);
        let count = bytes.try_get_u8().ok()?;
        let running = (0..count).map(|_| bytes.try_get_u32().ok()).collect::<Option<_>>()?;
        Some(Self { begin, end, running }).filter(Self::is_valid)
    }
}

impl Display for Snapshot {
    /// In the server's form.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:", self.begin, self.end)?;
        for (place, number) in self.running().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            write!(f, "{comma}{number}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails loudly")]
mod tests {
    use super::*;

    fn written(snapshot: &Snapshot) -> Vec<u8> {
        let mut bytes = Vec::new();
        snapshot.write(&mut bytes);
        bytes
    }

    #[test]
    fn server_form_is_unchanged_after_a_round_trip() {
        for text in ["10:20:10,14", "7:7:", "5:9:5", "4294967296:8589934593:4294967296,8589934591"] {
            let snapshot = Snapshot::parse(text).unwrap();
            assert_eq!(snapshot.to_string(), text);
            let bytes = written(&snapshot);
            let mut rest = &bytes[..];
            assert_eq!(Snapshot::read(&mut rest), Some(snapshot));
            assert_eq!(rest, b"");
            assert!((0..bytes.len()).all(|end| Snapshot::read(&mut &bytes[..end]).is_none()));
        }
        for text in ["", "7", "7:7", "7:7:7:", "9:10:8", "8:10:9,9", "8:10:10", "8:10:11", "a:7:", "-3:7:", "0:7:"] {
            assert_eq!(Snapshot::parse(text), None, "{text}");
        }
    }

    #[test]
    fn excess_running_transactions_count_as_not_begun() {
        let running: Vec<String> = (0..150).map(|number| (1_000 + 2 * number).to_string()).collect();
        let snapshot = Snapshot::parse(&format!("1000:5000:{}", running.join(","))).unwrap();
        assert_eq!((snapshot.end(), snapshot.running.len()), (1_200, 100));
        assert!(written(&snapshot).len() < 450);
        assert_eq!(Snapshot::parse("10:9000000000:10,8000000000").unwrap().to_string(), "10:8000000000:10");
    }
}
