//! The first of several conditions that is true on a document.

use limits::EXPRESSION_STEPS_MAX;

use crate::Expression;
use json::parts;

/// Conditions in their order.
#[derive(Clone, Debug, Default)]
pub struct FirstMatch {
    conditions: Vec<Condition>,
    /// Members of the document that any of them names.
    fields: Vec<String>,
}

/// It takes more steps than were given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped;

#[derive(Clone, Debug)]
struct Condition {
    expression: Expression,
    /// For each member that it names, the member's number among those of all.
    fields: Vec<usize>,
}

impl FirstMatch {
    /// Evaluates the first of these.
    #[must_use]
    pub fn new(expressions: impl IntoIterator<Item = Expression>) -> Self {
        let mut choice = Self::default();
        for expression in expressions {
            let fields = expression.fields().iter().map(|name| choice.number_of(name)).collect();
            choice.conditions.push(Condition { expression, fields });
        }
        choice
    }

    fn number_of(&mut self, name: &String) -> usize {
        self.fields.iter().position(|known| known == name).unwrap_or_else(|| {
            self.fields.push(name.clone());
            self.fields.len() - 1
        })
    }

    /// The number of the first condition that is true on a document, which must have passed [`json::check`]. One that
    /// is neither true nor false isn't true. The document is read once for all of them, and together they take as many
    /// steps as one expression may ([`EXPRESSION_STEPS_MAX`]): conditions after that aren't true either.
    #[must_use]
    pub fn first(&self, json: &str) -> Option<usize> {
        self.evaluate(json, &mut { EXPRESSION_STEPS_MAX }).0
    }

    /// The same with fewer `steps`, which become the remaining ones.
    ///
    /// # Errors
    /// [`Stopped`] if they weren't enough: with more of them another condition may be the first.
    pub fn first_within(&self, json: &str, steps: &mut usize) -> Result<Option<usize>, Stopped> {
        match self.evaluate(json, steps) {
            (_, true) => Err(Stopped),
            (first, false) => Ok(first),
        }
    }

    /// The first that is true, and whether any was stopped.
    fn evaluate(&self, json: &str, steps: &mut usize) -> (Option<usize>, bool) {
        let found = parts::fields(json, &self.fields);
        let mut is_stopped = false;
        let first = self.conditions.iter().position(|Condition { expression, fields }| {
            let fields = fields.iter().map(|number| found[*number]).collect();
            let verdict = expression.holds_with(json, fields, steps);
            is_stopped |= verdict.is_err_and(|error| error.is_stopped());
            verdict.unwrap_or(false)
        });
        (first, is_stopped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(texts: &[&str]) -> FirstMatch {
        FirstMatch::new(texts.iter().map(|text| text.parse().unwrap()))
    }

    #[test]
    fn the_first_that_is_true_is_found() {
        let choice = choice(&["status >= 500", "has(status) && has(path)", "path != null", "payload == 7"]);
        for (json, found) in [
            (r#"{"status":503,"path":"/"}"#, Some(0)),
            (r#"{"status":200,"path":"/"}"#, Some(1)),
            (r#"{"path":"/"}"#, Some(2)),
            (r#"{"status":"x"}"#, None),
            ("7", Some(3)),
            ("[]", None),
        ] {
            assert_eq!(choice.first(json), found, "{json}");
        }
        assert_eq!(FirstMatch::default().first("{}"), None);
    }

    #[test]
    fn together_they_are_bounded() {
        let items = (0..2000).map(|number| number.to_string()).collect::<Vec<_>>().join(",");
        let document = format!(r#"{{"a":[{items}]}}"#);
        let costly = "a.exists(x, a.exists(y, x + y < 0))";
        assert_eq!(choice(&["true"]).first(&document), Some(0));
        let mut steps = 1000;
        assert_eq!(choice(&[costly, "true"]).first_within(&document, &mut steps), Err(Stopped));
        let mut steps = 1000;
        assert_eq!(choice(&["a == 1", "true"]).first_within(&document, &mut steps), Ok(Some(1)));
        assert!((1..1000).contains(&steps), "{steps} are left");
        assert_eq!(choice(&[costly, "size(a) == 2000"]).first(&document), None, "nothing is left for the second");
    }
}
