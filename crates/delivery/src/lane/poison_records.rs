//! Records that alone are not taken while their neighbours pass: after a while they are given up, so that nothing waits behind them
//! for ever.

use sink::{Batch, RejectedRecord, Retry};
use tokio::time::Instant;

use crate::dead_letters::reasons;
use crate::options::Options;

/// Watches the records of one batch.
#[derive(Default)]
pub(crate) struct PoisonDetector {
    since: Option<Instant>,
    neighbours_passed: bool,
}

/// Records to be sent again, and those that were sent again for too long.
pub(crate) struct PoisonResult {
    pub(crate) again: Vec<Retry>,
    pub(crate) given_up: Vec<RejectedRecord>,
}

impl PoisonDetector {
    /// The store took nothing at all: that time isn't held against the records.
    pub(crate) fn outage(&mut self) {
        self.since = None;
    }

    /// What is to become of the records that the store didn't take this time.
    pub(crate) fn judge(&mut self, batch: &Batch, retry: Vec<Retry>, options: &Options) -> PoisonResult {
        let since = *self.since.get_or_insert_with(Instant::now);
        self.neighbours_passed |= retry.len() < batch.len();
        if !self.neighbours_passed || since.elapsed() < options.alone_max {
            return PoisonResult { again: retry, given_up: Vec::new() };
        }
        let seconds = since.elapsed().as_secs();
        let give_up = |retry: Retry| RejectedRecord {
            index: retry.index,
            reason: reasons::not_in_time(seconds, &retry.reason).into(),
        };
        PoisonResult { again: Vec::new(), given_up: retry.into_iter().map(give_up).collect() }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use event::{EventId, Lane, Origin};
    use sink::{Record, RetryScope, Write};

    use super::*;
    use crate::options::Reporter;

    struct Silent;

    impl Reporter for Silent {
        fn report(&self, _: &str) {}
    }

    fn batch(count: u64) -> Batch {
        let mut batch = Batch::new(Lane { origin: Origin([1; 16]), shard: 0, sink: "s".into() }, 1);
        for sequence in 1..=count {
            let record = Record {
                sequence,
                id: EventId([0; 16]),
                type_name: "",
                source: "",
                received_at: 0,
                event_time: None,
                write: Write::Insert,
                payload: b"",
            };
            batch.push(&bytes::Bytes::new(), &record);
        }
        batch
    }

    fn given_up(alone: &mut PoisonDetector, options: &Options, records: u64, left: usize) -> usize {
        let retry = (0..left).map(|index| Retry { index, reason: "busy".into(), scope: RetryScope::Store }).collect();
        alone.judge(&batch(records), retry, options).given_up.len()
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_alone_for_too_long_is_given_up_and_no_outage_counts() {
        let options = Options::new(Arc::new(Silent));
        let (most, little) = (options.alone_max * 3 / 4, options.alone_max / 4);
        let mut alone = PoisonDetector::default();
        assert_eq!(given_up(&mut alone, &options, 3, 1), 0);
        tokio::time::advance(most).await;
        alone.outage();
        assert_eq!(given_up(&mut alone, &options, 1, 1), 0);
        tokio::time::advance(most).await;
        assert_eq!(given_up(&mut alone, &options, 1, 1), 0, "the time before the outage doesn't count");
        tokio::time::advance(little).await;
        assert_eq!(given_up(&mut alone, &options, 1, 1), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_batch_of_which_nothing_passes_is_never_given_up() {
        let options = Options::new(Arc::new(Silent));
        let mut alone = PoisonDetector::default();
        for _ in 0..5 {
            assert_eq!(given_up(&mut alone, &options, 2, 2), 0);
            tokio::time::advance(options.alone_max).await;
        }
    }
}
