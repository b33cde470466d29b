//! Arrays.

use super::{All, Comparison};
use crate::equivalence;
use schema::{ArrayRules, SubschemaId};

impl<'s> Comparison<'s> {
    pub(super) fn arrays(&mut self, olds: &All<'s>, news: &All<'s>, place: &str) {
        let rules = |all: &All<'s>| all.iter().filter_map(|rules| rules.array.as_deref()).collect::<Vec<_>>();
        let (olds, news) = (rules(olds), rules(news));
        let counts = (olds.iter().map(|array| array.count), news.iter().map(|array| array.count));
        self.spans(counts, place, "an array of", "elements");
        if news.iter().any(|array| array.unique) && !olds.iter().any(|array| array.unique) {
            self.certain(place, "an array with an element twice");
        }
        let longest = olds.iter().chain(&news).map(|array| array.prefix.len()).max().unwrap_or(0);
        for index in 0..=longest {
            let step = if index == longest { "*".to_owned() } else { index.to_string() };
            self.compare(&element(&olds, index), &element(&news, index), &format!("{place}/{step}"));
        }
        for contains in news.iter().filter_map(|array| array.contains.as_ref()) {
            let is_there = olds.iter().filter_map(|array| array.contains.as_ref()).any(|old| {
                old.count.min >= contains.count.min
                    && old.count.max <= contains.count.max
                    && equivalence::ids((self.old, old.rules), (self.new, contains.rules))
            });
            if !is_there {
                self.unsure(place, "`contains` is new, or has changed");
            }
        }
    }
}

fn element(all: &[&ArrayRules], index: usize) -> Vec<SubschemaId> {
    all.iter().filter_map(|array| array.prefix.get(index).copied().or(array.rest)).collect()
}
