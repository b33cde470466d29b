//! The values of one figure, one for each point in time.

use std::collections::VecDeque;

/// Points that are kept: an hour.
pub(super) const POINTS_MAX: usize = 720;

/// The last values, the oldest first; not a number where nothing was measured. It takes no memory for values that it doesn't have yet.
#[derive(Debug, Default)]
pub(super) struct Series(VecDeque<f32>);

impl Series {
    /// The bytes of a full one.
    pub(super) const BYTES_MAX: usize = POINTS_MAX * size_of::<f32>();

    pub(super) fn push(&mut self, value: Option<f64>) {
        if self.0.len() == POINTS_MAX {
            self.0.pop_front();
        } else if self.0.len() == self.0.capacity() {
            // Doubling would leave more unused than is used.
            self.0.reserve_exact((POINTS_MAX - self.0.len()).min(POINTS_MAX / 12));
        }
        #[expect(clippy::cast_possible_truncation, reason = "seven digits suffice for a curve")]
        self.0.push_back(value.map_or(f32::NAN, |value| value as f32));
    }

    /// Adds a value, if there is or was one: curves that stay empty take no memory.
    pub(super) fn push_if_used(&mut self, value: Option<f64>) {
        if value.is_some() || !self.0.is_empty() {
            self.push(value);
        }
    }

    /// The last values, so many.
    pub(super) fn last(&self, points: usize) -> Vec<Option<f32>> {
        let missing = points.saturating_sub(self.0.len());
        let known = self.0.iter().skip(self.0.len().saturating_sub(points));
        let known = known.map(|value| (!value.is_nan()).then_some(*value));
        std::iter::repeat_n(None, missing).chain(known).collect()
    }

    pub(super) fn bytes(&self) -> usize {
        self.0.capacity() * size_of::<f32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_bytes_are_bounded() {
        let mut series = Series::default();
        assert_eq!((series.bytes(), series.last(2)), (0, vec![None, None]));
        series.push(None);
        series.push(Some(1.0));
        assert_eq!(series.last(3), [None, None, Some(1.0)]);
        for value in 0..1_000 {
            series.push(Some(f64::from(value)));
        }
        assert_eq!((series.last(POINTS_MAX)[0], series.last(1)[0]), (Some(280.0), Some(999.0)));
        assert!(series.bytes() <= Series::BYTES_MAX, "{}", series.bytes());
    }
}
