//! The state that a bus, its subscriptions and its tasks share.

use std::cell::{Cell, RefCell};
use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;

use tokio::sync::Notify;

use super::Outgoing;
use super::bus_error::BusError;
use super::link::{INBOX_ID, Link, Stage, Waiting};
use super::queue::Queue;
use super::slots::Room;
use crate::connect_options::ConnectOptions;
use crate::error::{Advice, Error};
use crate::greeting::{Greeting, MAX_PAYLOAD};
use crate::message::Message;
use crate::server::Host;
use crate::subject::Subject;

/// Different messages that are logged between two connections.
const REPORTS_MAX: usize = 16;

pub(super) struct Shared {
    pub(super) options: ConnectOptions,
    /// The connection for new requests.
    current: RefCell<Option<Rc<Link>>>,
    /// All connections: the current one, and those that are closed soon.
    links: RefCell<Vec<Rc<Link>>>,
    subscriptions: RefCell<Vec<Rc<Queue>>>,
    next_id: Cell<u64>,
    /// Servers of the cluster, according to the last server.
    pub(super) discovered: RefCell<Vec<Host>>,
    pub(super) max_payload: Cell<usize>,
    hasher: RandomState,
    is_closed: Cell<bool>,
    /// Notified when there is a connection, or the bus is closed.
    changed: Notify,
    /// Messages that were logged since the last connection.
    reported: RefCell<Vec<String>>,
}

impl Shared {
    pub(super) fn new(options: ConnectOptions) -> Self {
        Self {
            options,
            current: RefCell::default(),
            links: RefCell::default(),
            subscriptions: RefCell::default(),
            next_id: Cell::new(INBOX_ID + 1),
            discovered: RefCell::default(),
            max_payload: Cell::new(MAX_PAYLOAD),
            hasher: RandomState::new(),
            is_closed: Cell::new(false),
            changed: Notify::new(),
            reported: RefCell::default(),
        }
    }

    /// The connection for new requests.
    pub(super) fn link(&self) -> Result<Rc<Link>, BusError> {
        let link = self.current.borrow().clone();
        link.ok_or(BusError::Unavailable("there is no connection to the bus at the moment"))
    }

    pub(super) fn request(&self, outgoing: &Outgoing<'_>, room: Room) -> Result<Waiting, BusError> {
        let subject = outgoing.subject.as_str();
        self.link()?.request((subject, self.hash(subject)), outgoing.headers, outgoing.payload, room)
    }

    /// The hash of a subject.
    pub(super) fn hash(&self, subject: &str) -> u64 {
        self.hasher.hash_one(subject)
    }

    pub(super) async fn connected(&self) {
        while self.current.borrow().is_none() && !self.is_closed.get() {
            self.changed.notified().await;
        }
    }

    pub(super) fn subscribe(&self, subject: &Subject, group: Option<&str>) -> Rc<Queue> {
        let id = self.next_id.replace(self.next_id.get() + 1);
        let queue = Rc::new(Queue::new(id, subject, group));
        if self.is_closed.get() {
            queue.close();
        }
        self.links.borrow().iter().for_each(|link| link.subscribe(&queue));
        self.subscriptions.borrow_mut().push(Rc::clone(&queue));
        queue
    }

    pub(super) fn unsubscribe(&self, queue: &Queue) {
        self.subscriptions.borrow_mut().retain(|known| known.id != queue.id);
        self.links.borrow().iter().for_each(|link| link.unsubscribe(queue));
    }

    /// Ends a subscription on all connections, which still deliver what they have. Returns them, each with a ping sent.
    pub(super) fn leave(&self, queue: &Queue) -> Vec<Rc<Link>> {
        queue.is_draining.set(true);
        let links = self.links.borrow().clone();
        for link in &links {
            link.unsubscribe(queue);
            link.ping();
        }
        links
    }

    /// Adds a new connection, with all subscriptions.
    pub(super) fn add(&self, link: &Rc<Link>) {
        self.subscriptions
            .borrow()
            .iter()
            .filter(|queue| !queue.is_draining.get())
            .for_each(|queue| link.subscribe(queue));
        link.ping();
        self.links.borrow_mut().push(Rc::clone(link));
    }

    /// Uses a connection for new requests. Returns the previous one.
    pub(super) fn replace(&self, link: &Rc<Link>) -> Option<Rc<Link>> {
        let previous = self.current.replace(Some(Rc::clone(link)));
        self.reported.borrow_mut().clear();
        self.changed.notify_waiters();
        previous
    }

    /// Ends the subscriptions of a connection that another one has replaced, except those in a queue group: another
    /// server may still send the previous one a message that no other member gets.
    pub(super) fn end_ungrouped(&self, link: &Link) {
        let subscriptions = self.subscriptions.borrow();
        subscriptions.iter().filter(|queue| queue.group.is_none()).for_each(|queue| link.unsubscribe(queue));
    }

    /// Ends all subscriptions of a connection. It is closed after its last response.
    pub(super) fn drain(&self, link: &Link) {
        self.subscriptions.borrow().iter().for_each(|queue| link.unsubscribe(queue));
        link.ping();
        link.begin(Stage::Draining);
    }

    /// Accounts for a connection that has ended.
    pub(super) fn ended(&self, link: &Rc<Link>, outcome: Result<(), Error>) {
        self.links.borrow_mut().retain(|known| !Rc::ptr_eq(known, link));
        let mut current = self.current.borrow_mut();
        let was_used = current.take_if(|current| Rc::ptr_eq(current, link)).is_some();
        drop(current);
        link.begin(Stage::Ended);
        link.fail(None, &BusError::Lost);
        if let (true, Err(error)) = (was_used, outcome) {
            self.report(&format!("the connection to {} is lost: {}", link.server, described(&error)));
        }
    }

    /// Accounts for a server's description of itself.
    pub(super) fn learn(&self, greeting: &Greeting) {
        self.max_payload.set(greeting.max_payload);
        let hosts: Vec<Host> = greeting.connect_urls.iter().filter_map(|text| Host::parse(text).ok()).collect();
        if !hosts.is_empty() {
            *self.discovered.borrow_mut() = hosts;
        }
    }

    /// Gives a message to its subscription.
    pub(super) fn deliver(&self, message: Message) {
        let subscriptions = self.subscriptions.borrow();
        if let Some(queue) = subscriptions.iter().find(|queue| queue.id == message.subscription) {
            queue.push(message);
        }
    }

    /// Logs a message, once for each connection.
    pub(super) fn report(&self, message: &str) {
        let mut reported = self.reported.borrow_mut();
        if reported.len() < REPORTS_MAX && !reported.iter().any(|known| known == message) {
            tracing::warn!(client = self.options.name, "bus: {message}");
            reported.push(message.to_owned());
        }
    }

    /// Begins to close all connections, and ends all subscriptions.
    pub(super) fn close(&self) -> Vec<Rc<Link>> {
        self.is_closed.set(true);
        self.current.take();
        self.changed.notify_waiters();
        self.subscriptions.borrow().iter().for_each(|queue| queue.close());
        let links = self.links.borrow().clone();
        links.iter().for_each(|link| link.begin(Stage::Closing));
        links
    }
}

/// An error, with advice for the operator.
pub(super) fn described(error: &Error) -> String {
    let advice = match error {
        Error::Server(said) => match Advice::of(said) {
            Advice::Wait(advice) => advice,
            Advice::Fix(advice) => Some(advice),
        },
        _ => None,
    };
    advice.map_or_else(|| error.to_string(), |advice| format!("{error}: {advice}"))
}
