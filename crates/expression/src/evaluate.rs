//! Evaluates an expression on one document. Each step is counted and the number is bounded, so the cost is bounded for
//! any expression and any document.

mod call;
mod equal;
mod items;
mod over;

use std::cmp::Ordering;
use std::ops::Range;
use std::rc::Rc;

use limits::EXPRESSION_STEPS_MAX;

use super::error::Fault;
use super::number;
use super::tree::{Binary, Node, NodeKind};
use super::value::{Computed, Kind, Value};
use json::parts;

/// Bytes of text that are read or copied in a step.
pub(super) const BYTES_PER_STEP: usize = 32;

/// The reason why there is no value, and the part of the text without one.
pub(super) struct Stop {
    pub(super) place: Range<usize>,
    pub(super) fault: Fault,
}

type Evaluated<T> = Result<T, Stop>;

/// One evaluation.
pub(super) struct Evaluation<'a> {
    document: &'a str,
    fields: Vec<Option<&'a str>>,
    /// The values of the enclosing macros' variables.
    variables: Vec<Value<'a>>,
    steps: usize,
}

impl<'a> Evaluation<'a> {
    pub(super) fn new(document: &'a str, names: &[String]) -> Self {
        Self::with_fields(document, parts::fields(document, names), EXPRESSION_STEPS_MAX)
    }

    /// With the members that the expression names: their reader has paid for the scan of the document.
    pub(super) const fn with_fields(document: &'a str, fields: Vec<Option<&'a str>>, steps: usize) -> Self {
        Self { document, fields, variables: Vec::new(), steps }
    }

    pub(super) const fn steps_left(&self) -> usize {
        self.steps
    }

    pub(super) fn value(&mut self, node: &'a Node) -> Evaluated<Value<'a>> {
        self.spend(1, node)?;
        let made = match &node.kind {
            NodeKind::Null => Computed::Null,
            NodeKind::Bool(value) => Computed::Bool(*value),
            NodeKind::Int(number) => Computed::Int(*number),
            NodeKind::Double(number) => Computed::Double(*number),
            NodeKind::Text(text) => Computed::Text(text.as_str().into()),
            NodeKind::List(nodes) => {
                let elements = nodes.iter().map(|node| self.value(node)).collect::<Evaluated<Vec<_>>>()?;
                Computed::List(Rc::new(elements))
            }
            NodeKind::Document => return Ok(Value::Json(self.document)),
            NodeKind::Field(number) => return Ok(self.fields[*number].map_or(Value::NULL, Value::Json)),
            NodeKind::Variable(depth) => return self.variable(*depth, node),
            NodeKind::Member(of, name) => {
                let of = self.made(of)?;
                return Ok(self.member(&of, name, node)?.map_or(Value::NULL, Value::Json));
            }
            NodeKind::Index(of, index) => return self.index(of, index, node),
            NodeKind::Choice(nodes) => {
                let [condition, then, otherwise] = &**nodes;
                return if self.condition(condition, "?")? { self.value(then) } else { self.value(otherwise) };
            }
            NodeKind::Macro(parts) => self.macro_over(parts, node)?,
            NodeKind::Binary(operator, left, right) => self.binary(*operator, left, right, node)?,
            NodeKind::Negate(operand) => self.negate(operand, node)?,
            NodeKind::Call(function, arguments) => self.call(*function, arguments, node)?,
            NodeKind::Not(operand) => Computed::Bool(!self.condition(operand, "!")?),
            NodeKind::And(parts) => Computed::Bool(self.chain(parts, "&&", false)?),
            NodeKind::Or(parts) => Computed::Bool(self.chain(parts, "||", true)?),
            NodeKind::Has(of, name) => {
                let of = self.made(of)?;
                Computed::Bool(self.member(&of, name, node)?.is_some())
            }
            NodeKind::HasField(number) => Computed::Bool(self.fields[*number].is_some()),
            NodeKind::Matches(subject, pattern) => {
                let text = self.text(subject, "matches()")?;
                self.spend(pattern.steps(text.len()), node)?;
                Computed::Bool(pattern.regex().is_match(&text))
            }
        };
        Ok(Value::Computed(made))
    }

    /// The value, read.
    fn made(&mut self, node: &'a Node) -> Evaluated<Computed<'a>> {
        let value = self.value(node)?;
        self.read(value, node)
    }

    fn read(&mut self, value: Value<'a>, node: &Node) -> Evaluated<Computed<'a>> {
        let made = match value {
            // An escape is decoded, a long number is read digit by digit.
            Value::Json(json) if !json.starts_with(['[', '{']) => {
                self.spend(json.len() / BYTES_PER_STEP, node)?;
                Value::Json(json).read()
            }
            value => value.read(),
        };
        Ok(made)
    }

    /// A value that must be true or false.
    fn condition(&mut self, node: &'a Node, operator: &'static str) -> Evaluated<bool> {
        match self.made(node)? {
            Computed::Bool(value) => Ok(value),
            other => Err(stop(node, Fault::Operand(operator, other.kind()))),
        }
    }

    /// A chain that a `decisive` value decides at any place, even next to parts that have no value.
    fn chain(&mut self, parts: &'a [Node], operator: &'static str, decisive: bool) -> Evaluated<bool> {
        let mut verdict = Verdict::new(decisive);
        for part in parts {
            if verdict.take(self.condition(part, operator))? {
                break;
            }
        }
        verdict.end()
    }

    /// The value of a variable. An owned value is copied.
    fn variable(&mut self, depth: usize, node: &Node) -> Evaluated<Value<'a>> {
        self.spend(items::owned_bytes(&self.variables[depth]) / BYTES_PER_STEP, node)?;
        Ok(self.variables[depth].clone())
    }

    /// A member of an object. Other values have none.
    fn member(&mut self, of: &Computed<'a>, name: &str, node: &Node) -> Evaluated<Option<&'a str>> {
        let Computed::Object(json) = of else { return Ok(None) };
        self.spend(json.len() / BYTES_PER_STEP, node)?;
        Ok(parts::member(json, name))
    }

    /// An element of a list by its number, or a member of an object by its name; null if it is absent.
    fn index(&mut self, of: &'a Node, index: &'a Node, node: &'a Node) -> Evaluated<Value<'a>> {
        let (of, index) = (self.made(of)?, self.made(index)?);
        let number = match &index {
            Computed::Text(name) => return Ok(self.member(&of, name, node)?.map_or(Value::NULL, Value::Json)),
            Computed::Int(number) => usize::try_from(*number).ok(),
            _ => return Err(stop(node, Fault::Operands("[]", of.kind(), index.kind()))),
        };
        let element = match (of, number) {
            (Computed::Array(json), Some(number)) => {
                self.spend(json.len() / BYTES_PER_STEP, node)?;
                parts::elements(json).nth(number).map(Value::Json)
            }
            (Computed::List(elements), Some(number)) => {
                let element = elements.get(number).cloned();
                self.spend(element.as_ref().map_or(0, items::owned_bytes) / BYTES_PER_STEP, node)?;
                element
            }
            _ => None,
        };
        Ok(element.unwrap_or(Value::NULL))
    }

    fn binary(&mut self, operator: Binary, left: &'a Node, right: &'a Node, node: &'a Node) -> Evaluated<Computed<'a>> {
        let (left, right) = (self.made(left)?, self.made(right)?);
        let unfit = |left: Kind, right: Kind| stop(node, Fault::Operands(operator.symbol(), left, right));
        let order = || number::compare(&left, &right).ok_or_else(|| unfit(left.kind(), right.kind()));
        Ok(match operator {
            Binary::Equal => Computed::Bool(self.equal(&left, &right, node)?),
            Binary::Unequal => Computed::Bool(!self.equal(&left, &right, node)?),
            Binary::Less => Computed::Bool(order()?.is_some_and(Ordering::is_lt)),
            Binary::LessOrEqual => Computed::Bool(order()?.is_some_and(Ordering::is_le)),
            Binary::Greater => Computed::Bool(order()?.is_some_and(Ordering::is_gt)),
            Binary::GreaterOrEqual => Computed::Bool(order()?.is_some_and(Ordering::is_ge)),
            Binary::In => Computed::Bool(self.evaluate_in(&left, right, node)?),
            Binary::Add if left.kind() == right.kind() && matches!(left.kind(), Kind::String | Kind::List) => {
                self.concatenate(left, right, node)?
            }
            _ => number::reckon(operator, &left, &right).map_err(|fault| stop(node, fault))?,
        })
    }

    fn negate(&mut self, operand: &'a Node, node: &Node) -> Evaluated<Computed<'a>> {
        match self.made(operand)? {
            Computed::Int(number) => number.checked_neg().map(Computed::Int).ok_or_else(|| stop(node, Fault::Overflow)),
            Computed::Double(number) => Ok(Computed::Double(-number)),
            other => Err(stop(node, Fault::Operand("-", other.kind()))),
        }
    }

    /// Takes steps from the remaining ones.
    fn spend(&mut self, steps: usize, node: &Node) -> Evaluated<()> {
        let rest = self.steps.checked_sub(steps);
        self.steps = rest.unwrap_or(0);
        rest.map(|_| ()).ok_or_else(|| stop(node, Fault::TooManySteps))
    }
}

fn stop(node: &Node, fault: Fault) -> Stop {
    Stop { place: node.place.clone(), fault }
}

/// The result of conditions of which one decides, as in CEL: if one has no value, the others may still decide.
struct Verdict {
    decisive: bool,
    is_decided: bool,
    failed: Option<Stop>,
}

impl Verdict {
    const fn new(decisive: bool) -> Self {
        Self { decisive, is_decided: false, failed: None }
    }

    /// Takes the next condition; says whether it decides.
    fn take(&mut self, condition: Evaluated<bool>) -> Evaluated<bool> {
        match condition {
            Ok(value) => self.is_decided |= value == self.decisive,
            // There are no steps left for others.
            Err(stop) if stop.fault == Fault::TooManySteps => return Err(stop),
            Err(stop) => self.failed = self.failed.take().or(Some(stop)),
        }
        Ok(self.is_decided)
    }

    fn end(self) -> Evaluated<bool> {
        match self.failed {
            Some(stop) if !self.is_decided => Err(stop),
            _ => Ok(self.is_decided == self.decisive),
        }
    }
}
