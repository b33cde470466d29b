//! The budget of the steps for one event. Operations are counted, not time, so every machine rejects the same events.

use limits::{EXPRESSION_STEPS_MAX, TRANSFORM_WORK_MAX};

/// The cost of a step, regardless of its result.
const STEP: usize = 16;
/// The cost of a step of an expression: it may create a value.
const EXPRESSION_STEP: usize = 16;
/// The cost of a copied part that has a name, such as a member of another object.
const NAMED_PART: usize = 64;
/// Bytes that are copied in an operation.
const COPIED_BYTES: usize = 4;

/// The remaining budget for one event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    most: usize,
    left: usize,
    is_exhausted: bool,
}

impl Budget {
    pub(super) fn new(operations: usize) -> Self {
        let most = operations.min(TRANSFORM_WORK_MAX);
        Self { most, left: most, is_exhausted: false }
    }

    /// The remaining operations.
    pub(super) const fn left(&self) -> usize {
        self.left
    }

    /// Operations that were spent.
    pub(super) const fn spent(&self) -> usize {
        self.most - self.left
    }

    /// Whether the budget is exhausted: then the event is rejected, regardless of the step's `on_error`.
    pub(super) const fn is_exhausted(&self) -> bool {
        self.is_exhausted
    }

    /// Spends operations.
    pub(super) fn spend(&mut self, operations: usize) -> Result<(), String> {
        let left = self.left.checked_sub(operations);
        self.left = left.unwrap_or(0);
        self.is_exhausted |= left.is_none();
        left.map(|_| ()).ok_or_else(|| {
            format!("the steps need more than {TRANSFORM_WORK_MAX} operations for this event: send a smaller one, or simplify the steps")
        })
    }

    /// Spends the cost of a step that does nothing.
    pub(super) fn spend_step(&mut self) -> Result<(), String> {
        self.spend(STEP)
    }

    /// Spends the cost of copying a text.
    pub(super) fn spend_copy(&mut self, bytes: usize) -> Result<(), String> {
        self.spend(bytes / COPIED_BYTES)
    }

    /// Spends the cost of creating a part with a name.
    pub(super) fn spend_named(&mut self) -> Result<(), String> {
        self.spend(NAMED_PART)
    }

    /// Evaluates an expression within the remaining operations, and spends those that it needed.
    pub(super) fn evaluate<T>(&mut self, work: impl FnOnce(&mut usize) -> T, is_stopped: impl FnOnce(&T) -> bool) -> T {
        let most = (self.left / EXPRESSION_STEP).min(2 * EXPRESSION_STEPS_MAX);
        let mut steps = most;
        let made = work(&mut steps);
        self.left -= (most - steps) * EXPRESSION_STEP;
        self.is_exhausted |= is_stopped(&made);
        made
    }
}
