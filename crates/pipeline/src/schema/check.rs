//! Holds a payload against compiled rules. The first time only whether it is right is asked, and the first fault ends it; of what is
//! wrong everything is looked for in a second time.

mod array;
mod object;
mod same;
mod scalar;

use event::limits::{SCHEMA_DEPTH_MAX, SCHEMA_ERRORS_MAX, SCHEMA_STEPS_MAX};

use super::compile::Compiled;
use super::error::{Violation, Violations};
use super::tree::{Id, ResourceId, Rules};
use crate::values::{self, Kind, View};

/// Characters of a value that an error shows.
const SHOWN_MAX: usize = 60;

pub(super) fn check(compiled: &Compiled, view: View<'_>) -> Result<(), Violations> {
    let mut quick = Check::new(compiled, view, false);
    match quick.apply(Id(0), 0) {
        Ok(()) => Ok(()),
        Err(Stop::Failed) => Err(gather(compiled, view)),
        Err(Stop::TooManySteps) => Err(too_much(view, "steps")),
        Err(Stop::TooDeep) => Err(too_much(view, "schemas within each other")),
    }
}

/// Whether some rules take a value.
pub(super) fn takes(compiled: &Compiled, id: Id, value: &str) -> bool {
    let nodes = values::read(value);
    Check::new(compiled, View { text: value, nodes: &nodes }, false).apply(id, 0).is_ok()
}

/// Everything that is wrong, up to a limit.
fn gather(compiled: &Compiled, view: View<'_>) -> Violations {
    let mut thorough = Check::new(compiled, view, true);
    let stopped = thorough.apply(Id(0), 0);
    let mut violations = Violations { list: thorough.violations, is_cut: stopped.is_err() };
    if violations.list.is_empty() {
        // To look for all of it takes more than to find one.
        let Violations { list, is_cut } = too_much(view, "steps");
        violations = Violations { list, is_cut };
    }
    violations
}

fn too_much(view: View<'_>, what: &str) -> Violations {
    let expected = format!("a value that the schema can be checked on; this one takes too many {what}");
    let (pointer, schema_pointer) = (String::new(), String::new());
    Violations { list: vec![Violation { pointer, schema_pointer, expected, found: shown(view, 0) }], is_cut: false }
}

/// Why a check doesn't go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// Something is wrong, or as much as is listed.
    Failed,
    /// It would take too many steps.
    TooManySteps,
    /// Too many schemas would be followed within each other.
    TooDeep,
}

type Checked<T = ()> = Result<T, Stop>;

struct Check<'s, 'd> {
    compiled: &'s Compiled,
    view: View<'d>,
    /// Whether all that is wrong is gathered.
    thorough: bool,
    violations: Vec<Violation>,
    steps: usize,
    depth: usize,
    /// The named schemas that are being followed, the outermost first, where references depend on that.
    scope: Vec<ResourceId>,
    /// Whether somebody wants to know which members and elements were evaluated.
    marking: bool,
    /// Those of the value that is being looked at.
    marks: Vec<usize>,
}

impl<'s, 'd> Check<'s, 'd> {
    fn new(compiled: &'s Compiled, view: View<'d>, thorough: bool) -> Self {
        Self {
            compiled,
            view,
            thorough,
            violations: Vec::new(),
            steps: 0,
            depth: 0,
            scope: Vec::new(),
            marking: false,
            marks: Vec::new(),
        }
    }

    /// Holds a value against rules.
    fn apply(&mut self, id: Id, at: usize) -> Checked {
        let rules = &self.compiled.rules[id.0];
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

    fn enter(&mut self, rules: &Rules) -> bool {
        let is_new = self.compiled.is_dynamic && self.scope.last() != Some(&rules.resource);
        if is_new {
            self.scope.push(rules.resource);
        }
        is_new
    }

    fn keywords(&mut self, rules: &'s Rules, at: usize) -> Checked {
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
            Kind::Number => rules.number.as_ref().map_or(Ok(()), |number| self.number(rules, number, at))?,
            Kind::Text => rules.text.as_ref().map_or(Ok(()), |text| self.text(rules, text, at))?,
            Kind::Array => rules.array.as_ref().map_or(Ok(()), |array| self.array(rules, array, at))?,
            Kind::Object => rules.object.as_ref().map_or(Ok(()), |object| self.object(rules, object, at))?,
            Kind::Null | Kind::Boolean => {}
        }
        rules.applied.iter().try_for_each(|applied| self.applied(rules, applied, at))
    }

    /// Holds a member or an element against rules. Whether it is evaluated is for the value that it is in.
    fn descend(&mut self, id: Id, at: usize) -> Checked {
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

    /// Whether rules hold, without telling of it. Where they don't, they have evaluated nothing.
    fn holds(&mut self, id: Id, at: usize) -> Checked<bool> {
        self.quietly(|check| check.apply(id, at))
    }

    fn child_holds(&mut self, id: Id, at: usize) -> Checked<bool> {
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
        self.steps = self.steps.saturating_add(steps);
        if self.steps > SCHEMA_STEPS_MAX { Err(Stop::TooManySteps) } else { Ok(()) }
    }

    /// Something is wrong.
    fn fail(&mut self, rules: &Rules, keyword: &str, at: usize, expected: impl FnOnce() -> String) -> Checked {
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

    fn unevaluated(&mut self, rules: &'s Rules, at: usize, first_mark: usize) -> Checked {
        let (id, children): (Id, Vec<usize>) =
            match (self.view.kind(at), rules.unevaluated_items, rules.unevaluated_properties) {
                (Kind::Array, Some(id), _) => (id, self.view.children(at).collect()),
                (Kind::Object, _, Some(id)) => (id, self.view.members(at).map(|(_, value)| value).collect()),
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
fn shown(view: View<'_>, at: usize) -> String {
    let raw = view.raw(at);
    match raw.char_indices().nth(SHOWN_MAX) {
        Some((cut, _)) => format!("{}…", &raw[..cut]),
        None => raw.to_owned(),
    }
}
