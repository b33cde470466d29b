//! The findings of an examination, which changes nothing in the store.

use std::time::Duration;

use text::escape_control;

/// A fact that needs an operator, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remedy {
    /// What was found.
    pub seen: String,
    /// What to do.
    pub remedy: String,
}

/// The findings about a store that answers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Examination {
    /// What is right: the product with its version, then what was checked.
    pub seen: Vec<String>,
    /// How many seconds the store's clock is ahead of this machine's; negative if it is slow. `None` if the store doesn't say its time.
    pub clock_ahead: Option<f64>,
    /// What may lose data or become a problem.
    pub warnings: Vec<Remedy>,
    /// What keeps events from being stored.
    pub problems: Vec<Remedy>,
    /// What couldn't be checked, and why.
    pub unchecked: Vec<String>,
    /// When the store was asked for its time, since 1970.
    asked: Duration,
}

impl Examination {
    /// Adds what is right.
    pub fn see(&mut self, seen: impl Into<String>) {
        self.seen.push(seen.into());
    }

    /// Adds a warning.
    pub fn warn(&mut self, seen: impl Into<String>, remedy: impl Into<String>) {
        self.warnings.push(Remedy { seen: seen.into(), remedy: remedy.into() });
    }

    /// Adds what the store may lose although it has answered: the text of a [`Store::warning`](crate::Store::warning).
    pub fn warn_of_loss(&mut self, seen: Option<impl Into<String>>) {
        if let Some(seen) = seen {
            self.warn(seen, "Change this setting of the store, unless you accept the loss");
        }
    }

    /// Adds a problem.
    pub fn fail(&mut self, seen: impl Into<String>, remedy: impl Into<String>) {
        self.problems.push(Remedy { seen: seen.into(), remedy: remedy.into() });
    }

    /// Adds what couldn't be checked, and why.
    pub fn skip(&mut self, why: impl Into<String>) {
        self.unchecked.push(why.into());
    }

    /// The store is asked for its time now.
    pub fn begin_clock(&mut self) {
        self.asked = clock::since_1970();
    }

    /// Compares the time that the store had since [`Self::begin_clock`], since 1970 and rounded down to `rounding`, with this machine's.
    pub fn compare_clock(&mut self, store: Duration, rounding: Duration) {
        let here = f64::midpoint(self.asked.as_secs_f64(), clock::since_1970().as_secs_f64());
        self.clock_ahead = Some(store.as_secs_f64() + rounding.as_secs_f64() / 2.0 - here);
    }

    /// Escapes control characters in the store's texts.
    #[must_use]
    pub(crate) fn visible(mut self) -> Self {
        let advice = self.warnings.iter_mut().chain(&mut self.problems);
        let texts = advice.flat_map(|advice| [&mut advice.seen, &mut advice.remedy]);
        for text in texts.chain(&mut self.seen).chain(&mut self.unchecked) {
            *text = escape_control(text).into_owned();
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_is_compared_with_the_middle_of_the_call() {
        let mut found = Examination::default();
        found.begin_clock();
        let store = clock::since_1970() - Duration::from_mins(5);
        found.compare_clock(store, Duration::ZERO);
        assert!((found.clock_ahead.unwrap() + 300.0).abs() < 1.0, "{found:?}");
        found.compare_clock(store, Duration::from_secs(20));
        assert!((found.clock_ahead.unwrap() + 290.0).abs() < 1.0, "{found:?}");
    }

    #[test]
    fn control_characters_are_escaped() {
        let mut found = Examination::default();
        found.see("\u{1b}[31m");
        found.warn("a\n", "b\n");
        found.fail("c\n", "d\n");
        found.skip("e\n");
        let shown = format!("{:?}", found.visible());
        assert_eq!(shown.matches("\\\\n").count(), 5, "{shown}");
        assert!(!shown.contains("\"\\u{1b}"), "{shown}");
    }
}
