//! The registration of a writer in etcd: a key under a lease, which ends soon after the writer does.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use net::http_client::Endpoint;
use serde_json::json;
use sink_remote::EtcdConfig;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::etcd::{Client, EtcdError, LeaseId};

/// The longest pause between two renewals: a long lease must not delay a new registration after etcd lost its data.
const RENEW_MAX: Duration = Duration::from_secs(5);
/// The shortest time for a member's answer. With a longer lease it is a third of that: another member must be tried in time.
const CALL_MIN: Duration = Duration::from_secs(1);
/// The longest pause if no member answers.
const RETRY_MAX: Duration = Duration::from_secs(1);
/// The longest wait for etcd when the writer stops.
const LEAVE_MAX: Duration = Duration::from_secs(2);

/// The URLs of a writer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advertised {
    /// The one that gateways use.
    pub url: Endpoint,
    /// The one of its admin port, for consoles.
    pub admin: Option<Endpoint>,
}

/// A running registration.
pub struct Registration {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
    is_registered: Arc<AtomicBool>,
}

impl Registration {
    /// Registers the writer's URLs, and renews the registration, on a separate task.
    #[must_use]
    pub fn start(etcd: EtcdConfig, advertise: Advertised, lease: Duration) -> Self {
        let is_registered = Arc::<AtomicBool>::default();
        let (stop, stopped) = oneshot::channel();
        let registrar = Registrar {
            client: Client::new(etcd).within((lease / 3).max(CALL_MIN)),
            advertise,
            lease_length: lease,
            lease: None,
            is_registered: is_registered.clone(),
            has_failed: false,
        };
        Self { stop, task: tokio::spawn(registrar.run(stopped)), is_registered }
    }

    /// It is set while the last renewal succeeded.
    #[must_use]
    pub fn registered_flag(&self) -> Arc<AtomicBool> {
        self.is_registered.clone()
    }

    /// Ends the registration: gateways then use other writers. Waits for etcd for two seconds at most.
    pub async fn leave(self) {
        drop(self.stop);
        if timeout(LEAVE_MAX, self.task).await.is_err() {
            tracing::warn!("etcd did not end the registration: gateways keep this writer until its lease ends");
        }
    }
}

struct Registrar {
    client: Client,
    advertise: Advertised,
    lease_length: Duration,
    lease: Option<LeaseId>,
    is_registered: Arc<AtomicBool>,
    has_failed: bool,
}

impl Registrar {
    async fn run(mut self, stopped: oneshot::Receiver<()>) {
        tokio::select! {
            biased;
            _ = stopped => {}
            never = self.stay() => match never {},
        }
        let Some(lease) = self.lease else { return };
        match self.client.revoke(&lease).await {
            Ok(()) => tracing::info!("etcd: the writer is no longer registered"),
            Err(error) => tracing::warn!(reason = %error, "etcd: gateways keep this writer until its lease ends"),
        }
    }

    async fn stay(&mut self) -> Infallible {
        loop {
            let renewed = self.renew().await;
            self.is_registered.store(renewed.is_ok(), Ordering::Relaxed);
            let pause = (self.lease_length / 3).min(RENEW_MAX);
            match renewed {
                Ok(()) => {
                    if std::mem::take(&mut self.has_failed) {
                        tracing::info!("etcd responds again, and the writer is registered");
                    }
                    sleep(pause).await;
                }
                Err(error) => {
                    if !std::mem::replace(&mut self.has_failed, true) {
                        let message = "gateways that know this writer keep it, and the writer retries. Check etcd and \
                            its settings";
                        tracing::warn!(reason = %error, "etcd: the writer can't be registered; {message}");
                    }
                    sleep(if error.is_refusal() { RENEW_MAX } else { pause.min(RETRY_MAX) }).await;
                }
            }
        }
    }

    /// Renews the lease, and writes the key if it isn't there. If etcd does not know the lease, it makes another one.
    async fn renew(&mut self) -> Result<(), EtcdError> {
        let lease = match self.lease.clone() {
            Some(lease) if self.client.keep_alive(&lease).await? => lease,
            _ => self.client.grant(self.lease_length).await?,
        };
        self.lease = Some(lease.clone());
        // With the lease's id, each process has its own key.
        let key = format!("{}{}", self.client.config().prefix, lease);
        if !self.client.has(&key).await? {
            let Advertised { url, admin } = &self.advertise;
            let mut value = json!({ "url": url.to_string() });
            if let Some(admin) = admin {
                value["admin"] = admin.to_string().into();
            }
            self.client.put(&key, &value.to_string(), &lease).await?;
            tracing::info!("etcd: the writer is registered as {url} by {key}");
        }
        Ok(())
    }
}
