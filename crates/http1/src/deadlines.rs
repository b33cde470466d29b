//! How long a connection may take for each phase. A tick is a second (in tests less); a shard checks all its connections once a tick,
//! which costs less than a timer for each request.

use limits::DRAIN_TIME_MAX;

use crate::connection::{BODY_GRACE_TICKS, ConnectionState, Order, Phase};

/// From the connection to the end of the handshake, on a port with TLS.
const HANDSHAKE_TICKS_MAX: u32 = 10;
/// A request's line and headers.
const HEAD_TICKS_MAX: u32 = 10;
/// The minimum rate of a body, after some time to begin.
const BODY_BYTES_PER_TICK_MIN: u64 = 1024;
/// A peer that reads nothing of a response for so long is closed.
const WRITE_TICKS_MAX: u32 = 30;
/// The peer has this long to read its last response and close.
const LINGER_TICKS_MAX: u32 = 2;
/// The peer has this long to send a request whose response it has already.
const DRAIN_TICKS_MAX: u32 = 10;
const _: () = assert!(DRAIN_TICKS_MAX as u64 == DRAIN_TIME_MAX.as_secs(), "a tick is a second");
/// A connection that hasn't followed the order to finish is ended after this time.
const END_TICKS_MAX: u32 = 10;

/// The order that a connection gets at the tick `now`. A shard asks once a tick. The connection may be idle for `idle_ticks`.
pub fn order(connection: &ConnectionState, now: u32, idle_ticks: u32) -> Order {
    if connection.is_waiting_for_us() {
        return Order::Continue;
    }
    let ticks = now.saturating_sub(connection.since.get());
    let (limit, order) = match connection.phase() {
        Phase::Handshake => (HANDSHAKE_TICKS_MAX, Order::Abort),
        Phase::Idle => (idle_ticks, Order::Finish),
        Phase::Head => (HEAD_TICKS_MAX, Order::TooSlow),
        Phase::Body => return of_body(connection),
        // It waits for the server.
        Phase::Answer => return Order::Continue,
        Phase::Write => (WRITE_TICKS_MAX, Order::Abort),
        Phase::Linger => (LINGER_TICKS_MAX, Order::Abort),
        Phase::Drain => (DRAIN_TICKS_MAX, Order::Abort),
    };
    if ticks < limit {
        Order::Continue
    } else if ticks < limit.saturating_add(END_TICKS_MAX) {
        order
    } else {
        Order::Abort
    }
}

/// A body gains time by its bytes, up to a bound: otherwise a fast one could then pause for hours.
fn of_body(connection: &ConnectionState) -> Order {
    let received = connection.received.get();
    let earned = i64::try_from(received / BODY_BYTES_PER_TICK_MIN).unwrap_or(i64::MAX);
    connection.received.set(received % BODY_BYTES_PER_TICK_MIN);
    let credit = connection.credit.get().saturating_add(earned).min(BODY_GRACE_TICKS) - 1;
    connection.credit.set(credit);
    match credit {
        1.. => Order::Continue,
        credit if credit > -i64::from(END_TICKS_MAX) => Order::TooSlow,
        _ => Order::Abort,
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;
    use crate::connection::ConnectionPeer;

    const PEER: ConnectionPeer = ConnectionPeer { client: IpAddr::V4(Ipv4Addr::LOCALHOST), listener: 0 };
    const IDLE_TICKS: u32 = 75;

    fn order(connection: &ConnectionState, now: u32) -> Order {
        super::order(connection, now, IDLE_TICKS)
    }

    #[test]
    fn each_phase_has_a_deadline() {
        let connection = ConnectionState::new(PEER, 0);
        for (phase, received, last_good, then) in [
            (Phase::Handshake, 99, 9, Order::Abort),
            (Phase::Idle, 0, 74, Order::Finish),
            (Phase::Head, 9999, 9, Order::TooSlow),
            (Phase::Write, 0, 29, Order::Abort),
            (Phase::Linger, 0, 1, Order::Abort),
            (Phase::Drain, 1 << 20, 9, Order::Abort),
        ] {
            connection.enter(phase, 0);
            connection.received(received);
            assert_eq!(order(&connection, last_good), Order::Continue, "{phase:?}");
            assert_eq!(order(&connection, last_good + 1), then, "{phase:?}");
            assert_eq!(order(&connection, last_good + 1 + END_TICKS_MAX), Order::Abort, "{phase:?}");
        }
        connection.enter(Phase::Answer, 0);
        assert_eq!(order(&connection, u32::MAX), Order::Continue);
    }

    #[test]
    fn unread_body_never_times_out() {
        let connection = ConnectionState::new(PEER, 0);
        connection.enter(Phase::Body, 0);
        let look = |times: usize| (0..times).map(|_| order(&connection, 0)).collect::<Vec<_>>();
        assert_eq!(look(9), [Order::Continue; 9]);
        let waiting = connection.keep_waiting();
        assert_eq!(look(50), [Order::Continue; 50]);
        drop(waiting);
        assert_eq!(look(1), [Order::TooSlow], "its own time resumes where it stopped");
    }

    #[test]
    fn body_needs_a_minimum_rate() {
        let orders = |bytes: &[u64]| {
            let connection = ConnectionState::new(PEER, 0);
            connection.enter(Phase::Body, 0);
            let each = |received: &u64| {
                connection.received(usize::try_from(*received).unwrap());
                order(&connection, 0)
            };
            bytes.iter().map(each).collect::<Vec<_>>()
        };
        let until = |good: usize, bytes: &[u64]| {
            let orders = orders(bytes);
            assert!(orders[..good].iter().all(|order| *order == Order::Continue), "{orders:?}");
            assert!(orders[good..good + 10].iter().all(|order| *order == Order::TooSlow), "{orders:?}");
            assert_eq!(orders[good + 10], Order::Abort);
        };
        until(9, &[0; 40]);
        until(9, &[1023, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        let mut much_at_once = [0; 40];
        much_at_once[0] = 32 << 20;
        until(9, &much_at_once);
        let mut later = [0; 40];
        later[5] = 1 << 20;
        until(14, &later);
        assert!(orders(&[1024; 100]).iter().all(|order| *order == Order::Continue));
        assert!(orders(&[512; 18]).iter().all(|order| *order == Order::Continue));
        assert_eq!(orders(&[512; 30]).last(), Some(&Order::TooSlow));
    }
}
