//! What texts the stores of a type can take, and whether others are repaired.

use std::borrow::Cow;

use event::TypeName;
use json::store_compat;
use json::store_compat::Incompatibilities;

use crate::problem::Problem;

/// What is looked for in the payloads of a type, as they are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextRule {
    /// What isn't to be in them.
    pub flaws: Incompatibilities,
    /// Whether it is repaired; otherwise such payloads are rejected.
    pub repair: bool,
}

impl TextRule {
    /// A payload as the stores of a type of this name can take it.
    ///
    /// # Errors
    /// They can't, and it isn't to be repaired.
    pub(crate) fn storable<'p>(self, name: &TypeName, payload: &'p str) -> Result<Cow<'p, str>, Problem> {
        let Self { flaws, repair } = self;
        if flaws.is_none() {
            return Ok(Cow::Borrowed(payload));
        }
        if repair {
            return Ok(store_compat::repair(payload, flaws).map_or(Cow::Borrowed(payload), Cow::Owned));
        }
        match store_compat::find(payload, flaws) {
            Some(flaw) => Err(Problem::of_flaw(name, flaw)),
            None => Ok(Cow::Borrowed(payload)),
        }
    }
}
