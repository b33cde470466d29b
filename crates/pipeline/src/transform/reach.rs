//! Steps that look at what can't be there: by the schema, or since an earlier step took it away.

use super::Transform;
use super::change::Change;
use super::mistake::{Mistake, Spot};
use super::run::ERRORS;
use super::step::{OnError, Operation, Source, Step};
use crate::expression::Expression;
use crate::pointer::JsonPointer;
use crate::schema::{Reach, Unreachable};

impl Transform {
    /// Tells which steps look at places that no payload can have, and follows what the steps do: in the end `reach` is about
    /// the events that are stored.
    #[must_use]
    pub fn unreachable(&self, reach: &mut Reach<'_>) -> Vec<Mistake> {
        let mut found = Vec::new();
        for step in &self.steps {
            let mut check = Check { step, reach, found: &mut found };
            check.looks();
            step.follow(reach);
        }
        found
    }
}

struct Check<'c, 's> {
    step: &'c Step,
    reach: &'c mut Reach<'s>,
    found: &'c mut Vec<Mistake>,
}

impl Check<'_, '_> {
    /// Looks where the step does.
    fn looks(&mut self) {
        let step = self.step;
        if let Some(when) = &step.when {
            self.expression("when", when);
        }
        match &step.operation {
            Operation::Set { value: Source::Computed(expression), .. } => self.expression("to", expression),
            Operation::Set { .. } => {}
            Operation::Filter(expression) => self.expression(step.name, expression),
            Operation::Rename { at, .. }
            | Operation::Move { at, .. }
            | Operation::Copy { at, .. }
            | Operation::Extract { at, .. } => self.pointer(Spot::Value(step.name.to_owned()), at),
            Operation::Explode(explode) => self.pointer(Spot::Value(step.name.to_owned()), &explode.at),
            Operation::Drop(at) | Operation::Keep(at) | Operation::Change { at, .. } | Operation::Dedupe { at, .. } => {
                self.pointers(step.name, at);
            }
            Operation::Sample(sample) => self.pointers("by", sample.by()),
        }
    }

    fn pointers(&mut self, key: &str, pointers: &[JsonPointer]) {
        for (number, at) in pointers.iter().enumerate() {
            self.pointer(Spot::Element(key.to_owned(), number), at);
        }
    }

    fn pointer(&mut self, at: Spot, pointer: &JsonPointer) {
        self.place(at, pointer, |unreachable| unreachable.nearest.as_ref().map(ToString::to_string));
    }

    fn expression(&mut self, key: &str, expression: &Expression) {
        for (place, pointer) in expression.places() {
            self.place(Spot::Within(key.to_owned(), place), &pointer, Unreachable::nearest_in_expression);
        }
    }

    fn place(&mut self, at: Spot, pointer: &JsonPointer, nearest: impl Fn(&Unreachable) -> Option<String>) {
        if let Err(unreachable) = self.reach.find(pointer) {
            let help = nearest(&unreachable).map(|nearest| format!("did you mean `{nearest}`?"));
            self.found.push(Mistake { help, ..Mistake::new(self.step.number, at, unreachable.why) });
        }
    }
}

impl Step {
    /// What can stand where behind the step.
    fn follow(&self, reach: &mut Reach<'_>) {
        // Whether the step is done on every event that goes on.
        let is_always = self.when.is_none() && self.on_error == OnError::Refuse;
        if self.on_error == OnError::Mark
            && let Ok(errors) = ERRORS.parse()
        {
            reach.open(&errors);
        }
        match &self.operation {
            Operation::Set { at, .. } => reach.open(at),
            Operation::Rename { at, name } => {
                let parent = at.parent();
                if let Some(to) = parent.and_then(|parent| parent.member(name).ok()).filter(|to| to != at) {
                    relocate(reach, at, &to, is_always);
                }
            }
            Operation::Move { at, to } => relocate(reach, at, to, is_always),
            Operation::Copy { at, to } if is_always => reach.copy(at, to),
            Operation::Copy { to, .. } => reach.open(to),
            Operation::Drop(pointers) if is_always => pointers.iter().for_each(|at| reach.remove(at)),
            Operation::Keep(pointers) if is_always => reach.keep(pointers),
            Operation::Change { at, to: None, change } if change.keeps_places() => {}
            Operation::Change { to: Some(to), .. } => reach.open(to),
            Operation::Change { at, to: None, .. } => at.iter().for_each(|at| reach.open(at)),
            Operation::Extract { extract, .. } => extract.groups.iter().for_each(|(_, to)| reach.open(to)),
            Operation::Explode(explode) => {
                reach.may_go(&explode.at);
                reach.open(&explode.to);
            }
            Operation::Drop(pointers) | Operation::Keep(pointers) => pointers.iter().for_each(|at| reach.may_go(at)),
            Operation::Filter(_) | Operation::Sample(_) | Operation::Dedupe { .. } => {}
        }
    }
}

fn relocate(reach: &mut Reach<'_>, at: &JsonPointer, to: &JsonPointer, is_always: bool) {
    if !is_always {
        reach.may_go(at);
        return reach.open(to);
    }
    reach.copy(at, to);
    // What was put around the place, or into it, isn't taken away with it.
    if !at.is_within(to) && !to.is_within(at) {
        reach.remove(at);
    }
}

impl Change {
    /// Whether nothing can stand behind it where nothing could before: what it makes is the same with other texts, or has no parts.
    const fn keeps_places(&self) -> bool {
        match self {
            Self::Lower
            | Self::Upper
            | Self::Trim
            | Self::Join(_)
            | Self::Mask(_)
            | Self::Truncate(_)
            | Self::Replace(_)
            | Self::Redact(_)
            | Self::Hash(_)
            | Self::Coerce(_) => true,
            Self::Split(_) | Self::Parse(_) | Self::Flatten(_) | Self::Unflatten(_) | Self::Lookup(_) => false,
        }
    }
}
