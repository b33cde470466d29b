//! What is known of an open connection, by its shard's thread alone.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;
use std::task::Waker;

/// A body has so many ticks to begin.
pub(crate) const BODY_GRACE_TICKS: i64 = 10;

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The TLS handshake isn't complete.
    Handshake,
    /// It waits for a request.
    Idle,
    /// Part of a request's head is there.
    Head,
    /// A request's body is coming.
    Body,
    /// A request is complete and waits for its response.
    Answer,
    /// A response waits for the peer to read it.
    Write,
    /// The last response is written; the few bytes that the peer may still send are discarded.
    Linger,
    /// The last response was written before the request was read; the rest of the request is discarded.
    Drain,
}

/// What an open request waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenRequest {
    /// The client has sent a part of it.
    Arriving,
    /// It has arrived, and has no response yet.
    Processing,
    /// The client has read a part of the response.
    Answering,
}

/// What a connection has to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Continue.
    #[default]
    Continue,
    /// End as soon as no request is in flight.
    Finish,
    /// Answer that the request arrived too slowly, and end.
    TooSlow,
    /// End now.
    Abort,
}

/// Where a connection comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionPeer {
    /// The address of the client, or of a proxy before the server.
    pub client: IpAddr,
    /// The number of the listener that accepted it, from 0.
    pub listener: u16,
}

/// The state of a connection.
#[derive(Debug)]
pub struct ConnectionState {
    pub(crate) peer: ConnectionPeer,
    phase: Cell<Phase>,
    /// The tick at which the phase began.
    pub(crate) since: Cell<u32>,
    /// Bytes received in this phase that the deadlines haven't counted yet.
    pub(crate) received: Cell<u64>,
    /// How many ticks longer the body may take: received bytes add to it, up to the initial value.
    pub(crate) credit: Cell<i64>,
    /// The server isn't reading, in the middle of a body.
    is_waiting_for_us: Cell<bool>,
    order: Cell<Order>,
    waker: RefCell<Option<Waker>>,
}

impl ConnectionState {
    /// A connection of `peer` that was accepted at tick `now`.
    pub const fn new(peer: ConnectionPeer, now: u32) -> Self {
        Self {
            peer,
            phase: Cell::new(Phase::Idle),
            since: Cell::new(now),
            received: Cell::new(0),
            credit: Cell::new(BODY_GRACE_TICKS),
            is_waiting_for_us: Cell::new(false),
            order: Cell::new(Order::Continue),
            waker: RefCell::new(None),
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase.get()
    }

    /// What its open request waits for at the tick `now`, and for how many ticks. `None` without a request.
    pub fn open_request(&self, now: u32) -> Option<(OpenRequest, u32)> {
        let request = match self.phase() {
            Phase::Head | Phase::Body if self.is_waiting_for_us() => OpenRequest::Processing,
            Phase::Head | Phase::Body => OpenRequest::Arriving,
            Phase::Answer => OpenRequest::Processing,
            Phase::Write => OpenRequest::Answering,
            Phase::Handshake | Phase::Idle | Phase::Linger | Phase::Drain => return None,
        };
        Some((request, now.saturating_sub(self.since.get())))
    }

    /// Begins a phase. A client that was too slow but has sent everything is no longer too slow.
    pub(crate) fn enter(&self, phase: Phase, now: u32) {
        if phase == Phase::Answer && self.order() == Order::TooSlow {
            self.order.set(Order::Continue);
        }
        self.phase.set(phase);
        self.since.set(now);
        self.received.set(0);
        self.credit.set(BODY_GRACE_TICKS);
    }

    /// Until the value is dropped it waits for the server, in any phase.
    pub(crate) fn keep_waiting(&self) -> KeptWaiting<'_> {
        self.is_waiting_for_us.set(true);
        KeptWaiting(self)
    }

    pub(crate) fn is_waiting_for_us(&self) -> bool {
        self.is_waiting_for_us.get()
    }

    pub(crate) fn received(&self, bytes: usize) {
        self.received.set(self.received.get() + bytes as u64);
    }

    pub(crate) fn order(&self) -> Order {
        self.order.get()
    }

    /// Gives an order and wakes the connection's task to follow it.
    pub fn give(&self, order: Order) {
        self.order.set(order);
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }

    /// A task keeps its waker, so the first is enough.
    pub(crate) fn remember(&self, waker: &Waker) {
        let mut known = self.waker.borrow_mut();
        if known.is_none() {
            *known = Some(waker.clone());
        }
    }
}

/// A connection that waits for the server.
#[derive(Debug)]
pub struct KeptWaiting<'a>(&'a ConnectionState);

impl Drop for KeptWaiting<'_> {
    fn drop(&mut self) {
        self.0.is_waiting_for_us.set(false);
    }
}

/// A tick has so many parts; the deadlines of each connection are checked in one of them. A prime number: clients that connect in a
/// regular order are spread over all parts.
pub const TICK_PARTS: u32 = 127;

/// The connections whose deadlines are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TickPart {
    /// All of them: a tick begins.
    All,
    /// Those of this part of the tick, from 0 to [`TICK_PARTS`].
    Part(u32),
}

impl TickPart {
    /// Whether a tick begins with it.
    #[must_use]
    pub const fn begins_tick(self) -> bool {
        matches!(self, Self::All | Self::Part(0))
    }
}

/// The open connections of a shard.
#[derive(Debug)]
pub struct OpenConnections {
    /// By the part of the tick in which their deadlines are checked.
    open: RefCell<Vec<BTreeMap<usize, Rc<ConnectionState>>>>,
    next: Cell<usize>,
}

impl Default for OpenConnections {
    fn default() -> Self {
        Self { open: RefCell::new(vec![BTreeMap::new(); TICK_PARTS as usize]), next: Cell::default() }
    }
}

impl OpenConnections {
    /// Adds a connection and returns its number.
    pub fn add(&self, connection: Rc<ConnectionState>) -> usize {
        let number = self.next.get();
        self.next.set(number + 1);
        self.open.borrow_mut()[part_of(number)].insert(number, connection);
        number
    }

    /// Removes a connection by its number.
    pub fn remove(&self, number: usize) {
        self.open.borrow_mut()[part_of(number)].remove(&number);
    }

    /// Whether no connection is open.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.open.borrow().iter().all(BTreeMap::is_empty)
    }

    /// Calls `act` with the connections of this part of the tick.
    pub fn for_each(&self, part: TickPart, mut act: impl FnMut(&Rc<ConnectionState>)) {
        let open = self.open.borrow();
        let parts = match part {
            TickPart::All => &open[..],
            TickPart::Part(part) => &open[part as usize..=part as usize],
        };
        parts.iter().flat_map(BTreeMap::values).for_each(&mut act);
    }
}

const fn part_of(number: usize) -> usize {
    number % TICK_PARTS as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_request_waits_for_client_or_server() {
        let connection = ConnectionState::new(ConnectionPeer { client: [127, 0, 0, 1].into(), listener: 0 }, 3);
        assert_eq!(connection.open_request(9), None);
        for (phase, wanted) in [
            (Phase::Body, Some((OpenRequest::Arriving, 2))),
            (Phase::Answer, Some((OpenRequest::Processing, 2))),
            (Phase::Write, Some((OpenRequest::Answering, 2))),
            (Phase::Drain, None),
        ] {
            connection.enter(phase, 5);
            assert_eq!(connection.open_request(7), wanted, "{phase:?}");
        }
        connection.enter(Phase::Body, 5);
        let _waits = connection.keep_waiting();
        assert_eq!(connection.open_request(5), Some((OpenRequest::Processing, 0)));
    }
}
