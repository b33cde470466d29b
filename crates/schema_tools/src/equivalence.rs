//! Whether two schemas have the same keywords with the same values.

use std::fmt::Debug;

use schema::CompiledSchema;
use schema::{Applicator, ArrayRules, ContainsRule, DependentNeeds, ObjectRules, Subschema, SubschemaId};

type One<'s, T> = (&'s CompiledSchema, T);

/// Whether two lists of rules are equal, in the same order.
pub(super) fn sets(left: One<'_, &Vec<&Subschema>>, right: One<'_, &Vec<&Subschema>>) -> bool {
    let mut same = Same { left: left.0, right: right.0, open: Vec::new() };
    let mut pairs = left.1.iter().zip(right.1);
    left.1.len() == right.1.len() && pairs.all(|(left, right)| same.said(&Said::by(left), &Said::by(right)))
}

pub(super) fn ids(left: One<'_, SubschemaId>, right: One<'_, SubschemaId>) -> bool {
    Same { left: left.0, right: right.0, open: Vec::new() }.id(left.1, right.1)
}

pub(super) fn applied(left: One<'_, &Applicator>, right: One<'_, &Applicator>) -> bool {
    let (mut said, mut other) = (Said::default(), Said::default());
    said.applied(left.1);
    other.applied(right.1);
    Same { left: left.0, right: right.0, open: Vec::new() }.said(&said, &other)
}

struct Same<'s> {
    left: &'s CompiledSchema,
    right: &'s CompiledSchema,
    /// Pairs that are assumed to be equal until a difference is found.
    open: Vec<(SubschemaId, SubschemaId)>,
}

/// Pairs of schemas that are compared: with more the schemas are treated as different.
const PAIRS_MAX: usize = 2_000;

impl Same<'_> {
    fn id(&mut self, left: SubschemaId, right: SubschemaId) -> bool {
        if self.open.contains(&(left, right)) {
            return true;
        }
        if self.open.len() >= PAIRS_MAX {
            return false;
        }
        self.open.push((left, right));
        self.said(&Said::by(&self.left[left]), &Said::by(&self.right[right]))
    }

    fn said(&mut self, left: &Said, right: &Said) -> bool {
        left.words == right.words && left.ids.iter().zip(&right.ids).all(|(left, right)| self.id(*left, *right))
    }
}

/// The conditions of rules, without the schemas that they refer to, and these schemas in order.
#[derive(Default)]
struct Said {
    words: String,
    ids: Vec<SubschemaId>,
}

impl Said {
    fn by(rules: &Subschema) -> Self {
        let mut said = Self::default();
        said.add((rules.is_false, rules.allowed), []);
        said.scalars(rules);
        rules.array.iter().for_each(|array| said.array(array));
        rules.object.iter().for_each(|object| said.object(object));
        rules.applied.iter().for_each(|applied| said.applied(applied));
        said.add("unevaluatedItems", rules.unevaluated_items);
        said.add("unevaluatedProperties", rules.unevaluated_properties);
        said
    }

    /// Adds a condition, with the schemas that it refers to.
    fn add(&mut self, what: impl Debug, ids: impl IntoIterator<Item = SubschemaId>) {
        let before = self.ids.len();
        self.ids.extend(ids);
        self.words += &format!("{what:?} {} ", self.ids.len() - before);
    }

    /// The conditions on numbers, strings and listed values.
    fn scalars(&mut self, rules: &Subschema) {
        let values = rules.values.as_ref();
        let values =
            values.map(|values| (&values.texts, values.others.iter().map(|other| other.text()).collect::<Vec<_>>()));
        let number = rules.number.as_ref().map(|number| {
            let bounds: Vec<_> = number.bounds.iter().map(|bound| (bound.side, &bound.limit.text)).collect();
            (bounds, number.multiple_of.as_ref().map(|divisor| &divisor.text))
        });
        let text = rules.text.as_ref();
        let text = text.map(|text| (text.length, text.pattern.as_ref().map(|pattern| &pattern.text), text.format));
        self.add((values, number, text), []);
    }

    fn array(&mut self, array: &ArrayRules) {
        self.add((array.count, array.unique, "prefix"), array.prefix.iter().copied());
        self.add("rest", array.rest);
        if let Some(ContainsRule { rules, count, .. }) = &array.contains {
            self.add(("contains", count), [*rules]);
        }
    }

    fn object(&mut self, object: &ObjectRules) {
        self.add(object.count, []);
        for member in &object.members {
            self.add((&member.name, member.is_required), member.rules);
        }
        for (pattern, id) in &object.patterns {
            self.add(("pattern", &pattern.text), [*id]);
        }
        self.add("additional", object.additional);
        self.add("names", object.names);
        for dependent in &object.dependents {
            match &dependent.needs {
                DependentNeeds::Members(members) => self.add((dependent.member, members), []),
                DependentNeeds::Subschema(id) => self.add(dependent.member, [*id]),
            }
        }
    }

    fn applied(&mut self, applied: &Applicator) {
        match applied {
            Applicator::Ref(id) => self.add("ref", [*id]),
            Applicator::Not(id) => self.add("not", [*id]),
            Applicator::All(list) => self.add("all", list.iter().copied()),
            Applicator::Any(list) => self.add("any", list.iter().copied()),
            Applicator::One(list) => self.add("one", list.iter().copied()),
            Applicator::If { condition, then, otherwise } => {
                self.add("if", [*condition]);
                self.add("then", *then);
                self.add("else", *otherwise);
            }
            Applicator::DynamicRef(dynamic) => {
                let candidates = dynamic.candidates.iter().map(|(_, id)| *id);
                self.add("dynamic", [dynamic.otherwise].into_iter().chain(candidates));
            }
        }
    }
}
