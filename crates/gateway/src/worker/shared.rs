//! What shards are told, and what they share.

use std::net::{IpAddr, TcpStream as StdStream};
use std::sync::Arc;
use std::sync::mpsc::Sender as EndOfWait;
use std::time::Duration;

use access::{Demand, Tokens};
use event::memory::Budgets;
use eventlog::{ContentHash, Outcomes, Shard};
use net::tls::ServerTls;

use crate::admission::Admission;
use crate::cors::Cors;
use crate::counters::GatewayCounters;
use crate::http1::connection::Look;
use crate::pages::Hosts;
use crate::places::Place;
use crate::proxies::TrustedProxies;
use crate::read::{ObjectReaders, ReadRoom};
use crate::readiness::Readiness;
use crate::type_table::TypeTable;

/// What a shard's thread is told.
pub(crate) enum Message {
    /// Here is a connection.
    Open(Handed),
    /// A second has passed, or a part of it: it is time to look at these connections.
    Tick(Look),
    /// From now on these hold; whoever waits for that is told by the sender's end.
    Rules(Arc<Rules>, EndOfWait<()>),
    /// Let requests finish, close connections, and end.
    Finish,
    /// End though requests are in flight.
    Abort,
}

/// A connection on its way from the listener to a shard.
pub(crate) struct Handed {
    pub(crate) stream: StdStream,
    pub(crate) client: IpAddr,
    /// Its place among those that may be open.
    pub(crate) place: Place,
}

/// What of a configuration can change while requests are taken.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) types: Arc<TypeTable>,
    /// Which requests need a token.
    pub(crate) demand: Demand,
    /// Which requests to read events need one.
    pub(crate) read_demand: Demand,
    /// Whose objects can be read.
    pub(crate) objects: ObjectReaders,
    /// Who is believed to say whose requests it sends.
    pub(crate) proxies: TrustedProxies,
    /// By which names this server may be called without a token.
    pub(crate) hosts: Hosts,
    /// Whose web pages may ask, if any.
    pub(crate) cors: Option<Cors>,
    /// How long clients wait at most that want their events to be stored.
    pub(crate) ack_timeout: Duration,
}

/// What all shards share.
#[derive(Clone)]
pub(crate) struct Common {
    /// As they are at the start.
    pub(crate) rules: Arc<Rules>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) counters: Arc<GatewayCounters>,
    pub(crate) readiness: Arc<Readiness>,
    pub(crate) content_hash: ContentHash,
    pub(crate) read_room: Arc<ReadRoom>,
    pub(crate) memory: Budgets,
    /// What became of events.
    pub(crate) outcomes: Arc<Outcomes>,
    /// All shards: a first copy may stand in any.
    pub(crate) shards: Arc<[Arc<Shard>]>,
    pub(crate) tokens: Arc<Tokens>,
    /// What is shown to clients, where they must speak TLS.
    pub(crate) tls: Option<Arc<ServerTls>>,
}
