//! Values, numbers and strings.

use super::{All, Comparison, takes, takes_integers};
use json::ValueKind;
use schema::NumberLiteral;
use schema::{Bound, BoundSide, CountRange, NumberRules, StringRules};

impl<'s> Comparison<'s> {
    pub(super) fn scalars(&mut self, olds: &All<'s>, news: &All<'s>, place: &str) {
        if let Some(values) = news.iter().find_map(|rules| rules.values.as_deref()) {
            self.certain(place, &format!("a value that isn't among those of `{}`", values.keyword));
        }
        if takes_integers(olds) {
            let rules = |all: &All<'s>| all.iter().filter_map(|rules| rules.number.as_deref()).collect::<Vec<_>>();
            self.numbers(&rules(olds), &rules(news), place);
        }
        if takes(olds, ValueKind::Text) {
            let rules = |all: &All<'s>| all.iter().filter_map(|rules| rules.text.as_ref()).collect::<Vec<_>>();
            self.texts(&rules(olds), &rules(news), place);
        }
    }

    fn numbers(&mut self, olds: &[&NumberRules], news: &[&NumberRules], place: &str) {
        let bounds = || olds.iter().flat_map(|rules| &rules.bounds);
        for bound in news.iter().flat_map(|rules| &rules.bounds) {
            if !bounds().any(|old| implies(old, bound)) {
                let side = match bound.side {
                    BoundSide::Minimum => "below",
                    BoundSide::Above => "not above",
                    BoundSide::Maximum => "above",
                    BoundSide::Below => "not below",
                };
                self.certain(place, &format!("a number {side} {}", bound.limit.text));
            }
        }
        for divisor in news.iter().filter_map(|rules| rules.multiple_of.as_ref()) {
            let is_implied =
                |old: &&NumberRules| old.multiple_of.as_ref().is_some_and(|old| divisor.divides(&old.text));
            if !olds.iter().any(is_implied) {
                self.certain(place, &format!("a number that is not a multiple of {}", divisor.text));
            }
        }
    }

    fn texts(&mut self, olds: &[&StringRules], news: &[&StringRules], place: &str) {
        let (old, new) = (olds.iter().map(|rules| rules.length), news.iter().map(|rules| rules.length));
        self.spans((old, new), place, "a string of", "characters");
        for pattern in news.iter().filter_map(|rules| rules.pattern.as_ref()) {
            let mut patterns = olds.iter().filter_map(|rules| rules.pattern.as_ref()).peekable();
            if patterns.peek().is_none() {
                self.certain(place, &format!("a string that doesn't match {}", pattern.text));
            } else if !patterns.any(|old| old.text == pattern.text) {
                self.unsure(place, &format!("whether what matched before matches {} too", pattern.text));
            }
        }
        for format in news.iter().filter_map(|rules| rules.format) {
            if !olds.iter().any(|rules| rules.format == Some(format)) {
                self.certain(place, &format!("a string without the format {}", format.name()));
            }
        }
    }

    /// How many of something there may be.
    pub(super) fn spans(
        &mut self,
        (olds, news): (impl Iterator<Item = CountRange>, impl Iterator<Item = CountRange>),
        place: &str,
        what: &str,
        of: &str,
    ) {
        let (old, new) = (narrowest(olds), narrowest(news));
        if new.min > old.min {
            self.certain(place, &format!("{what} fewer than {} {of}", new.min));
        }
        if new.max < old.max {
            self.certain(place, &format!("{what} more than {} {of}", new.max));
        }
    }
}

fn narrowest(spans: impl Iterator<Item = CountRange>) -> CountRange {
    spans.fold(CountRange::default(), |all, one| CountRange { min: all.min.max(one.min), max: all.max.min(one.max) })
}

/// Whether a number that satisfies `old` satisfies `new`.
fn implies(old: &Bound, new: &Bound) -> bool {
    let upper = |side| matches!(side, BoundSide::Maximum | BoundSide::Below);
    let excludes = |side| matches!(side, BoundSide::Above | BoundSide::Below);
    if upper(old.side) != upper(new.side) {
        return false;
    }
    let order = NumberLiteral::order_of(&new.limit, &old.limit.text);
    let is_inside = if upper(new.side) { order.is_lt() } else { order.is_gt() };
    is_inside || (order.is_eq() && (excludes(old.side) || !excludes(new.side)))
}
