//! What is known of an open connection, by its shard's thread alone.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;
use std::task::Waker;

/// A body has so many ticks to begin.
pub(super) const BODY_GRACE_TICKS: i64 = 10;

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// TLS isn't agreed on yet.
    Handshake,
    /// It waits for a request.
    Idle,
    /// Part of a request's head is there.
    Head,
    /// A request's body is coming.
    Body,
    /// A request is complete and waits for its answer.
    Answer,
    /// An answer waits for its peer to take it.
    Write,
    /// The last response is written; the little that the peer may still send is discarded.
    Linger,
    /// The last response is written, and left before the request was read; the rest of the request is discarded.
    Drain,
}

/// What a connection is told to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Order {
    /// Nothing.
    #[default]
    GoOn,
    /// End as soon as no request is in flight.
    Finish,
    /// Answer that the request came too slowly, and end.
    TooSlow,
    /// End now.
    Abort,
}

/// The state of a connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) client: IpAddr,
    phase: Cell<Phase>,
    /// The tick at which the phase began.
    pub(crate) since: Cell<u32>,
    /// Bytes received in this phase that the deadlines haven't looked at.
    pub(crate) received: Cell<u64>,
    /// How many ticks longer the body may take: more for what has come of it, but never more than for a start.
    pub(crate) credit: Cell<i64>,
    /// Nobody reads what it sends, for it is the server's turn in the middle of a body.
    is_waiting_for_us: Cell<bool>,
    order: Cell<Order>,
    waker: RefCell<Option<Waker>>,
}

impl Connection {
    pub(crate) const fn new(client: IpAddr, now: u32) -> Self {
        Self {
            client,
            phase: Cell::new(Phase::Idle),
            since: Cell::new(now),
            received: Cell::new(0),
            credit: Cell::new(BODY_GRACE_TICKS),
            is_waiting_for_us: Cell::new(false),
            order: Cell::new(Order::GoOn),
            waker: RefCell::new(None),
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase.get()
    }

    /// Begins a phase. Who was too slow to send and has sent all the same isn't any more.
    pub(crate) fn enter(&self, phase: Phase, now: u32) {
        if phase == Phase::Answer && self.order() == Order::TooSlow {
            self.order.set(Order::GoOn);
        }
        self.phase.set(phase);
        self.since.set(now);
        self.received.set(0);
        self.credit.set(BODY_GRACE_TICKS);
    }

    /// Until the value is dropped it waits for us, whatever its phase.
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
    pub(crate) fn give(&self, order: Order) {
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

/// A connection that waits for us.
#[derive(Debug)]
pub(crate) struct KeptWaiting<'a>(&'a Connection);

impl Drop for KeptWaiting<'_> {
    fn drop(&mut self) {
        self.0.is_waiting_for_us.set(false);
    }
}

/// So many parts of a tick there are, and of the connections that are looked at within it. A prime number: clients that come in
/// some order, each fourth alike, are in all parts alike.
pub(crate) const PARTS: u32 = 127;

/// At which connections to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// At all, with the tick's beginning.
    All,
    /// At those whose turn it is in this part of the tick, from 0 to [`PARTS`].
    Part(u32),
}

impl Look {
    /// Whether a tick begins with it.
    pub(crate) const fn begins_tick(self) -> bool {
        matches!(self, Self::All | Self::Part(0))
    }
}

/// The open connections of a shard.
#[derive(Debug)]
pub(crate) struct Connections {
    /// By the part of the tick in which they are looked at.
    open: RefCell<Vec<BTreeMap<usize, Rc<Connection>>>>,
    next: Cell<usize>,
}

impl Default for Connections {
    fn default() -> Self {
        Self { open: RefCell::new(vec![BTreeMap::new(); PARTS as usize]), next: Cell::default() }
    }
}

impl Connections {
    pub(crate) fn add(&self, connection: Rc<Connection>) -> usize {
        let number = self.next.get();
        self.next.set(number + 1);
        self.open.borrow_mut()[part_of(number)].insert(number, connection);
        number
    }

    pub(crate) fn remove(&self, number: usize) {
        self.open.borrow_mut()[part_of(number)].remove(&number);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.open.borrow().iter().all(BTreeMap::is_empty)
    }

    /// Calls `act` with those that are to be looked at.
    pub(crate) fn for_each(&self, look: Look, mut act: impl FnMut(&Rc<Connection>)) {
        let open = self.open.borrow();
        let parts = match look {
            Look::All => &open[..],
            Look::Part(part) => &open[part as usize..=part as usize],
        };
        parts.iter().flat_map(BTreeMap::values).for_each(&mut act);
    }
}

const fn part_of(number: usize) -> usize {
    number % PARTS as usize
}
