//! The task that keeps a connection: connects again after a loss, and leaves a server that shuts down.

use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;
use std::time::Duration;

use random::Random;
use tokio::task::spawn_local;
use tokio::time::{Instant, sleep};

use super::connect::{Connected, connect};
use super::driver;
use super::link::Link;
use super::shared::{Shared, described};
use crate::error::Error;

/// The delay before the second attempt, doubled for each further one. The first attempt has none.
const DELAY_MIN: Duration = Duration::from_millis(100);
/// The maximum of a delay.
const DELAY_MAX: Duration = Duration::from_secs(2);
/// How long the subscriptions of a connection last after another one has replaced it.
const DRAIN_DELAY: Duration = Duration::from_secs(1);
/// A connection that lasts for less doesn't reset the delay.
const STABLE: Duration = Duration::from_secs(2);

/// Keeps a connection until the task is cancelled.
pub(super) async fn keep(shared: Rc<Shared>) {
    let mut random = Random::new(RandomState::new().hash_one(0));
    let mut attempts = 0;
    loop {
        attempts += 1;
        let used = match connect(&shared, &mut random).await {
            Ok(connected) => follow(&shared, connected).await,
            Err(error) => Err(error),
        };
        match used {
            Ok(time) if time > STABLE => attempts = 0,
            Ok(_) => {}
            Err(error) => {
                shared.report(&format!("can't connect to {}: {}", shared.options.servers, described(&error)));
            }
        }
        sleep(delay(attempts, &mut random)).await;
    }
}

/// Uses a connection until it ends, or its server shuts down soon. Returns how long it was used.
async fn follow(shared: &Rc<Shared>, (wire, greeting, server): Connected) -> Result<Duration, Error> {
    let begun = Instant::now();
    let link = Rc::new(Link::new(server, greeting.max_payload)?);
    link.is_lame.set(greeting.ldm);
    shared.learn(&greeting);
    shared.add(&link);
    spawn_local(driver::drive(wire, Rc::clone(&link), Rc::clone(shared)));
    // The server has all subscriptions before those of the previous connection end.
    link.until(|link| link.pings.get() == 0 || link.has_ended()).await;
    if !link.has_ended() {
        let previous = shared.replace(&link);
        tracing::info!(client = shared.options.name, server = link.server, "bus: connected");
        if let Some(previous) = previous {
            shared.end_ungrouped(&previous);
            let shared = Rc::clone(shared);
            spawn_local(async move {
                sleep(DRAIN_DELAY).await;
                shared.drain(&previous);
            });
        }
        link.until(|link| link.is_lame.get() || link.has_ended()).await;
    }
    Ok(begun.elapsed())
}

/// Half of the delay is random, so many clients don't connect together.
fn delay(attempts: u32, random: &mut Random) -> Duration {
    let Some(doubled) = attempts.checked_sub(1) else { return Duration::ZERO };
    let delay = DELAY_MAX.min(DELAY_MIN * 2_u32.pow(doubled.min(8)));
    delay / 2 + delay.mul_f64(random.below(1_000) as f64 / 2_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_to_their_maximum() {
        let mut random = Random::new(1);
        assert_eq!(delay(0, &mut random), Duration::ZERO);
        for (attempts, min, max) in
            [(1, 50, 100), (2, 100, 200), (5, 800, 1_600), (6, 1_000, 2_000), (u32::MAX, 1_000, 2_000)]
        {
            let delay = delay(attempts, &mut random).as_millis();
            assert!((min..=max).contains(&delay), "{attempts}: {delay}");
        }
    }
}
