//! Finds pointers that certainly have no value in any payload: for warnings about pointers in a configuration.
//!
//! It begins with the values that a schema allows, and follows the steps of the transform. What isn't certain counts as possible.

mod closed;

use std::collections::BTreeMap;

use limits::SCHEMA_CHECKS_MAX;

use closed::{Fault, Look, Why};
use did_you_mean::nearest;
use json::JsonPointer;
use json::pointer::PointerStep;
use schema::Schema;
use schema::SubschemaId;

/// The possible values of a payload, by pointer.
#[derive(Clone, Debug)]
pub struct Reachability<'s> {
    schema: &'s Schema,
    root: Place,
    /// Rules that may still be followed: a schema may be designed to cost time.
    left: usize,
}

/// The possible values at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// Values that all these rules accept, or none.
    Said(Vec<SubschemaId>),
    /// Any value.
    Open,
    /// No value.
    Nothing,
    /// The values of `rest`, except for some members of it.
    Partly { rest: Box<Place>, members: BTreeMap<String, Place> },
}

/// A place that no payload can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreachable {
    /// The reason, as a message.
    pub why: String,
    /// The pointer that the author probably intended.
    pub nearest: Option<JsonPointer>,
}

impl Unreachable {
    /// The suggested pointer in the syntax of an expression, if all its names are valid there without quotes.
    #[must_use]
    pub fn nearest_in_expression(&self) -> Option<String> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_/".contains(&byte);
        let text = self.nearest.as_ref()?.as_str();
        let plain = text.bytes().all(is_plain).then(|| text.strip_prefix('/').unwrap_or(text).replace('/', "."));
        Some(plain.unwrap_or_else(|| text.to_owned()))
    }
}

impl<'s> Reachability<'s> {
    /// The payloads that a schema accepts.
    #[must_use]
    pub fn new(schema: &'s Schema) -> Self {
        Self { schema, root: Place::Said(vec![SubschemaId::ROOT]), left: SCHEMA_CHECKS_MAX }
    }

    /// Checks a pointer.
    ///
    /// # Errors
    /// [`Unreachable`] if it certainly never has a value.
    pub fn find(&mut self, pointer: &JsonPointer) -> Result<(), Unreachable> {
        let steps = pointer.steps();
        let mut look = Look::new(self.schema.compiled(), self.left);
        let fault = fault(&mut look, &self.root, steps, 0);
        // If the search was abandoned nothing is certain, regardless of what was found before.
        let is_whole = !look.is_spent();
        self.left = look.left();
        match fault.filter(|_| is_whole) {
            Some(fault) => Err(unreachable(steps, &fault)),
            None => Ok(()),
        }
    }

    /// The place may have any value from now on.
    pub(crate) fn open(&mut self, pointer: &JsonPointer) {
        self.set(pointer.steps(), Place::Open);
    }

    /// The place has no value from now on; the whole payload can't be removed.
    pub(crate) fn remove(&mut self, pointer: &JsonPointer) {
        if pointer.steps().is_empty() {
            return;
        }
        self.set(pointer.steps(), Place::Nothing);
    }

    /// The value may be removed: elements after it then move.
    pub(crate) fn may_go(&mut self, pointer: &JsonPointer) {
        let steps = pointer.steps();
        for upto in (0..steps.len()).filter(|upto| may_be_index(&steps[*upto])) {
            let place = self.place(&steps[..upto]);
            if may_be_array(&mut Look::new(self.schema.compiled(), self.left), &place) {
                return self.set(&steps[..upto], Place::Open);
            }
        }
    }

    /// The value at `from` is also at `to` from now on; if there was none, `to` keeps its value.
    pub(crate) fn copy(&mut self, from: &JsonPointer, to: &JsonPointer) {
        let (moved, kept) = (self.place(from.steps()), self.place(to.steps()));
        let place = match (moved, kept) {
            (Place::Nothing, kept) => kept,
            (moved, Place::Nothing) => moved,
            _ => Place::Open,
        };
        self.set(to.steps(), place);
    }

    /// Only these places have values from now on.
    pub(crate) fn keep(&mut self, pointers: &[JsonPointer]) {
        if pointers.iter().any(|pointer| pointer.steps().is_empty()) {
            return;
        }
        let before = self.clone();
        self.root = Place::Nothing;
        for pointer in pointers {
            let steps = pointer.steps();
            // Elements that are kept move to the front.
            let upto = steps.iter().position(may_be_index).unwrap_or(steps.len());
            let place = if upto < steps.len() { Place::Open } else { before.place(steps) };
            self.set(&steps[..upto], place);
        }
    }

    fn set(&mut self, steps: &[PointerStep], place: Place) {
        let mut root = std::mem::replace(&mut self.root, Place::Open);
        let mut look = Look::new(self.schema.compiled(), self.left);
        put(&mut look, &mut root, steps, place);
        // If the search was abandoned, nothing is known.
        self.root = if look.is_spent() { Place::Open } else { root };
        self.left = look.left();
    }

    /// The possible values of a place: any, if they aren't certain.
    fn place(&self, steps: &[PointerStep]) -> Place {
        let mut look = Look::new(self.schema.compiled(), self.left);
        let place = at(&mut look, &self.root, steps);
        if look.is_spent() { Place::Open } else { place }
    }
}

/// Whether a step may be the index of an array.
fn may_be_index(step: &PointerStep) -> bool {
    step.index.is_some() || step.name == "-"
}

fn may_be_array(look: &mut Look<'_>, place: &Place) -> bool {
    match place {
        Place::Open => true,
        Place::Nothing => false,
        Place::Said(ids) => look.may_be_array(ids),
        Place::Partly { rest, .. } => may_be_array(look, rest),
    }
}

/// Why there is certainly no value at the end of these steps, if so. `at` is the number of steps to the place.
fn fault(look: &mut Look<'_>, place: &Place, steps: &[PointerStep], at: usize) -> Option<Fault> {
    match place {
        Place::Open => None,
        Place::Nothing => Some(Fault { at: at.saturating_sub(1), why: Why::Gone, known: Vec::new() }),
        Place::Said(ids) => look.fault(ids, steps, at),
        Place::Partly { rest, members } => {
            let step = steps.first()?;
            if let Some(place) = members.get(&step.name) {
                return fault(look, place, &steps[1..], at + 1);
            }
            let found = match &**rest {
                Place::Nothing => Fault { at, why: Why::Gone, known: Vec::new() },
                rest => fault(look, rest, steps, at)?,
            };
            let made = members.iter().filter(|(_, place)| **place != Place::Nothing).map(|(name, _)| name.clone());
            let known = if found.at == at { found.known.into_iter().chain(made).collect() } else { found.known };
            Some(Fault { known, ..found })
        }
    }
}

/// The possible values at the end of these steps.
fn at(look: &mut Look<'_>, place: &Place, steps: &[PointerStep]) -> Place {
    let Some(step) = steps.first() else { return place.clone() };
    match place {
        Place::Open | Place::Nothing => place.clone(),
        Place::Partly { rest, members } => match members.get(&step.name) {
            Some(place) => at(look, place, &steps[1..]),
            None => at(look, rest, steps),
        },
        Place::Said(ids) => match look.below(ids, step) {
            _ if look.fault(ids, steps, 0).is_some() => Place::Nothing,
            Some(below) => at(look, &Place::Said(below), &steps[1..]),
            None => Place::Open,
        },
    }
}

/// Sets the place at the end of these steps. If they may go into an array, whose elements move, the whole array may have any value.
fn put(look: &mut Look<'_>, place: &mut Place, steps: &[PointerStep], new: Place) {
    let Some((step, rest_of_steps)) = steps.split_first() else {
        *place = new;
        return;
    };
    if *place == Place::Open || may_be_index(step) && may_be_array(look, place) {
        *place = Place::Open;
        return;
    }
    if !matches!(place, Place::Partly { .. }) {
        let rest = Box::new(std::mem::replace(place, Place::Nothing));
        *place = Place::Partly { rest, members: BTreeMap::new() };
    }
    if let Place::Partly { rest, members } = place {
        let below = members.entry(step.name.clone()).or_insert_with(|| at(look, rest, std::slice::from_ref(step)));
        put(look, below, rest_of_steps, new);
    }
}

fn unreachable(steps: &[PointerStep], fault: &Fault) -> Unreachable {
    let upto = |count: usize| {
        let below = |pointer: JsonPointer, step: &PointerStep| pointer.member(&step.name).unwrap_or(pointer);
        steps[..count].iter().fold(JsonPointer::WHOLE, below)
    };
    let outer = upto(fault.at);
    let shown = |pointer: &JsonPointer| {
        if pointer.as_str().is_empty() { "the payload".to_owned() } else { format!("`{pointer}`") }
    };
    let place = upto((fault.at + 1).min(steps.len()));
    let why = match &fault.why {
        Why::Gone => format!("an earlier step removes {}", shown(&place)),
        Why::Kind(kinds) => format!("by the schema {} is {kinds}: it has no members or elements", shown(&outer)),
        Why::Closed => format!("by the schema {} never has {}", shown(&outer), shown(&place)),
    };
    let name = steps.get(fault.at).map_or("", |step| step.name.as_str());
    let near = nearest(name, fault.known.iter().map(String::as_str));
    let rest = &steps[(fault.at + 1).min(steps.len())..];
    let nearest = near.and_then(|near| {
        let pointer = outer.member(near).ok()?;
        rest.iter().try_fold(pointer, |pointer, step| pointer.member(&step.name).ok())
    });
    Unreachable { why, nearest }
}
