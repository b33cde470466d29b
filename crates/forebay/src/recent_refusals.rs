//! The last rejected events and requests, for the admin port: the samples that the log shows. No value of an event is among them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gateway::{RefusalNews, RefusalSample};

/// Samples that are kept: about 100 KiB at most.
const SAMPLES_MAX: usize = 256;

/// The last rejections. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct RecentRefusals(Arc<Mutex<Recent>>);

#[derive(Default)]
struct Recent {
    /// The oldest first.
    samples: VecDeque<RefusalSample>,
    left_out: u64,
}

impl RecentRefusals {
    /// Keeps what was logged.
    pub(crate) fn keep(&self, news: RefusalNews) {
        let mut held = self.held();
        held.left_out += news.left_out;
        for sample in news.samples {
            if held.samples.len() == SAMPLES_MAX {
                held.samples.pop_front();
            }
            held.samples.push_back(sample);
        }
    }

    /// The samples that are wanted, the newest first; and how many rejections have no sample.
    pub(crate) fn list(&self, is_wanted: impl Fn(&RefusalSample) -> bool) -> (Vec<RefusalSample>, u64) {
        let held = self.held();
        (held.samples.iter().rev().filter(|sample| is_wanted(sample)).cloned().collect(), held.left_out)
    }

    fn held(&self) -> MutexGuard<'_, Recent> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use gateway::ErrorCode;

    use super::*;

    #[test]
    fn newest_samples_are_kept_and_others_counted() {
        let recent = RecentRefusals::default();
        let sample = |line| RefusalSample {
            at: 0,
            code: ErrorCode::Schema,
            pointer: None,
            type_name: "orders".into(),
            source: "shop".into(),
            client: [10, 0, 0, 7].into(),
            line: Some(line),
        };
        for first in 0..100 {
            recent.keep(RefusalNews { samples: (5 * first..5 * first + 5).map(sample).collect(), left_out: 2 });
        }
        let (samples, left_out) = recent.list(|_| true);
        let lines: Vec<_> = samples.iter().filter_map(|sample| sample.line).collect();
        assert_eq!((lines.len(), lines[0], lines[255], left_out), (SAMPLES_MAX, 499, 244, 200));
        assert_eq!(recent.list(|sample| sample.line == Some(300)).0, [sample(300)]);
    }
}
