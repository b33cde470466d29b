//! The last lines of the log, for the admin port.

use std::collections::VecDeque;

/// Lines that are kept.
const LINES_MAX: usize = 1_000;
/// Their bytes together.
const BYTES_MAX: usize = 256 << 10;

/// The last lines, the oldest first.
pub(super) struct RecentLines {
    lines: VecDeque<Box<str>>,
    bytes: usize,
}

impl RecentLines {
    pub(super) const fn new() -> Self {
        Self { lines: VecDeque::new(), bytes: 0 }
    }

    /// Adds an entry of the log, which may have several lines.
    pub(super) fn add(&mut self, entry: &str) {
        for line in entry.lines() {
            self.bytes += line.len();
            self.lines.push_back(line.into());
        }
        while self.lines.len() > LINES_MAX || self.bytes > BYTES_MAX {
            let Some(oldest) = self.lines.pop_front() else { return };
            self.bytes -= oldest.len();
        }
    }

    pub(super) fn lines(&self) -> Vec<String> {
        self.lines.iter().map(|line| line.to_string()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_bytes_are_bounded() {
        let mut recent = RecentLines::new();
        (0..3_000).for_each(|number| recent.add(&format!("{number}\n")));
        let lines = recent.lines();
        assert_eq!((lines.len(), &*lines[0], &*lines[999]), (LINES_MAX, "2000", "2999"));
        recent.add(&format!("two\n{}\n", "x".repeat(BYTES_MAX - 2)));
        assert_eq!(recent.lines().len(), 1, "the long line alone has room");
        recent.add(&"y".repeat(BYTES_MAX + 1));
        recent.add("last\n");
        assert_eq!((recent.lines(), recent.bytes), (vec!["last".to_owned()], 4));
    }
}
