//! The ids of the events that `explode` makes of one.

use event::{EventId, KeyedIds, TypeName};
use pipeline::pointer::JsonPointer;
use pipeline::transform::{Element, Part};

use crate::ingest::record_builder::id_at;
use crate::problem::Problem;
use crate::types::type_registry::TypeRules;

/// How the events of one type get their ids from what clients sent.
pub(crate) struct PartIds<'r> {
    pointer: Option<&'r JsonPointer>,
    /// The steps of `explode` in whose elements the ids are.
    steps: &'r [usize],
}

/// The steps of `explode` in whose elements the ids of a type's events are.
pub(crate) fn id_steps(rules: &TypeRules) -> Vec<usize> {
    let of_steps = rules.id.as_ref().zip(rules.steps.as_ref());
    of_steps.map(|(at, steps)| steps.transform().elements_with(at)).unwrap_or_default()
}

/// An id that a client gave.
pub(crate) struct GivenId<'p> {
    pub(crate) id: EventId,
    /// The element that has the id: a repeated event is compared by its bytes. `None` if the id is that of the whole event: then all
    /// bytes of the whole are compared.
    pub(crate) element: Option<&'p str>,
}

impl<'r> PartIds<'r> {
    /// By these rules, of which the steps are [`id_steps`].
    pub(crate) fn new(rules: &'r TypeRules, steps: &'r [usize]) -> Self {
        Self { pointer: rules.id.as_ref(), steps }
    }

    /// The id that a client gave one of the events, with this payload, of a source and a type. An id within an element is the event's own,
    /// wherever the element is in its array. From the id of the whole event those of its parts are derived.
    ///
    /// # Errors
    /// The value at the pointer cannot be an id.
    pub(crate) fn given<'p>(
        &self,
        of: (&str, &TypeName),
        part: &'p Part,
        payload: &str,
    ) -> Result<Option<GivenId<'p>>, Problem> {
        let Some(id) = id_at(self.pointer, of, payload)? else { return Ok(None) };
        let derived = |number| KeyedIds::of_event(id).id(number);
        Ok(Some(match part.element(self.steps) {
            Some(Element { text, number }) => GivenId { id: number.map_or(id, derived), element: Some(text) },
            None => GivenId { id: derived(part.number), element: None },
        }))
    }
}
