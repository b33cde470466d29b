//! Discovery by etcd: one writer for each registered URL. A watch triggers a look-up. The gateway also looks the writers up every few seconds,
//! because a watch on a dead connection may stay silent.

use std::collections::BTreeMap;
use std::time::Duration;

use net::http_client::Endpoint;
use serde::Deserialize;
use sink_remote::{EtcdConfig, Upstream};
use tokio::time::sleep;

use super::LOOK_UP_EVERY;
use super::report::{LookUpReport, listed};
use crate::etcd::{Client, Entries, Watch};

/// The pause after a look-up that no member answered.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// The pause after the end of a watch. It limits the cost of a watch that ends immediately.
const WATCH_AFTER: Duration = Duration::from_millis(100);

/// A writer's registration: the value of its key.
#[derive(Deserialize)]
struct Registration {
    url: String,
    /// The URL of its admin port, if it advertises one.
    admin: Option<String>,
}

/// The port of a registered writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Port {
    /// The one that gateways use.
    Delivery,
    /// Its admin port. Writers that don't advertise it are left out.
    Admin,
}

/// Follows the registered writers until the future is dropped. While etcd names none, the set is kept.
pub(super) async fn follow(upstream: Upstream, port: Port, etcd: EtcdConfig, allows_http: bool) {
    let mut report = LookUpReport::new(&upstream, "etcd");
    let mut registry = Registry::new(&upstream, port, allows_http);
    let mut client = Client::new(etcd);
    let mut watch: Option<Watch> = None;
    loop {
        let answer = client.entries().await;
        let retry_after =
            answer.as_ref().err().map(|error| if error.is_refusal() { LOOK_UP_EVERY } else { RETRY_AFTER });
        match answer.map(|entries| registry.urls(&entries)) {
            Ok(urls) if !urls.is_empty() => report.resolved(upstream.discover(&urls)),
            Ok(_) => report.failed(&format!(
                "no writer is registered under {}: start one with this prefix",
                client.config().prefix
            )),
            Err(error) => report.failed(&error.to_string()),
        }
        if let Some(pause) = retry_after {
            // The next look-up may find another member.
            watch = None;
            sleep(pause).await;
            continue;
        }
        watch = match watch {
            Some(open) => still_open(open).await,
            // The look-up that follows finds what changed before the watch began.
            None => begun(&client).await,
        };
    }
}

/// Waits for a change, and no longer than until the next look-up. `None`: the watch has ended.
async fn still_open(mut watch: Watch) -> Option<Watch> {
    if watch.wait(LOOK_UP_EVERY).await {
        return Some(watch);
    }
    sleep(WATCH_AFTER).await;
    None
}

/// Begins a watch. If that fails, look-ups continue without one.
async fn begun(client: &Client) -> Option<Watch> {
    let watch = client.watch().await.ok();
    if watch.is_none() {
        sleep(LOOK_UP_EVERY).await;
    }
    watch
}

/// Reads registrations, and reports the ones that can't be used.
struct Registry {
    name: String,
    port: Port,
    /// Whether `http://` URLs of other machines are rejected.
    needs_tls: bool,
    /// The last report: the same report is logged once.
    reported: String,
}

impl Registry {
    fn new(upstream: &Upstream, port: Port, allows_http: bool) -> Self {
        let config = upstream.config();
        let needs_tls = (config.token.is_some() || config.ca.is_some()) && !allows_http;
        Self { name: config.name.clone(), port, needs_tls, reported: String::new() }
    }

    /// The URLs of the registrations that can be used, each once.
    fn urls(&mut self, entries: &Entries) -> Vec<Endpoint> {
        let (mut urls, mut unusable) = (BTreeMap::new(), Vec::new());
        for (key, value) in &entries.values {
            match self.url(key, value) {
                Ok(Some(url)) => drop(urls.insert(url.to_string(), url)),
                Ok(None) => {}
                Err(why) => unusable.push(why),
            }
        }
        if entries.has_more {
            unusable.push(format!("only the first {} keys are read, so writers may be missing: delete stale keys, or set another `prefix`", entries.values.len()));
        }
        self.report(&unusable);
        urls.into_values().collect()
    }

    /// `None` if the writer doesn't advertise the port.
    fn url(&self, key: &str, value: &[u8]) -> Result<Option<Endpoint>, String> {
        // The value may contain a secret.
        let odd = |why: &str| format!("the key {} is not a registration: {why}", shown(key));
        let registration = serde_json::from_slice(value).map_err(|_| odd("expected {\"url\": \"…\"}"))?;
        let Registration { url, admin } = registration;
        let Some(url) = (match self.port {
            Port::Delivery => Some(url),
            Port::Admin => admin,
        }) else {
            return Ok(None);
        };
        let url: Endpoint = url.parse().map_err(|error: net::http_client::InvalidEndpoint| odd(&error.to_string()))?;
        if url.user.is_some() {
            return Err(odd("expected a URL without a user"));
        }
        if self.needs_tls && url.is_in_clear() {
            return Err(format!(
                "{url} is not used: others on the network could read the token and the events. Let the writer advertise an \
                 https:// URL, or set allow_http = true in [upstreams.{}.etcd]",
                self.name
            ));
        }
        Ok(Some(url))
    }

    fn report(&mut self, unusable: &[String]) {
        let text = unusable.join("; ");
        if !text.is_empty() && text != self.reported {
            tracing::warn!(
                upstream = &*self.name,
                reason = listed(unusable, "; "),
                "etcd has registrations that can't be used: correct or delete their keys"
            );
        }
        self.reported = text;
    }
}

/// The beginning of a key, for a message.
fn shown(key: &str) -> String {
    format!("{:?}", key.chars().take(100).collect::<String>())
}
