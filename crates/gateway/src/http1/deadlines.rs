//! How long a connection may take for what it is doing. A tick is a second (in tests less); a shard looks at all its connections
//! once a tick, which costs less than a timer for each request.

use super::connection::{Connection, Order, Phase};

/// A connection without a request.
const IDLE_TICKS_MAX: u32 = 75;
/// A request's line and headers.
const HEAD_TICKS_MAX: u32 = 10;
/// A body comes at least this fast, after a while to begin.
const BODY_BYTES_PER_TICK_MIN: u64 = 1024;
const BODY_GRACE_TICKS: u32 = 10;
/// A peer that takes nothing of an answer for so long doesn't want it.
const WRITE_TICKS_MAX: u32 = 30;
/// The peer has this long to take its last answer and close.
const LINGER_TICKS_MAX: u32 = 2;
/// A connection that was told to end and hasn't is ended.
const END_TICKS_MAX: u32 = 10;

/// What a connection must be told now, if anything.
pub(crate) fn order(connection: &Connection, now: u32) -> Order {
    let ticks = now.saturating_sub(connection.since.get());
    let (limit, order) = match connection.phase() {
        Phase::Idle => (IDLE_TICKS_MAX, Order::Finish),
        Phase::Head => (HEAD_TICKS_MAX, Order::TooSlow),
        Phase::Body => {
            let earned = connection.received.get() / BODY_BYTES_PER_TICK_MIN;
            (BODY_GRACE_TICKS.saturating_add(u32::try_from(earned).unwrap_or(u32::MAX)), Order::TooSlow)
        }
        // It waits for us.
        Phase::Answer => return Order::GoOn,
        Phase::Write => (WRITE_TICKS_MAX, Order::Abort),
        Phase::Linger => (LINGER_TICKS_MAX, Order::Abort),
    };
    if ticks < limit {
        Order::GoOn
    } else if ticks < limit.saturating_add(END_TICKS_MAX) {
        order
    } else {
        Order::Abort
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_phase_has_its_time() {
        let connection = Connection::new([127, 0, 0, 1].into(), 0);
        for (phase, received, last_good, then) in [
            (Phase::Idle, 0, 74, Order::Finish),
            (Phase::Head, 9999, 9, Order::TooSlow),
            (Phase::Body, 1023, 9, Order::TooSlow),
            (Phase::Body, 5 * 1024, 14, Order::TooSlow),
            (Phase::Write, 0, 29, Order::Abort),
            (Phase::Linger, 0, 1, Order::Abort),
        ] {
            connection.enter(phase, 0);
            connection.received(received);
            assert_eq!(order(&connection, last_good), Order::GoOn, "{phase:?}");
            assert_eq!(order(&connection, last_good + 1), then, "{phase:?}");
            assert_eq!(order(&connection, last_good + 1 + END_TICKS_MAX), Order::Abort, "{phase:?}");
        }
        connection.enter(Phase::Answer, 0);
        assert_eq!(order(&connection, u32::MAX), Order::GoOn);
    }
}
