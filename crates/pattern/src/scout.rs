//! Reads a text before a search, to find the cost of the search.

use regex::Regex;
use regex_automata::Input;
use regex_automata::hybrid::dfa::{Cache, DFA};

use crate::Pattern;

/// Finds the cost of a search before it runs.
///
/// At worst a byte costs as much as the pattern is large. And a match may end long before it is certain that no longer
/// one begins there: repeated searches in one text could each read the whole rest, which would be quadratic. Most
/// patterns do neither. So an automaton runs first, and counts the bytes that it reads and the states that it must
/// build.
pub struct Scout<'p> {
    pattern: &'p Pattern,
    cache: Option<Cache>,
}

/// The result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scouted {
    /// The operations that the search takes; [`usize::MAX`] if it takes too many.
    pub operations: usize,
    /// Whether there may be a match.
    pub may_find: bool,
}

/// For texts this short the worst case is assumed: the automaton would cost more.
const NEAR: usize = 256;
/// Bytes of states that an automaton keeps; with more it starts again.
const STATES_BYTES: usize = 512 * 1024;
/// How often the work is compared with its limit.
const CHECK_INTERVAL: usize = 256;

impl<'p> Scout<'p> {
    pub(crate) const fn new(pattern: &'p Pattern) -> Self {
        Self { pattern, cache: None }
    }

    /// The engine that searches.
    #[must_use]
    pub const fn regex(&self) -> &Regex {
        self.pattern.regex()
    }

    /// The cost at worst of finding the groups within this many bytes.
    #[must_use]
    pub const fn operations(&self, bytes: usize) -> usize {
        self.pattern.operations(bytes)
    }

    /// Scans from `from` on, and stops after more than `most` operations.
    pub fn scan(&mut self, text: &str, from: usize, most: usize) -> Scouted {
        let left = text.len() - from;
        let worst = Scouted { operations: self.pattern.operations(left), may_find: true };
        if left <= NEAR { worst } else { self.go_ahead(text, from, most).unwrap_or(worst) }
    }

    fn go_ahead(&mut self, text: &str, from: usize, most: usize) -> Option<Scouted> {
        let automaton = self.pattern.automaton.get_or_init(|| automaton(self.pattern)).as_deref()?;
        let cache = self.cache.get_or_insert_with(|| automaton.create_cache());
        let begun = built_bytes(cache);
        let mut state = automaton.start_state_forward(cache, &Input::new(text).range(from..)).ok()?;
        let mut may_find = false;
        for (read, byte) in text.as_bytes()[from..].iter().enumerate() {
            state = automaton.next_state(cache, state, *byte).ok()?;
            if state.is_tagged() {
                if state.is_quit() {
                    return None;
                }
                may_find |= state.is_match();
                if state.is_dead() {
                    return Some(Scouted { operations: read + 1 + built_bytes(cache).saturating_sub(begun), may_find });
                }
            }
            if read.is_multiple_of(CHECK_INTERVAL) && read + built_bytes(cache).saturating_sub(begun) > most {
                return Some(Scouted { operations: usize::MAX, may_find: true });
            }
        }
        may_find |= automaton.next_eoi_state(cache, state).ok()?.is_match();
        Some(Scouted { operations: text.len() - from + built_bytes(cache).saturating_sub(begun), may_find })
    }
}

/// If the pattern has a `\b`, the automaton stops at characters that aren't ASCII.
fn automaton(pattern: &Pattern) -> Option<Box<DFA>> {
    let config = DFA::config().cache_capacity(STATES_BYTES).skip_cache_capacity_check(true);
    let config = config.unicode_word_boundary(true);
    DFA::builder().configure(config).build(pattern.regex.as_str()).ok().map(Box::new)
}

/// Bytes of states that were built so far.
fn built_bytes(cache: &Cache) -> usize {
    cache.clear_count() * STATES_BYTES + cache.memory_usage()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scouted(pattern: &str, text: &str, from: usize) -> Scouted {
        let pattern: Pattern = pattern.parse().unwrap();
        let mut scout = pattern.scout();
        // All states are built now.
        scout.scan(text, from, usize::MAX);
        scout.scan(text, from, usize::MAX)
    }

    #[test]
    fn search_reads_until_the_longest_match() {
        let text = format!("x ann@example.org, {}", "a".repeat(1000));
        let near = |operations: usize| operations..operations + 3;
        assert!(near(18).contains(&scouted(r"[a-z]+@[a-z.]+", &text, 0).operations));
        assert!(near(1).contains(&scouted("[a-z]", &text, 0).operations));
        assert_eq!(scouted("x.*z|x", &text, 0), Scouted { operations: text.len(), may_find: true });
        assert_eq!(scouted("[0-9]", &text, 0), Scouted { operations: text.len(), may_find: false });
        assert_eq!(scouted("a$", &text, 1), Scouted { operations: text.len() - 1, may_find: true });
        assert_eq!(scouted(r"\bann\b", &format!("\u{e9}{text}"), 0).operations, 2 * (text.len() + 2) / 2, "the worst");
    }

    #[test]
    fn scan_stops_if_states_keep_growing() {
        let mut random = 1_u64;
        let mut bit = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            if random >> 63 == 0 { '0' } else { '1' }
        };
        let bits: String = (0..100_000).map(|_| bit()).collect();
        let pattern: Pattern = "[01]*1[01]{200}x".parse().unwrap();
        assert_eq!(pattern.scout().scan(&bits, 0, 1_000_000), Scouted { operations: usize::MAX, may_find: true });
    }
}
