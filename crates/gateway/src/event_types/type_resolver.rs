//! Types by rule: the type of an event by conditions on its payload, if neither path, header nor pointer names it.

use event::TypeName;
use expression::Expression;
use expression::first_match::FirstMatch;
use limits::EXPRESSION_STEPS_MAX;

use super::cost::{CostBudget, OverBudget};

/// Rules in their order: each has a condition and a type. An event gets the type of the first rule whose condition is true.
#[derive(Clone, Debug, Default)]
pub struct TypeResolver {
    choice: FirstMatch,
    types: Vec<TypeName>,
    /// The texts of the conditions.
    written: Vec<String>,
}

impl PartialEq for TypeResolver {
    fn eq(&self, other: &Self) -> bool {
        (&self.types, &self.written) == (&other.types, &other.written)
    }
}

impl TypeResolver {
    /// These rules.
    #[must_use]
    pub fn new(rules: impl IntoIterator<Item = (TypeName, Expression)>) -> Self {
        let (types, conditions): (Vec<_>, Vec<_>) = rules.into_iter().unzip();
        let written = conditions.iter().map(ToString::to_string).collect();
        Self { choice: FirstMatch::new(conditions), types, written }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.types.is_empty()
    }

    /// The type of an event with this payload, which was checked; none if no rule applies.
    ///
    /// # Errors
    /// It takes more work than the budget allows.
    pub(crate) fn type_of(&self, payload: &str, work: &mut CostBudget) -> Result<Option<&TypeName>, OverBudget> {
        if self.is_empty() {
            return Ok(None);
        }
        work.charge_scan(payload.len())?;
        let first = match work.left() {
            None => self.choice.first(payload),
            Some(_) => work.evaluate(EXPRESSION_STEPS_MAX, |steps| self.choice.first_within(payload, steps))?,
        };
        Ok(first.and_then(|number| self.types.get(number)))
    }
}
