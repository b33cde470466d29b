//! Records that alone are not taken while their neighbours pass: after a while they are given up, so that nothing waits behind them
//! for ever.

use sink::{RejectedRecord, Retry, RetryScope};
use tokio::time::Instant;

use crate::dead_letter_reasons;
use crate::options::Options;

/// Watches the records of one batch.
#[derive(Default)]
pub(crate) struct PoisonDetector {
    since: Option<Instant>,
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

    /// Decides about the records that the store didn't accept this time. `has_passed` is whether it has accepted others.
    pub(crate) fn judge(&mut self, retry: Vec<Retry>, has_passed: bool, options: &Options) -> PoisonResult {
        let since = *self.since.get_or_insert_with(Instant::now);
        if !has_passed || since.elapsed() < options.alone_max {
            return PoisonResult { again: retry, given_up: Vec::new() };
        }
        // An error of the store says nothing about a record, however long it lasts.
        let (given_up, again): (Vec<Retry>, Vec<Retry>) =
            retry.into_iter().partition(|retry| retry.scope == RetryScope::Record);
        let seconds = since.elapsed().as_secs();
        let give_up = |retry: Retry| RejectedRecord {
            index: retry.index,
            reason: dead_letter_reasons::not_in_time(seconds, &retry.reason).into(),
        };
        PoisonResult { again, given_up: given_up.into_iter().map(give_up).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given_up(alone: &mut PoisonDetector, options: &Options, scope: RetryScope, has_passed: bool) -> usize {
        let retry = vec![Retry { index: 0, reason: "busy".into(), scope }];
        alone.judge(retry, has_passed, options).given_up.len()
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_alone_for_too_long_is_given_up_and_no_outage_counts() {
        let (options, scope) = (Options::new(), RetryScope::Record);
        let (most, little) = (options.alone_max * 3 / 4, options.alone_max / 4);
        let mut alone = PoisonDetector::default();
        assert_eq!(given_up(&mut alone, &options, scope, true), 0);
        tokio::time::advance(most).await;
        alone.outage();
        assert_eq!(given_up(&mut alone, &options, scope, true), 0);
        tokio::time::advance(most).await;
        assert_eq!(given_up(&mut alone, &options, scope, true), 0, "the time before the outage doesn't count");
        tokio::time::advance(little).await;
        assert_eq!(given_up(&mut alone, &options, scope, true), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn records_are_never_given_up_for_errors_of_the_store() {
        let options = Options::new();
        for (scope, has_passed) in [(RetryScope::Record, false), (RetryScope::Unclear, true), (RetryScope::Store, true)]
        {
            let mut alone = PoisonDetector::default();
            for _ in 0..5 {
                assert_eq!(given_up(&mut alone, &options, scope, has_passed), 0, "{scope:?}");
                tokio::time::advance(options.alone_max).await;
            }
        }
    }
}
