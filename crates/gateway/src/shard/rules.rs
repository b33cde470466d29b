//! The part of a configuration that can change while the gateway runs.

use std::sync::Arc;
use std::time::Duration;

use access::Demand;

use crate::auth::{AllowedHosts, Cors, TrustedProxies};
use crate::bridge::BridgeTable;
use crate::event_types::TypeRegistry;
use crate::intakes::IntakeTable;
use crate::object_readers::ObjectReaders;

/// The part of a configuration that can change while the gateway runs.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) types: Arc<TypeRegistry>,
    /// Which requests need a token.
    pub(crate) demand: Demand,
    /// Which requests to read events need one.
    pub(crate) read_demand: Demand,
    /// The sinks whose objects can be read.
    pub(crate) objects: ObjectReaders,
    pub(crate) bridges: BridgeTable,
    pub(crate) intakes: IntakeTable,
    pub(crate) proxies: TrustedProxies,
    pub(crate) hosts: AllowedHosts,
    pub(crate) cors: Option<Cors>,
    /// How long a request with `Forebay-Ack: stored` waits at most.
    pub(crate) ack_timeout: Duration,
    /// How long a connection may be idle between two requests.
    pub(crate) idle_timeout: Duration,
}
