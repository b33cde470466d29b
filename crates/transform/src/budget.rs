//! What the steps may do to one event: operations are counted, not time, so that an event is refused on every machine or on none.

use limits::{EXPRESSION_STEPS_MAX, TRANSFORM_WORK_MAX};

/// What a step takes, whatever it does.
const STEP: usize = 16;
/// What a step of an expression takes: it may make a value.
const EXPRESSION_STEP: usize = 16;
/// What a part takes of which something is made that has a name, such as a member of another object.
const NAMED_PART: usize = 64;
/// Bytes that are copied in an operation.
const COPIED_BYTES: usize = 4;

/// What there is left to spend on one event.
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

    /// Operations that there are still.
    pub(super) const fn left(&self) -> usize {
        self.left
    }

    /// Operations that were taken.
    pub(super) const fn spent(&self) -> usize {
        self.most - self.left
    }

    /// Whether more was asked for than there was: whatever a step says of failures, the event is refused.
    pub(super) const fn is_exhausted(&self) -> bool {
        self.is_exhausted
    }

    /// Takes operations.
    pub(super) fn spend(&mut self, operations: usize) -> Result<(), String> {
        let left = self.left.checked_sub(operations);
        self.left = left.unwrap_or(0);
        self.is_exhausted |= left.is_none();
        left.map(|_| ()).ok_or_else(|| {
            format!("the steps take more than {TRANSFORM_WORK_MAX} operations on this event: it is too large for what they do")
        })
    }

    /// Takes what a step costs that does nothing.
    pub(super) fn spend_step(&mut self) -> Result<(), String> {
        self.spend(STEP)
    }

    /// Takes what it costs to copy a text.
    pub(super) fn spend_copy(&mut self, bytes: usize) -> Result<(), String> {
        self.spend(bytes / COPIED_BYTES)
    }

    /// Takes what it costs to make a part with a name.
    pub(super) fn spend_named(&mut self) -> Result<(), String> {
        self.spend(NAMED_PART)
    }

    /// Has an expression worked out with the steps that there are, and takes those that it took.
    pub(super) fn evaluate<T>(&mut self, work: impl FnOnce(&mut usize) -> T, is_stopped: impl FnOnce(&T) -> bool) -> T {
        let most = (self.left / EXPRESSION_STEP).min(2 * EXPRESSION_STEPS_MAX);
        let mut steps = most;
        let made = work(&mut steps);
        self.left -= (most - steps) * EXPRESSION_STEP;
        self.is_exhausted |= is_stopped(&made);
        made
    }
}
