//! Schemas that refer to each other without descending into the document: a cycle would never end, and too long a chain would use too
//! much of the stack.

use limits::SCHEMA_CHAIN_MAX;

use super::ids::SubschemaId;
use super::subschema::Subschema;

/// # Errors
/// A subschema of a cycle or of too long a chain, and the message.
pub(super) fn check(rules: &[Subschema]) -> Result<(), (SubschemaId, String)> {
    let mut walk = Walk { rules, heights: vec![Height::Unknown; rules.len()] };
    (0..rules.len()).try_for_each(|start| walk.from(SubschemaId(start)))
}

struct Walk<'r> {
    rules: &'r [Subschema],
    heights: Vec<Height>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Height {
    Unknown,
    /// It is being followed.
    Open,
    /// So many schemas follow each other from here.
    Known(usize),
}

impl Walk<'_> {
    /// Without recursion, because it searches for chains that are too long.
    fn from(&mut self, start: SubschemaId) -> Result<(), (SubschemaId, String)> {
        let mut stack = vec![start];
        while let Some(id) = stack.last().copied() {
            let next = self.rules[id.0].in_place(|_| true);
            if self.heights[id.0] == Height::Unknown {
                self.heights[id.0] = Height::Open;
                for other in &next {
                    match self.heights[other.0] {
                        Height::Unknown => stack.push(*other),
                        Height::Open => {
                            return Err((
                                *other,
                                "the schema refers to itself for the same value: remove the reference, or move it to a member or element".into(),
                            ));
                        }
                        Height::Known(_) => {}
                    }
                }
                continue;
            }
            stack.pop();
            if self.heights[id.0] == Height::Open {
                let below = next.iter().map(|other| match self.heights[other.0] {
                    Height::Known(height) => height,
                    _ => 0,
                });
                let height = 1 + below.max().unwrap_or(0);
                if height > SCHEMA_CHAIN_MAX {
                    let message =
                        format!("more than {SCHEMA_CHAIN_MAX} schemas refer to each other in a row: shorten the chain");
                    return Err((id, message));
                }
                self.heights[id.0] = Height::Known(height);
            }
        }
        Ok(())
    }
}
