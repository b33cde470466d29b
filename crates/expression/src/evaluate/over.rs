//! Macros over the elements of lists and the names of members.

use std::rc::Rc;

use super::items::Items;
use super::{Evaluated, Evaluation, Verdict, stop};
use crate::error::Fault;
use crate::tree::{Macro, MacroKind, Node};
use crate::value::{Computed, Value};

impl<'a> Evaluation<'a> {
    pub(super) fn macro_over(&mut self, parts: &'a Macro, node: &'a Node) -> Evaluated<Computed<'a>> {
        let over = self.made(&parts.over)?;
        let kind = over.kind();
        let Some(items) = self.items(over, node)? else {
            return Err(stop(node, Fault::Operand(parts.kind.name(), kind)));
        };
        // A slot for the variable, which each element fills.
        self.variables.push(Value::NULL);
        let made = self.over_items(parts, items);
        self.variables.pop();
        made
    }

    fn over_items(&mut self, parts: &'a Macro, items: Items<'a>) -> Evaluated<Computed<'a>> {
        match parts.kind {
            MacroKind::All => self.decide(parts, items, false).map(Computed::Bool),
            MacroKind::Exists => self.decide(parts, items, true).map(Computed::Bool),
            MacroKind::ExistsOne => self.count(parts, items).map(|count| Computed::Bool(count == 1)),
            MacroKind::Filter => self.filter(parts, items),
            MacroKind::Map => self.map(parts, items),
        }
    }

    fn decide(&mut self, parts: &'a Macro, items: Items<'a>, decisive: bool) -> Evaluated<bool> {
        let mut verdict = Verdict::new(decisive);
        for item in items {
            let holds = self.holds(parts, &parts.body, item);
            if verdict.take(holds)? {
                break;
            }
        }
        verdict.end()
    }

    fn count(&mut self, parts: &'a Macro, items: Items<'a>) -> Evaluated<usize> {
        let mut count = 0;
        for item in items {
            count += usize::from(self.holds(parts, &parts.body, item)?);
        }
        Ok(count)
    }

    fn filter(&mut self, parts: &'a Macro, items: Items<'a>) -> Evaluated<Computed<'a>> {
        let mut kept = Vec::new();
        for item in items {
            if self.holds(parts, &parts.body, item.clone())? {
                kept.push(item);
            }
        }
        Ok(Computed::List(Rc::new(kept)))
    }

    fn map(&mut self, parts: &'a Macro, items: Items<'a>) -> Evaluated<Computed<'a>> {
        let mut made = Vec::new();
        for item in items {
            if let Some(only) = &parts.only
                && !self.holds(parts, only, item.clone())?
            {
                continue;
            }
            self.bind(item);
            made.push(self.value(&parts.body)?);
        }
        Ok(Computed::List(Rc::new(made)))
    }

    fn holds(&mut self, parts: &Macro, condition: &'a Node, item: Value<'a>) -> Evaluated<bool> {
        self.bind(item);
        self.condition(condition, parts.kind.name())
    }

    /// Sets the innermost variable.
    fn bind(&mut self, item: Value<'a>) {
        if let Some(variable) = self.variables.last_mut() {
            *variable = item;
        }
    }
}
