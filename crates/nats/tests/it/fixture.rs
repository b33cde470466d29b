//! A local runtime for a test, and workers that respond to its requests.

use std::future::Future;
use std::sync::OnceLock;
use std::time::Duration;

use nats::{Bus, BusError, ConnectOptions, Message, Outgoing, Subject, Subscription};
use testkit::nats::NatsServer;
use tokio::runtime::{Builder, LocalOptions};
use tokio::time::timeout;

/// A test that takes longer hangs.
const PATIENCE: Duration = Duration::from_mins(2);
/// The time limit of requests that get a response.
pub(crate) const LONG: Duration = Duration::from_mins(1);
/// The time limit of requests that get none.
pub(crate) const SHORT: Duration = Duration::from_millis(50);

/// The server of all tests that don't change it, if NATS was built.
pub(crate) fn server() -> Option<&'static NatsServer> {
    static SERVER: OnceLock<Option<NatsServer>> = OnceLock::new();
    SERVER.get_or_init(NatsServer::start).as_ref()
}

/// Runs a test on a local runtime.
pub(crate) fn local(test: impl Future<Output = ()>) {
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default()).unwrap();
    runtime.block_on(async { timeout(PATIENCE, test).await.expect("the test hangs") });
}

pub(crate) fn options(url: &str) -> ConnectOptions {
    ConnectOptions { servers: url.parse().unwrap(), credentials: None, ca: None, name: "test" }
}

/// A bus that is connected to this address.
pub(crate) async fn connected(address: impl std::fmt::Display) -> Bus {
    let bus = Bus::start(options(&format!("nats://{address}")));
    bus.connected().await;
    bus
}

pub(crate) fn subject(text: &str) -> Subject {
    text.parse().unwrap()
}

/// A request without headers.
pub(crate) async fn ask(bus: &Bus, to: &str, payload: &str, limit: Duration) -> Result<String, BusError> {
    let outgoing = Outgoing { subject: &subject(to), headers: b"", payload: payload.as_bytes() };
    bus.request(&outgoing, limit).await.map(|message| text(&message))
}

pub(crate) fn text(message: &Message) -> String {
    String::from_utf8(message.payload().to_vec()).unwrap()
}

/// Responds to a message.
pub(crate) fn reply(bus: &Bus, message: &Message, payload: &str) {
    bus.publish(message.reply().unwrap(), b"", payload.as_bytes()).unwrap();
}

/// A subscription that the server has.
pub(crate) async fn subscribed(bus: &Bus, to: &str, queue: Option<&str>) -> Subscription {
    let mut subscription = bus.subscribe(&subject(to), queue);
    // The server handles the subscription first.
    while ask(bus, to, "probe", SHORT).await == Err(BusError::NoResponders) {}
    while subscription.try_next().is_some() {}
    subscription
}

/// A worker in a task: it responds to each message with its payload, after `=`.
pub(crate) async fn echo(bus: &Bus, to: &str) {
    let mut subscription = subscribed(bus, to, Some("workers")).await;
    let bus = bus.clone();
    tokio::task::spawn_local(async move {
        while let Some(message) = subscription.next().await {
            let payload = format!("={}", text(&message));
            let _ = bus.publish(message.reply().unwrap(), b"", payload.as_bytes());
        }
    });
}

/// Asks until the request gets a response.
pub(crate) async fn until_answered(bus: &Bus, to: &str) {
    while ask(bus, to, "x", SHORT).await != Ok("=x".to_owned()) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
