//! Realistic records from a seed, for demos, tests and benchmarks without real data.
//!
//! A record depends only on kind, seed and number, so a run can be repeated, shortened and continued. Each record has
//! its number, so no two of a seed are equal, and a verifier can find the missing ones.

mod access;
mod job;
mod multilingual;
mod nested;
#[cfg(test)]
mod tests;
mod writer;

use random::Random;
use writer::Writer;

/// The kinds of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecordKind {
    /// A web server's access log: flat, about 335 bytes.
    Access,
    /// The end of a job: one short string, 114 bytes.
    JobStatus,
    /// A server's state: nested objects and arrays, mostly numbers, about 5 kB.
    Nested,
    /// A post with answers: many scripts, emoji, escapes, 1 to 4 kB.
    Multilingual,
}

impl RecordKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Access, Self::JobStatus, Self::Nested, Self::Multilingual];
}

/// Generates the records of one kind and seed, one after the other.
#[derive(Clone, Debug)]
pub struct Generator {
    kind: RecordKind,
    seed: u64,
    number: u64,
}

impl Generator {
    /// A generator whose first record is number 0.
    #[must_use]
    pub const fn new(kind: RecordKind, seed: u64) -> Self {
        Self::starting_at(kind, seed, 0)
    }

    /// A generator whose first record is `number`.
    #[must_use]
    pub const fn starting_at(kind: RecordKind, seed: u64, number: u64) -> Self {
        Self { kind, seed, number }
    }

    /// Appends the next record to `into`: a JSON object without line breaks, and a `\n`.
    pub fn next_line(&mut self, into: &mut Vec<u8>) {
        let mut random = Random::stream(self.seed, self.number);
        let mut out = Writer(into);
        match self.kind {
            RecordKind::Access => access::write(&mut out, &mut random, self.number),
            RecordKind::JobStatus => job::write(&mut out, &mut random, self.seed, self.number),
            RecordKind::Nested => nested::write(&mut out, &mut random, self.number),
            RecordKind::Multilingual => multilingual::write(&mut out, &mut random, self.number),
        }
        out.text("\n");
        self.number = self.number.wrapping_add(1);
    }
}
