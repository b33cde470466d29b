//! Arrays.

use std::hash::RandomState;

use super::scalar::BYTES_PER_STEP;
use super::{Check, Checked};
use crate::equal::{equal, hash};
use crate::subschema::{ArrayRules, ContainsRule, CountRange, Subschema};

impl<'s> Check<'s, '_> {
    pub(super) fn array(&mut self, rules: &'s Subschema, array: &'s ArrayRules, at: usize) -> Checked {
        if !array.count.is_any() {
            let count = self.view.children(at).count();
            self.count(rules, array.count, count, at, ("minItems", "maxItems", "elements"))?;
        }
        if array.unique {
            self.unique(rules, at)?;
        }
        if !array.prefix.is_empty() || array.rest.is_some() {
            self.elements(array, at)?;
        }
        array.contains.as_ref().map_or(Ok(()), |contains| self.contains(rules, contains, at))
    }

    pub(super) fn count(
        &mut self,
        rules: &Subschema,
        wanted: CountRange,
        count: usize,
        at: usize,
        (min, max, what): (&str, &str, &str),
    ) -> Checked {
        self.spend(count / BYTES_PER_STEP)?;
        if count < wanted.min {
            self.fail(rules, min, at, || format!("at least {} {what}", wanted.min))?;
        }
        if count > wanted.max {
            self.fail(rules, max, at, || format!("at most {} {what}", wanted.max))?;
        }
        Ok(())
    }

    fn elements(&mut self, array: &ArrayRules, at: usize) -> Checked {
        for (index, child) in self.view.children(at).enumerate() {
            let Some(id) = array.prefix.get(index).copied().or(array.rest) else { return Ok(()) };
            self.descend(id, child)?;
            self.mark(child);
        }
        Ok(())
    }

    fn contains(&mut self, rules: &Subschema, contains: &ContainsRule, at: usize) -> Checked {
        let mut count = 0;
        for child in self.view.children(at) {
            if self.child_holds(contains.rules, child)? {
                count += 1;
                if contains.marks {
                    self.mark(child);
                }
            }
            let is_enough = count >= contains.count.min && contains.count.max == usize::MAX;
            if is_enough && !(self.marking && contains.marks) {
                return Ok(());
            }
        }
        let min = if contains.count.min == 1 { "contains" } else { "minContains" };
        let what = "elements that the schema in `contains` accepts";
        self.count(rules, contains.count, count, at, (min, "maxContains", what))
    }

    fn unique(&mut self, rules: &Subschema, at: usize) -> Checked {
        let view = self.view;
        self.spend(2 * view.raw(at).len() / BYTES_PER_STEP)?;
        let state = RandomState::new();
        let mut hashed: Vec<(u64, usize)> = view.children(at).map(|child| (hash(view, child, &state), child)).collect();
        self.spend(2 * hashed.len())?;
        hashed.sort_unstable();
        let twice = hashed.windows(2).find(|pair| pair[0].0 == pair[1].0 && equal(view, pair[0].1, view, pair[1].1));
        match twice.map(|pair| pair[1].1) {
            Some(again) => self.fail(rules, "uniqueItems", again, || "elements that differ".to_owned()),
            None => Ok(()),
        }
    }
}
