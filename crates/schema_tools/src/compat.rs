//! Finds values that an older schema accepts and a newer one would reject. If the two schemas alone can't decide it, the result says so: an
//! empty result means that the newer schema accepts every such value.

mod array;
mod object;
mod scalar;

use std::collections::BTreeSet;
use std::fmt;

use limits::SCHEMA_COMPARISONS_MAX;

use crate::lookup;
use json::ValueKind;
use schema::CompiledSchema;
use schema::Schema;
use schema::{Applicator, EnumValues, Subschema, SubschemaId, TYPE_NAMES};

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Difference {
    /// The values that it is about: a JSON pointer in which `*` means any element or member.
    pub place: String,
    /// The description of the values.
    pub what: String,
    /// Whether it is certain that such values were accepted and would be rejected; otherwise it can't be decided.
    pub is_certain: bool,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.place.is_empty() { "the value" } else { &self.place };
        if self.is_certain {
            write!(f, "{place}: {} would be rejected", self.what)
        } else {
            write!(f, "{place}: can't be decided: {}", self.what)
        }
    }
}

/// The values that `old` accepts and `new` would reject, or might.
#[must_use]
pub fn differences(old: &Schema, new: &Schema) -> Vec<Difference> {
    let mut comparison = Comparison {
        old: old.compiled(),
        new: new.compiled(),
        seen: BTreeSet::new(),
        is_conditional: false,
        found: BTreeSet::new(),
    };
    comparison.compare(&[SubschemaId::ROOT], &[SubschemaId::ROOT], "");
    comparison.found.into_iter().collect()
}

struct Comparison<'s> {
    old: &'s CompiledSchema,
    new: &'s CompiledSchema,
    seen: BTreeSet<(Vec<SubschemaId>, Vec<SubschemaId>)>,
    /// The compared rules apply under conditions that aren't analysed.
    is_conditional: bool,
    found: BTreeSet<Difference>,
}

/// Rules that hold together.
type All<'s> = Vec<&'s Subschema>;

impl<'s> Comparison<'s> {
    /// Compares the values that all old rules accept with those that all new rules accept.
    fn compare(&mut self, old: &[SubschemaId], new: &[SubschemaId], place: &str) {
        let (old, mut new) = (together(self.old, old), together(self.new, new));
        // New rules that are also among the old ones need no comparison.
        new.retain(|id| !old.iter().any(|other| super::equivalence::ids((self.old, *other), (self.new, *id))));
        let key = (old.clone(), new.clone());
        if new.is_empty() || self.seen.contains(&key) {
            return;
        }
        if self.seen.len() >= SCHEMA_COMPARISONS_MAX {
            return self.unsure(place, "the schemas are too large to compare");
        }
        self.seen.insert(key);
        let olds: All<'s> = old.iter().map(|id| &self.old[*id]).collect();
        let news: All<'s> = new.iter().map(|id| &self.new[*id]).collect();
        if olds.iter().any(|rules| rules.is_false) {
            return;
        }
        if self.values_were_listed(&olds, &old, &new, place) {
            return;
        }
        if news.iter().any(|rules| rules.is_false) {
            return self.certain(place, "any value");
        }
        let outer = self.is_conditional;
        self.is_conditional |= olds.iter().any(|rules| has_choices(rules));
        self.kinds(&olds, &news, place);
        self.scalars(&olds, &news, place);
        if takes(&olds, ValueKind::Array) {
            self.arrays(&olds, &news, place);
        }
        if takes(&olds, ValueKind::Object) {
            self.objects(&olds, &news, place);
        }
        self.choices(&olds, &news, place);
        self.is_conditional = outer;
    }

    /// If the old rules list their values, each is tried.
    fn values_were_listed(&mut self, olds: &All<'s>, old: &[SubschemaId], new: &[SubschemaId], place: &str) -> bool {
        let texts = match olds.iter().find_map(|rules| rules.values.as_deref()) {
            Some(values) => texts_of(values),
            None if has_few(olds) => ["null", "true", "false"].map(str::to_owned).into(),
            None => return false,
        };
        for text in texts {
            let takes =
                |compiled: &CompiledSchema, ids: &[SubschemaId]| ids.iter().all(|id| compiled.takes(*id, &text));
            if takes(self.old, old) && !takes(self.new, new) {
                self.certain(place, &format!("the value {}", brief(&text)));
            }
        }
        true
    }

    fn kinds(&mut self, olds: &All<'s>, news: &All<'s>, place: &str) {
        let kinds = [
            ValueKind::Null,
            ValueKind::Boolean,
            ValueKind::Number,
            ValueKind::Text,
            ValueKind::Array,
            ValueKind::Object,
        ];
        for kind in kinds {
            if !takes(olds, kind) || takes(news, kind) {
                continue;
            }
            let whole_only = |rules: &All<'_>| !rules.iter().all(|rules| rules.allowed.takes(kind));
            match (kind, takes_integers(olds), takes_integers(news)) {
                (ValueKind::Number, true, true) if whole_only(olds) => {}
                (ValueKind::Number, _, true) => self.certain(place, "a number with a fraction"),
                _ => self.certain(place, &format!("a value of type {}", TYPE_NAMES[kind as usize])),
            }
        }
        let only_integers = |rules: &All<'_>| !takes(rules, ValueKind::Number) && takes_integers(rules);
        if only_integers(olds) && !takes(news, ValueKind::Number) && !takes_integers(news) {
            self.certain(place, "a value of type integer");
        }
    }

    /// Alternatives, and other rules that aren't a plain list of conditions.
    fn choices(&mut self, olds: &All<'s>, news: &All<'s>, place: &str) {
        for applied in news.iter().flat_map(|rules| &rules.applied) {
            let others = || olds.iter().flat_map(|rules| &rules.applied);
            let name = match applied {
                Applicator::Ref(_) | Applicator::All(_) => continue,
                Applicator::Any(branches) => {
                    let is_covered =
                        others().any(|other| matches!(other, Applicator::Any(olds) if self.is_covered(olds, branches)));
                    if is_covered {
                        continue;
                    }
                    "anyOf"
                }
                Applicator::One(_) => "oneOf",
                Applicator::Not(_) => "not",
                Applicator::If { .. } => "if",
                Applicator::DynamicRef(_) => "a dynamic reference",
            };
            if !others().any(|other| super::equivalence::applied((self.old, other), (self.new, applied))) {
                self.unsure(place, &format!("`{name}` is new, or has changed"));
            }
        }
        let unevaluated = |rules: &All<'s>| {
            rules.iter().any(|rules| rules.unevaluated_items.is_some() || rules.unevaluated_properties.is_some())
        };
        if unevaluated(news) && !super::equivalence::sets((self.old, olds), (self.new, news)) {
            self.unsure(
                place,
                "which values are unevaluated depends on the other keywords of the schema, and they have changed",
            );
        }
    }

    /// Whether one of the new alternatives covers each of the old ones.
    fn is_covered(&self, olds: &[SubschemaId], news: &[SubschemaId]) -> bool {
        let is_taken = |old: &SubschemaId| {
            news.iter().any(|new| {
                let mut inner = Comparison { seen: self.seen.clone(), found: BTreeSet::new(), ..*self };
                inner.compare(&[*old], &[*new], "");
                inner.found.is_empty()
            })
        };
        olds.len().saturating_mul(news.len()) <= 256 && olds.iter().all(is_taken)
    }

    fn certain(&mut self, place: &str, what: &str) {
        let is_certain = !self.is_conditional;
        let what = if is_certain { what.to_owned() } else { format!("whether {what} was accepted before") };
        self.found.insert(Difference { place: place.to_owned(), what, is_certain });
    }

    fn unsure(&mut self, place: &str, what: &str) {
        self.found.insert(Difference { place: place.to_owned(), what: what.to_owned(), is_certain: false });
    }
}

/// All rules that these rules apply, in order.
fn together(compiled: &CompiledSchema, ids: &[SubschemaId]) -> Vec<SubschemaId> {
    let mut all = lookup::together(compiled, ids, || true);
    // Rules without conditions need no comparison.
    all.retain(|id| !says_nothing(&compiled[*id]));
    all
}

fn takes(all: &All<'_>, kind: ValueKind) -> bool {
    all.iter().all(|rules| rules.allowed.takes(kind))
}

/// Whether only a few listed values are accepted.
fn has_few(all: &All<'_>) -> bool {
    let many = [ValueKind::Text, ValueKind::Array, ValueKind::Object];
    !takes_integers(all) && many.into_iter().all(|kind| !takes(all, kind))
}

fn takes_integers(all: &All<'_>) -> bool {
    all.iter().all(|rules| rules.allowed.takes(ValueKind::Number) || rules.allowed.takes_integers())
}

/// Whether the rules aren't a plain list of conditions.
fn has_choices(rules: &Subschema) -> bool {
    !rules.applied.iter().all(is_plain) || rules.unevaluated_items.is_some() || rules.unevaluated_properties.is_some()
}

fn is_plain(applied: &Applicator) -> bool {
    matches!(applied, Applicator::Ref(_) | Applicator::All(_))
}

/// Whether every value is accepted.
fn says_nothing(rules: &Subschema) -> bool {
    !rules.is_false
        && rules.allowed.takes_all()
        && rules.values.is_none()
        && rules.number.is_none()
        && rules.text.is_none()
        && rules.array.is_none()
        && rules.object.is_none()
        && !has_choices(rules)
}

/// All values of an `enum`, as JSON.
fn texts_of(values: &EnumValues) -> Vec<String> {
    let texts = values.texts.iter().map(|text| serde_json::Value::from(&**text).to_string());
    texts.chain(values.others.iter().map(|value| value.text().to_owned())).collect()
}

fn brief(text: &str) -> String {
    text.char_indices().nth(60).map_or_else(|| text.to_owned(), |(cut, _)| format!("{}…", &text[..cut]))
}
