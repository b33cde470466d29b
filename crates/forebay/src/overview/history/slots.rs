//! The busiest types or sinks, each with its curves.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::super::rates::Rate;
use super::series::Series;

/// Names that have curves.
pub(super) const SLOTS_MAX: usize = 16;

/// What is measured of a type or sink.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Figures {
    /// All its events so far: the measure of how busy it is. Its rate follows from it.
    pub(super) total: u64,
    /// Events without an outcome, and dead letters; none of a type, and in a writer.
    pub(super) held: Option<(u64, u64)>,
}

/// The curves of a type or sink.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) name: Box<str>,
    /// None until it was measured.
    last: Option<u64>,
    pub(super) rate: Series,
    pub(super) pending: Series,
    pub(super) dead: Series,
}

/// The curves of the busiest.
#[derive(Debug, Default)]
pub(super) struct Slots(Vec<Slot>);

impl Slots {
    /// Adds a point to all curves. `rate` is over the time since the last one; without it, nothing was measured before.
    pub(super) fn add(&mut self, mut now: BTreeMap<&str, Figures>, rate: Option<Rate>) {
        self.choose(&now);
        for slot in &mut self.0 {
            let figures = now.remove(&*slot.name);
            let between = figures.zip(slot.last).zip(rate);
            slot.rate.push(between.map(|((figures, last), rate)| rate.between(last, figures.total)));
            let (pending, dead) = figures.and_then(|figures| figures.held).unzip();
            slot.pending.push_if_used(pending.map(count));
            slot.dead.push_if_used(dead.map(count));
            slot.last = figures.map(|figures| figures.total);
        }
    }

    /// Adds points without values.
    pub(super) fn skip(&mut self, points: usize) {
        for slot in &mut self.0 {
            for _ in 0..points {
                slot.rate.push(None);
                slot.pending.push_if_used(None);
                slot.dead.push_if_used(None);
            }
        }
    }

    /// Gives slots to the busiest. One that has a slot keeps it until another has a quarter more events: its curves would be lost.
    fn choose(&mut self, now: &BTreeMap<&str, Figures>) {
        let total = |slot: &Slot| now.get(&*slot.name).map_or(0, |figures| figures.total);
        let mut others: Vec<(&str, u64)> = now.iter().map(|(name, figures)| (*name, figures.total)).collect();
        others.retain(|(name, _)| !self.0.iter().any(|slot| *slot.name == **name));
        others.sort_by_key(|(_, total)| Reverse(*total));
        for (name, busy) in others {
            if self.0.len() < SLOTS_MAX {
                self.0.push(Slot::new(name));
                continue;
            }
            let Some(idlest) = self.0.iter_mut().min_by_key(|slot| total(slot)) else { return };
            let least = total(idlest);
            if busy <= least.saturating_add(least / 4) {
                return;
            }
            *idlest = Slot::new(name);
        }
    }

    /// The curves, the busiest first.
    pub(super) fn busiest_first(&self) -> Vec<&Slot> {
        let mut slots: Vec<&Slot> = self.0.iter().collect();
        slots.sort_by_key(|slot| Reverse(slot.last));
        slots
    }

    pub(super) fn bytes(&self) -> usize {
        self.0.iter().map(|slot| slot.rate.bytes() + slot.pending.bytes() + slot.dead.bytes()).sum()
    }
}

impl Slot {
    fn new(name: &str) -> Self {
        let [rate, pending, dead] = [Series::default(), Series::default(), Series::default()];
        Self { name: name.into(), last: None, rate, pending, dead }
    }
}

/// A count as a point of a curve.
#[expect(clippy::cast_precision_loss, reason = "a curve; exact below 2⁵³")]
pub(super) const fn count(value: u64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(slots: &mut Slots, totals: &[(&str, u64)]) {
        let figures = |(name, total): &(&'static str, u64)| (*name, Figures { total: *total, held: None });
        let totals: Vec<(&'static str, u64)> = totals.iter().map(|(name, total)| (leaked(name), *total)).collect();
        slots.add(totals.iter().map(figures).collect(), Some(Rate { seconds: 5.0 }));
    }

    fn leaked(name: &str) -> &'static str {
        name.to_owned().leak()
    }

    fn names(slots: &Slots) -> Vec<&str> {
        slots.busiest_first().iter().map(|slot| &*slot.name).collect()
    }

    #[test]
    fn slot_changes_only_for_a_much_busier_type() {
        let mut slots = Slots::default();
        let many: Vec<(String, u64)> = (0..20).map(|at| (format!("t{at:02}"), 100 + at)).collect();
        let mut many: Vec<(&str, u64)> = many.iter().map(|(name, total)| (name.as_str(), *total)).collect();
        add(&mut slots, &many);
        assert_eq!((names(&slots).len(), names(&slots)[0], names(&slots)[15]), (SLOTS_MAX, "t19", "t04"));
        many[0].1 = 125;
        add(&mut slots, &many);
        assert!(!names(&slots).contains(&"t00"), "{:?}", names(&slots));
        many[0].1 = 135;
        add(&mut slots, &many);
        assert_eq!((names(&slots)[0], names(&slots).contains(&"t04")), ("t00", false));
    }

    #[test]
    fn rate_begins_with_the_second_point() {
        let mut slots = Slots::default();
        add(&mut slots, &[("a", 1_000)]);
        add(&mut slots, &[("a", 1_050)]);
        slots.skip(1);
        add(&mut slots, &[]);
        assert_eq!(slots.busiest_first()[0].rate.last(4), [None, Some(10.0), None, None]);
    }
}
