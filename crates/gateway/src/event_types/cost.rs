//! Estimates and bounds the cost of processing a payload. Work that would block a shard is offloaded to its worker pool.
//!
//! Operations are counted, not time: the time of a thread depends on how long it waited for a core.

use std::sync::atomic::{AtomicU64, Ordering};

use json::ValueView;
use schema::{Schema, ValidationError, Violations};

/// Work that takes more is offloaded: other requests wait for a shard that long at most, about half a millisecond.
pub(crate) const INLINE_OPERATIONS: usize = 100_000;
/// The minimum of operations for a thousand bytes, the JSON check included: a large payload is costly even if small ones of its type are
/// cheap.
const LEAST: u64 = 2_000;
/// The mean follows a new figure by one part in so many.
const SMOOTHING: u64 = 8;

/// The usual operations of a thousand bytes. If threads learn at the same time, one sample may be lost.
#[derive(Debug)]
pub(crate) struct CostEstimator(AtomicU64);

impl CostEstimator {
    pub(crate) const fn new() -> Self {
        Self(AtomicU64::new(LEAST))
    }

    /// Whether so many bytes are costly.
    pub(crate) fn is_costly(&self, bytes: usize) -> bool {
        is_costly(bytes, self.0.load(Ordering::Relaxed))
    }

    /// So many bytes took so many operations.
    pub(crate) fn learn(&self, bytes: usize, operations: usize) {
        let mean = self.0.load(Ordering::Relaxed);
        let cost = (operations as u64 * 1000 / (bytes as u64).max(1)).max(LEAST);
        // To store nearly the same value again and again would move the cache line between the cores.
        if cost.abs_diff(mean) > mean / 4 {
            self.0.store((mean * (SMOOTHING - 1) + cost) / SMOOTHING, Ordering::Relaxed);
        }
    }
}

/// Operations for a record, however small it is: at least a tenth of a microsecond.
const RECORD: usize = 20;
/// Operations for a step of an expression, as the steps of a transform count them.
const EXPRESSION_STEP: usize = 16;
/// Operations for a step of a schema.
const SCHEMA_STEP: usize = 4;
/// Bytes that a lookup skips in one operation.
const BYTES_PASSED: usize = 4;

/// It costs more than other requests should wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OverBudget;

/// What the processing of payloads may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CostBudget {
    /// Operations that are left; `None` on a thread of the worker pool, where no other request waits.
    left: Option<usize>,
}

impl CostBudget {
    /// The work that a shard does before other requests run.
    pub(crate) const fn inline() -> Self {
        Self { left: Some(INLINE_OPERATIONS) }
    }

    /// As much as is needed.
    pub(crate) const fn unlimited() -> Self {
        Self { left: None }
    }

    /// Operations that are left, if they are counted.
    pub(crate) const fn left(self) -> Option<usize> {
        self.left
    }

    /// Whether other requests of the shard wait for the work.
    pub(crate) const fn is_limited(self) -> bool {
        self.left.is_some()
    }

    /// Takes what is left.
    pub(crate) fn exhaust(&mut self) {
        self.left = self.left.map(|_| 0);
    }

    /// Whether nothing is left.
    pub(crate) fn is_spent(self) -> bool {
        self.left == Some(0)
    }

    /// Takes operations.
    ///
    /// # Errors
    /// There are fewer.
    pub(crate) fn spend(&mut self, operations: usize) -> Result<(), OverBudget> {
        let Some(left) = &mut self.left else { return Ok(()) };
        let rest = left.checked_sub(operations);
        *left = rest.unwrap_or(0);
        rest.map(|_| ()).ok_or(OverBudget)
    }

    /// Takes what it costs at least to take a record.
    ///
    /// # Errors
    /// As [`CostBudget::spend`].
    pub(crate) fn charge_record(&mut self) -> Result<(), OverBudget> {
        self.spend(RECORD)
    }

    /// Takes what it costs to look something up in so many bytes.
    ///
    /// # Errors
    /// As [`CostBudget::spend`].
    pub(crate) fn charge_scan(&mut self, bytes: usize) -> Result<(), OverBudget> {
        self.spend(bytes / BYTES_PASSED)
    }

    /// Takes what it costs at least to read so many bytes into something.
    ///
    /// # Errors
    /// As [`CostBudget::spend`].
    pub(crate) fn charge_read(&mut self, bytes: usize) -> Result<(), OverBudget> {
        self.spend(usize::try_from(bytes as u64 * LEAST / 1000).unwrap_or(usize::MAX))
    }

    /// Validates a payload by a schema within the remaining operations, and charges those that it needed.
    ///
    /// # Errors
    /// They didn't suffice. Within: the payload is invalid.
    pub(crate) fn check(
        &mut self,
        schema: &Schema,
        payload: ValueView<'_>,
    ) -> Result<Result<(), Violations>, OverBudget> {
        let given = self.left.map_or(usize::MAX, |left| left / SCHEMA_STEP);
        let mut steps = given;
        let checked = match schema.check_within(payload, &mut steps) {
            Ok(()) => Ok(()),
            Err(ValidationError::Wrong(violations)) => Err(violations),
            Err(ValidationError::OutOfSteps) => {
                self.exhaust();
                return Err(OverBudget);
            }
        };
        self.spend((given - steps).saturating_mul(SCHEMA_STEP)).map(|()| checked)
    }

    /// Evaluates expressions within the remaining steps, at most `most`, and charges the used ones: `work` leaves the others.
    ///
    /// # Errors
    /// As `work`, if the remaining steps didn't suffice.
    pub(crate) fn evaluate<T, E>(
        &mut self,
        most: usize,
        work: impl FnOnce(&mut usize) -> Result<T, E>,
    ) -> Result<T, OverBudget> {
        let given = self.left.map_or(most, |left| (left / EXPRESSION_STEP).min(most));
        let mut steps = given;
        let made = work(&mut steps);
        let spent = self.spend((given - steps) * EXPRESSION_STEP);
        made.map_err(|_| {
            self.exhaust();
            OverBudget
        })
        .and_then(|made| spent.map(|()| made))
    }
}

/// Whether so many bytes are costly even at the least cost.
pub(crate) fn is_costly_by_size(bytes: usize) -> bool {
    is_costly(bytes, LEAST)
}

fn is_costly(bytes: usize, operations_of_thousand: u64) -> bool {
    (bytes as u64).saturating_mul(operations_of_thousand) / 1000 > INLINE_OPERATIONS as u64
}

#[cfg(test)]
mod tests {
    use json::ValueIndex;
    use schema::{Documents, SchemaOptions};

    use super::*;

    #[test]
    fn work_on_a_shard_is_bounded_by_bytes() {
        let mut work = CostBudget::inline();
        assert_eq!((work.charge_scan(4000), work.charge_read(1000)), (Ok(()), Ok(())));
        let steps = work.evaluate(usize::MAX, |steps| {
            *steps -= 1000;
            Ok::<_, ()>(*steps)
        });
        assert_eq!(steps, Ok((INLINE_OPERATIONS - 3000) / EXPRESSION_STEP - 1000));
        assert_eq!(work.left(), Some(INLINE_OPERATIONS - 3000 - 1000 * EXPRESSION_STEP));
        assert_eq!(work.evaluate(usize::MAX, |_| Err::<(), _>(())), Err(OverBudget));
        assert!(work.is_spent());
        assert_eq!(CostBudget::inline().spend(INLINE_OPERATIONS + 1), Err(OverBudget));
        assert_eq!(CostBudget::unlimited().spend(usize::MAX), Ok(()));
        assert_eq!(CostBudget::unlimited().evaluate(7, |steps| Ok::<_, ()>(*steps)), Ok(7));
    }

    #[test]
    fn validation_stops_when_the_budget_is_spent() {
        let doubled = |n| format!(r##""{n}":{{"anyOf":[{{"$ref":"#/$defs/{0}"}},{{"$ref":"#/$defs/{0}"}}]}},"##, n + 1);
        let definitions: String = (0..14).map(doubled).collect();
        let text = format!(r##"{{"properties":{{"a":{{"$ref":"#/$defs/0"}}}},"$defs":{{{definitions}"14":false}}}}"##);
        let options = SchemaOptions { documents: &Documents::new(), formats: false };
        let schema = Schema::compile("costly", &text, &options).unwrap();
        let check = |payload, mut work: CostBudget| {
            let mut values = ValueIndex::default();
            (work.check(&schema, values.read(payload)).map(|checked| checked.is_ok()), work)
        };
        let (checked, work) = check("{}", CostBudget::inline());
        assert!(checked == Ok(true) && !work.is_spent() && work != CostBudget::inline());
        let (checked, work) = check(r#"{"a":1}"#, CostBudget::inline());
        assert!(checked == Err(OverBudget) && work.is_spent(), "it takes tens of thousands of steps");
        assert_eq!(check(r#"{"a":1}"#, CostBudget::unlimited()).0, Ok(false), "no other request waits");
    }

    #[test]
    fn cost_estimate_rises_and_falls_with_work() {
        let effort = CostEstimator::new();
        assert!(!effort.is_costly(1000) && effort.is_costly(100_000));
        effort.learn(1000, 10_000_000);
        assert!(effort.is_costly(1000), "operations are no accident");
        (0..80).for_each(|_| effort.learn(1000, 500));
        assert!(!effort.is_costly(1000) && effort.is_costly(100_000));
    }
}
