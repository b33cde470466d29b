//! Cycles among siblings, at every level of the module tree.

use std::collections::{BTreeMap, BTreeSet};

use super::modules::Module;

/// What one module takes from another: the names, each with the first line that says it.
pub(super) type Taken = BTreeMap<String, usize>;
/// Who takes what from whom.
pub(super) type Edges = BTreeMap<(usize, usize), Taken>;

/// Siblings that import one another, directly or through others, each with all modules below it.
pub(super) struct Cycle {
    pub(super) parent: usize,
    /// In the order that the fewest imports run against.
    pub(super) members: Vec<usize>,
}

/// The siblings below the closest common ancestor of two modules; none if one is the other's ancestor.
pub(super) fn siblings(modules: &[Module], one: usize, other: usize) -> Option<(usize, usize, usize)> {
    let (one, other) = (path_from_root(modules, one), path_from_root(modules, other));
    let split = one.iter().zip(&other).position(|(one, other)| one != other)?;
    Some((one[split - 1], one[split], other[split]))
}

fn path_from_root(modules: &[Module], mut module: usize) -> Vec<usize> {
    let mut path = vec![module];
    while let Some(parent) = modules[module].parent {
        path.push(parent);
        module = parent;
    }
    path.reverse();
    path
}

/// Every cycle of the tree, outermost first.
pub(super) fn cycles(modules: &[Module], edges: &Edges) -> Vec<Cycle> {
    let mut levels: BTreeMap<usize, BTreeMap<(usize, usize), usize>> = BTreeMap::new();
    for ((from, to), taken) in edges {
        if let Some((parent, from, to)) = siblings(modules, *from, *to) {
            *levels.entry(parent).or_default().entry((from, to)).or_default() += taken.len();
        }
    }
    let mut cycles = Vec::new();
    for (parent, weights) in levels {
        let mut left: BTreeSet<usize> = weights.keys().flat_map(|(from, to)| [*from, *to]).collect();
        while let Some(first) = left.pop_first() {
            let forward = reachable(first, |edge| *edge, &weights);
            let backward = reachable(first, |(from, to)| (*to, *from), &weights);
            let members: BTreeSet<usize> = forward.intersection(&backward).copied().collect();
            left.retain(|module| !members.contains(module));
            if members.len() > 1 {
                cycles.push(Cycle { parent, members: in_order(members, &weights) });
            }
        }
    }
    cycles
}

/// What is reached from `first`, itself too, along edges turned as `direction` says.
fn reachable(
    first: usize,
    direction: impl Fn(&(usize, usize)) -> (usize, usize),
    weights: &BTreeMap<(usize, usize), usize>,
) -> BTreeSet<usize> {
    let mut reached = BTreeSet::from([first]);
    let mut open = vec![first];
    while let Some(module) = open.pop() {
        for (from, to) in weights.keys().map(&direction) {
            if from == module && reached.insert(to) {
                open.push(to);
            }
        }
    }
    reached
}

/// A greedy order: the module that is used least and uses most comes first.
fn in_order(mut left: BTreeSet<usize>, weights: &BTreeMap<(usize, usize), usize>) -> Vec<usize> {
    let mut order = Vec::new();
    loop {
        let weight = |of: &dyn Fn(usize, usize) -> bool| -> usize {
            let inside = weights.iter().filter(|((from, to), _)| left.contains(from) && left.contains(to));
            inside.filter(|((from, to), _)| of(*from, *to)).map(|(_, weight)| weight).sum()
        };
        let used = |module: usize| weight(&|_, to| to == module);
        let uses = |module: usize| weight(&|from, _| from == module);
        let best = left.iter().copied().min_by_key(|module| {
            let (used, uses) = (used(*module), uses(*module));
            (used > 0, i64::try_from(used).unwrap_or(i64::MAX) - i64::try_from(uses).unwrap_or(i64::MAX))
        });
        let Some(best) = best else { return order };
        left.remove(&best);
        order.push(best);
    }
}
