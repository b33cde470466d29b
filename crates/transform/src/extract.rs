//! The groups of a pattern's match in a string, as members.

use super::document_run::{Failure, Run, failure};
use json::JsonPointer;
use json::text;
use pattern::Pattern;

/// A pattern, and where its groups go.
#[derive(Clone, Debug)]
pub(super) struct Extract {
    pub(super) pattern: Pattern,
    /// Groups by their number.
    pub(super) groups: Vec<(usize, JsonPointer)>,
}

impl Run<'_, '_> {
    pub(super) fn extract(&mut self, at: &JsonPointer, extract: &Extract) -> Result<(), Failure> {
        let Some(json) = self.value(at)? else { return Ok(()) };
        let Some(text) = text::read_string(json) else {
            return Err(Failure::at(at, format!("the value is {}, but should be a string", text::kind(json))));
        };
        let text = text.into_owned();
        let spent = self.budget.spend(extract.pattern.scout().scan(&text, 0, self.budget.left()).operations);
        spent.map_err(|detail| Failure::at(at, detail))?;
        let Some(found) = extract.pattern.regex().captures(&text) else {
            return Err(Failure::at(at, "the value doesn't match the pattern"));
        };
        for (group, to) in &extract.groups {
            let Some(part) = found.get(*group) else { continue };
            self.made.clear();
            text::write_string(part.as_str(), self.made);
            self.tree.put(to, self.made).map_err(|error| failure(to, &error))?;
        }
        Ok(())
    }
}
