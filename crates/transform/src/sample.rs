//! Steps that drop an event: at random, and as a duplicate.

use xxhash_rust::xxh3::xxh3_64;

use super::document_run::{Failure, Run, StepOutcome};
use json::JsonPointer;
use json::text;

/// The part of the events that continues.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    /// Events whose hash is at most this; none if there is none.
    below: Option<u64>,
    /// Values that are drawn together.
    by: Vec<JsonPointer>,
}

impl Sample {
    /// A part from 0 to 1.
    pub(super) fn new(part: f64, by: Vec<JsonPointer>) -> Option<Self> {
        if !(0.0..=1.0).contains(&part) {
            return None;
        }
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "it is in the range, and what is lost is one part in 2^53"
        )]
        let below = (part * u64::MAX as f64) as u64;
        Some(Self { below: (part > 0.0).then_some(below), by })
    }

    pub(super) fn by(&self) -> &[JsonPointer] {
        &self.by
    }
}

impl Run<'_, '_> {
    /// The draw is a hash of the event's values, so a duplicate gets the same result, on any machine.
    pub(super) fn sample(&mut self, sample: &Sample) -> Result<StepOutcome, Failure> {
        let hash = match self.values(&sample.by)? {
            Some(values) => xxh3_64(values.as_bytes()),
            None if self.context.key.is_empty() => xxh3_64(self.received.as_bytes()),
            None => xxh3_64(self.context.key),
        };
        Ok(if sample.below.is_some_and(|below| hash <= below) { StepOutcome::GoesOn } else { StepOutcome::IsFiltered })
    }

    pub(super) fn dedupe(&mut self, at: &[JsonPointer], window: usize) -> Result<StepOutcome, Failure> {
        let Some(values) = self.values(at)? else { return Ok(StepOutcome::GoesOn) };
        // Types that share their steps don't share their values.
        let value = format!("{}:{values}", self.context.event_type);
        let has_seen = self.windows.record_value(window, &value, self.context.received_at);
        Ok(if has_seen { StepOutcome::IsFiltered } else { StepOutcome::GoesOn })
    }

    /// The values as one text, which is unique to them; `None` if all are absent or null.
    fn values(&mut self, pointers: &[JsonPointer]) -> Result<Option<String>, Failure> {
        let (mut values, mut is_one_there, mut bytes) = (String::new(), false, 0);
        for at in pointers {
            let value = self.value(at)?;
            is_one_there |= value.is_some();
            let json = value.unwrap_or("null");
            let string = text::read_string(json);
            let value = string.as_deref().unwrap_or(json);
            bytes += value.len();
            let kind = if string.is_some() { 's' } else { 'j' };
            values.push_str(&format!("{kind}{}:{value}", value.len()));
        }
        self.budget.spend(bytes).map_err(Failure::new)?;
        Ok(is_one_there.then_some(values))
    }
}
