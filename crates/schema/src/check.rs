//! Validates a payload by compiled rules. The first pass only finds whether it is valid, and ends at the first violation; if there is one,
//! a second pass lists all violations.

mod applicators;
mod array;
mod closest;
mod object;
mod scalar;

use limits::{SCHEMA_DEPTH_MAX, SCHEMA_ERRORS_MAX, SCHEMA_STEPS_MAX};

use super::error::{ValidationError, Violation, Violations};
use super::ids::{ResourceId, SubschemaId};
use super::subschema::CompiledSchema;
use super::subschema::Subschema;
use json::{ValueIndex, ValueKind, ValueView};

/// Characters of a value that an error shows.
const SHOWN_MAX: usize = 60;

/// Subtracts the steps that it needs from the available ones.
pub(super) fn check(compiled: &CompiledSchema, view: ValueView<'_>, steps: &mut usize) -> Result<(), ValidationError> {
    let mut quick = Check::new(compiled, view, false, steps);
    match quick.apply_within(steps)? {
        Ok(()) => Ok(()),
        Err(Stop::Failed) => Err(ValidationError::Wrong(gather(compiled, view, steps)?)),
        Err(Stop::TooManySteps) => Err(ValidationError::Wrong(too_much(view, "steps"))),
        Err(Stop::TooDeep) => Err(ValidationError::Wrong(too_much(view, "nested schemas"))),
    }
}

impl CompiledSchema {
    /// Whether one of its subschemas accepts a value, which must have passed [`json::check`].
    #[must_use]
    pub fn takes(&self, id: SubschemaId, value: &str) -> bool {
        Check::new(self, ValueIndex::default().read(value), false, &usize::MAX).apply(id, 0).is_ok()
    }
}

/// All violations, up to a limit.
fn gather(compiled: &CompiledSchema, view: ValueView<'_>, steps: &mut usize) -> Result<Violations, ValidationError> {
    let mut thorough = Check::new(compiled, view, true, steps);
    let stopped = thorough.apply_within(steps)?;
    let mut violations = Violations { list: thorough.violations, is_cut: stopped.is_err() };
    if violations.list.is_empty() {
        // To find all violations takes more steps than to find one.
        violations = too_much(view, "steps");
    }
    Ok(violations)
}

/// The violation for a value on which the schema can't be checked.
pub(super) fn too_much(view: ValueView<'_>, what: &str) -> Violations {
    let expected = format!("a smaller value: the check of this one takes too many {what}");
    let (pointer, schema_pointer) = (String::new(), String::new());
    Violations { list: vec![Violation { pointer, schema_pointer, expected, found: shown(view, 0) }], is_cut: false }
}

/// Why a check stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The value is invalid, or the list of violations is full.
    Failed,
    /// It would take too many steps.
    TooManySteps,
    /// The followed schemas are nested too deeply.
    TooDeep,
}

type Checked<T = ()> = Result<T, Stop>;

struct Check<'s, 'd> {
    compiled: &'s CompiledSchema,
    view: ValueView<'d>,
    /// Whether all violations are listed.
    thorough: bool,
    violations: Vec<Violation>,
    /// Steps that are left.
    left: usize,
    /// Steps into schemas that are further from the value than others.
    aside: usize,
    depth: usize,
    /// The named schemas that are being followed, the outermost first, if references depend on that.
    scope: Vec<ResourceId>,
    /// Whether a keyword needs to know which members and elements were evaluated.
    marking: bool,
    /// The evaluated ones of the current value.
    marks: Vec<usize>,
}

impl<'s, 'd> Check<'s, 'd> {
    fn new(compiled: &'s CompiledSchema, view: ValueView<'d>, thorough: bool, steps: &usize) -> Self {
        Self {
            compiled,
            view,
            thorough,
            violations: Vec::new(),
            left: SCHEMA_STEPS_MAX.min(*steps),
            aside: 0,
            depth: 0,
            scope: Vec::new(),
            marking: false,
            marks: Vec::new(),
        }
    }

    /// Validates the document by the schema, and subtracts the used steps from `steps`.
    ///
    /// # Errors
    /// There were fewer than a check may use, and they didn't suffice.
    fn apply_within(&mut self, steps: &mut usize) -> Result<Checked, ValidationError> {
        let most = self.left;
        let checked = self.apply(SubschemaId::ROOT, 0);
        *steps -= most - self.left;
        if checked == Err(Stop::TooManySteps) && most < SCHEMA_STEPS_MAX {
            Err(ValidationError::OutOfSteps)
        } else {
            Ok(checked)
        }
    }

    /// Validates a value by rules.
    fn apply(&mut self, id: SubschemaId, at: usize) -> Checked {
        let rules = &self.compiled[id];
        self.spend(1)?;
        if self.depth >= SCHEMA_DEPTH_MAX {
            return Err(Stop::TooDeep);
        }
        self.depth += 1;
        let entered = self.enter(rules);
        let outer = self.marking;
        let evaluates = rules.unevaluated_items.is_some() || rules.unevaluated_properties.is_some();
        self.marking |= evaluates;
        let first_mark = self.marks.len();
        let result = self
            .keywords(rules, at)
            .and_then(|()| if evaluates { self.unevaluated(rules, at, first_mark) } else { Ok(()) });
        self.marking = outer;
        if entered {
            self.scope.pop();
        }
        self.depth -= 1;
        result
    }

    fn enter(&mut self, rules: &Subschema) -> bool {
        let is_new = self.compiled.is_dynamic && self.scope.last() != Some(&rules.resource);
        if is_new {
            self.scope.push(rules.resource);
        }
        is_new
    }

    fn keywords(&mut self, rules: &'s Subschema, at: usize) -> Checked {
        if rules.is_false {
            return self.fail(rules, "", at, || "no value here".to_owned());
        }
        let kind = self.view.kind(at);
        if !rules.allowed.takes_all() {
            self.kind(rules, kind, at)?;
        }
        if let Some(values) = &rules.values {
            self.values(rules, values, kind, at)?;
        }
        match kind {
            ValueKind::Number => rules.number.as_ref().map_or(Ok(()), |number| self.number(rules, number, at))?,
            ValueKind::Text => rules.text.as_ref().map_or(Ok(()), |text| self.text(rules, text, at))?,
            ValueKind::Array => rules.array.as_ref().map_or(Ok(()), |array| self.array(rules, array, at))?,
            ValueKind::Object => rules.object.as_ref().map_or(Ok(()), |object| self.object(rules, object, at))?,
            ValueKind::Null | ValueKind::Boolean => {}
        }
        rules.applied.iter().try_for_each(|applied| self.applied(rules, applied, at))
    }

    /// Validates a member or an element by rules. Whether it is evaluated is noted for the value that contains it.
    fn descend(&mut self, id: SubschemaId, at: usize) -> Checked {
        let (marking, first_mark) = (std::mem::replace(&mut self.marking, false), self.marks.len());
        let result = self.apply(id, at);
        self.marks.truncate(first_mark);
        self.marking = marking;
        result
    }

    fn mark(&mut self, at: usize) {
        if self.marking {
            self.marks.push(at);
        }
    }

    /// Whether rules hold, without listing violations. If they don't, they have evaluated nothing.
    fn holds(&mut self, id: SubschemaId, at: usize) -> Checked<bool> {
        self.quietly(|check| check.apply(id, at))
    }

    fn child_holds(&mut self, id: SubschemaId, at: usize) -> Checked<bool> {
        self.quietly(|check| check.descend(id, at))
    }

    fn quietly(&mut self, look: impl FnOnce(&mut Self) -> Checked) -> Checked<bool> {
        let (thorough, first_mark) = (std::mem::replace(&mut self.thorough, false), self.marks.len());
        let result = look(self);
        self.thorough = thorough;
        match result {
            Ok(()) => Ok(true),
            Err(Stop::Failed) => {
                self.marks.truncate(first_mark);
                Ok(false)
            }
            Err(stop) => Err(stop),
        }
    }

    fn spend(&mut self, steps: usize) -> Checked {
        let left = self.left.checked_sub(steps);
        self.left = left.unwrap_or(0);
        left.map_or(Err(Stop::TooManySteps), |_| Ok(()))
    }

    /// The value is invalid.
    fn fail(&mut self, rules: &Subschema, keyword: &str, at: usize, expected: impl FnOnce() -> String) -> Checked {
        if !self.thorough {
            return Err(Stop::Failed);
        }
        if self.violations.len() >= SCHEMA_ERRORS_MAX {
            return Err(Stop::Failed);
        }
        let place = &rules.location;
        let schema_pointer = if keyword.is_empty() { place.to_string() } else { format!("{place}/{keyword}") };
        let violation = Violation {
            pointer: self.view.pointer(at),
            schema_pointer,
            expected: expected(),
            found: shown(self.view, at),
        };
        self.violations.push(violation);
        Ok(())
    }

    /// Lists the violations that a part of the check has found separately.
    fn list_more(&mut self, violations: Vec<Violation>) -> Checked {
        let room = SCHEMA_ERRORS_MAX - self.violations.len();
        let is_cut = violations.len() > room;
        self.violations.extend(violations.into_iter().take(room));
        if is_cut { Err(Stop::Failed) } else { Ok(()) }
    }

    fn unevaluated(&mut self, rules: &'s Subschema, at: usize, first_mark: usize) -> Checked {
        let (id, children): (SubschemaId, Vec<usize>) =
            match (self.view.kind(at), rules.unevaluated_items, rules.unevaluated_properties) {
                (ValueKind::Array, Some(id), _) => (id, self.view.children(at).collect()),
                (ValueKind::Object, _, Some(id)) => (id, self.view.members(at).map(|(_, value)| value).collect()),
                _ => return Ok(()),
            };
        let mut evaluated = self.marks[first_mark..].to_vec();
        evaluated.sort_unstable();
        self.spend(children.len() + evaluated.len())?;
        for child in children {
            if evaluated.binary_search(&child).is_err() {
                self.descend(id, child)?;
                self.mark(child);
            }
        }
        Ok(())
    }
}

/// A value as an error shows it.
fn shown(view: ValueView<'_>, at: usize) -> String {
    let raw = view.raw(at);
    match raw.char_indices().nth(SHOWN_MAX) {
        Some((cut, _)) => format!("{}…", &raw[..cut]),
        None => raw.to_owned(),
    }
}
