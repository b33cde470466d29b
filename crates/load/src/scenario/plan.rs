//! What a user does next, and when.

use std::time::Duration;

use random::Random;

use super::file::Step;

/// The longest time of thinking, in means: rarer ones would only make a short run less even.
const THINK_MAX: f64 = 10.0;

/// The steps by their parts.
pub(super) struct Plan {
    /// The steps without a weight, in the order of the file.
    login: Vec<usize>,
    /// The others, each with the sum of the weights up to it.
    weighted: Vec<(u64, usize)>,
    think: Duration,
}

impl Plan {
    pub(super) fn new(steps: &[Step], think: Duration) -> Self {
        let (mut login, mut weighted, mut sum) = (Vec::new(), Vec::new(), 0);
        for (index, step) in steps.iter().enumerate() {
            match step.weight {
                None => login.push(index),
                Some(weight) => {
                    sum += weight;
                    weighted.push((sum, index));
                }
            }
        }
        Self { login, weighted, think }
    }

    /// The next step of the login after `done` steps, if there is one.
    pub(super) fn step(&self, done: usize, random: &mut Random) -> Option<usize> {
        if let Some(step) = self.login.get(done) {
            return Some(*step);
        }
        let drawn = random.below(self.weighted.last()?.0);
        self.weighted.get(self.weighted.partition_point(|(sum, _)| *sum <= drawn)).map(|(_, step)| *step)
    }

    /// The time until the user's next step. It is distributed exponentially, so the arrivals of many users are a Poisson process.
    pub(super) fn think(&self, random: &mut Random) -> Duration {
        const STEPS: u64 = 1 << 53;
        let uniform = (random.below(STEPS) + 1) as f64 / STEPS as f64;
        self.think.mul_f64((-uniform.ln()).min(THINK_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::template::Template;

    fn plan(weights: &[Option<u64>]) -> Plan {
        let step = |weight: &Option<u64>| Step {
            name: String::new(),
            path: Template::plain("/"),
            body: None,
            ack: None,
            key: None,
            weight: *weight,
            expect: Vec::new(),
            assertions: Vec::new(),
        };
        Plan::new(&weights.iter().map(step).collect::<Vec<_>>(), Duration::from_secs(10))
    }

    #[test]
    fn login_is_first_and_weights_are_shares() {
        let (plan, mut random) = (plan(&[Some(3), None, Some(1), None, Some(1)]), Random::new(3));
        assert_eq!([plan.step(0, &mut random), plan.step(1, &mut random)], [Some(1), Some(3)]);
        let mut counts = [0_u32; 5];
        (0..50_000).for_each(|_| counts[plan.step(2, &mut random).unwrap()] += 1);
        assert!(counts[0].abs_diff(30_000) < 500 && counts[2].abs_diff(10_000) < 500, "{counts:?}");
        assert!(counts[4].abs_diff(10_000) < 500 && counts[1] + counts[3] == 0, "{counts:?}");
    }

    #[test]
    fn users_without_weighted_steps_end() {
        let (plan, mut random) = (plan(&[None]), Random::new(3));
        assert_eq!([plan.step(0, &mut random), plan.step(1, &mut random)], [Some(0), None]);
    }

    #[test]
    fn think_time_has_its_mean() {
        let (plan, mut random) = (plan(&[Some(1)]), Random::new(7));
        let times: Vec<f64> = (0..100_000).map(|_| plan.think(&mut random).as_secs_f64()).collect();
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        let shorter = times.iter().filter(|time| **time < 10.0).count() as f64 / times.len() as f64;
        // 1 - 1/e of exponentially distributed times are below their mean.
        assert!((mean - 10.0).abs() < 0.15 && (shorter - 0.632).abs() < 0.01, "{mean} {shorter}");
        assert!(times.iter().all(|time| *time <= 100.0));
    }
}
