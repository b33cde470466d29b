//! `[gateway]`: where Forebay listens, and how it takes events.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::{NonZeroU16, NonZeroUsize};
use std::time::Duration;

use access::{Demand, Scope};
use ipnet::IpNet;
use json::JsonPointer;
use limits::memory::Budgets;
use settings::{
    ADDRESS, Diagnostic, InvalidValue, Located, POINTER, Section, Setting, SettingsReader, TEXTS, Unset, duration,
    names, pointer,
};

use crate::event_types::type_rules::{self, Naming};
use crate::inputs::Inputs;
use crate::port::address::{Port, address, default_of_image, demand, is_loopback};
use crate::port::hosts;
use crate::port::origins;
use crate::port::proxies;
use crate::port::tls;
use crate::port::tls_files::TlsFiles;
use crate::port::tokens;
use crate::sinks::object_serving;
use crate::stopping::{self, Stopping};
use crate::token_file::TokenFile;

/// The settings of `[gateway]`.
pub(crate) const SETTINGS: &[Setting] = &[
    Setting::new(
        "listen",
        ADDRESS,
        "the address for events, also `--listen ADDR`; port 0 chooses a free one. An address that isn't loopback needs a token with the scope \
         `ingest` ([authentication](../../guides/authenticate.md)), or `allow_anonymous = true`",
    )
    .or(Unset::Text("127.0.0.1:8080"))
    .restart(),
    Setting::new(
        "admin",
        ADDRESS,
        "the address of metrics and the admin API, also `--admin ADDR`. An address that isn't loopback needs a token with the scope `admin`",
    )
    .or(Unset::Text("127.0.0.1:9000"))
    .restart(),
    ALLOW_ANONYMOUS,
    SHARDS,
    Setting::new(
        "type_pointer",
        POINTER,
        "the JSON pointer (RFC 6901) to the type within a payload, for events whose path and headers name no type",
    )
    .example("\"/type\""),
    type_rules::RULES,
    type_rules::UNKNOWN,
    Setting::new(
        "cors_origins",
        TEXTS,
        "the origins whose web pages may post events, read them back and see the responses (CORS), as browsers write them: \
         `https://app.example`, `http://localhost:3000`; or `\"*\"` alone, for all",
    )
    .example("[\"https://app.example\"]"),
    Setting::new(
        "allowed_hosts",
        TEXTS,
        "host names for requests without a token to an intake port on loopback: `events.example.com`, without port; or `\"*\"` for all. \
         IP addresses and `localhost` are always allowed ([web pages](../../guides/browsers.md#rules))",
    )
    .example("[\"events.example\"]"),
    Setting::new(
        "trusted_proxies",
        TEXTS,
        "addresses and networks of proxies, as `10.0.0.7`, `10.0.0.0/8` or `fd00::/8`. Forebay trusts `X-Forwarded-For` and `Forwarded` from \
         them only ([behind a proxy](../../guides/behind-a-proxy.md#rules-for-addresses))",
    )
    .example("[\"10.0.0.0/8\"]"),
    CONNECTIONS,
    CONNECTIONS_OF_CLIENT,
    ACK_TIMEOUT,
    IDLE_TIMEOUT,
    object_serving::CACHE,
    MEMORY,
    stopping::DELAY,
    stopping::DELIVER,
    tokens::TOKEN_FILE,
];
const ALLOW_ANONYMOUS: Setting = Setting::flag(
    "allow_anonymous",
    "`true` lets every client that reaches the `listen` address post events without a token. Reading events back still needs a token, unless \
     the address is loopback",
);
/// A shard is a thread with a separate journal; more shards than cores are of no use.
const SHARDS_MAX: u16 = 1024;
const SHARDS: Setting = Setting::integer(
    "shards",
    (1, SHARDS_MAX as i64),
    "threads that accept events, each with its [shard](../../concepts/glossary.md#shard) of the journal",
)
.or(Unset::Described("cores − 1, at least 1"))
.example("2")
.restart();
/// As many descriptors as Linux lets a process have by default (`fs.nr_open`).
const CONNECTIONS_MAX: i64 = 1 << 20;
const CONNECTIONS: Setting = Setting::integer(
    "max_connections",
    (1, CONNECTIONS_MAX),
    "concurrent connections on the `listen` address. More wait in the kernel's queue ([connections](gateway.md#connections))",
)
.or(Unset::Described("50000, or less if memory is limited"))
.example("50000");
const CONNECTIONS_OF_CLIENT: Setting = Setting::integer(
    "max_connections_per_client",
    (1, CONNECTIONS_MAX),
    "concurrent connections of one client: an IPv4 address or an IPv6 /64. More are closed immediately ([connections](gateway.md#connections))",
)
.or(Unset::Described("half of `max_connections`, at most 25000"))
.example("25000");
const ACK_TIMEOUT: Setting = Setting::duration(
    "ack_timeout",
    (limits::ACK_TIMEOUT_MIN, limits::ACK_TIMEOUT_MAX),
    "the longest wait for `Forebay-Ack: stored` ([acknowledgement levels](../http-ingest.md#acknowledgement-levels)). Checked once a second",
)
.or(Unset::Duration(limits::ACK_TIMEOUT));
const IDLE_TIMEOUT: Setting = Setting::duration(
    "idle_timeout",
    (limits::IDLE_TIMEOUT_MIN, limits::IDLE_TIMEOUT_MAX),
    "how long a connection on the `listen` address may be idle between two requests, in whole seconds ([connections](gateway.md#connections))",
)
.or(Unset::Duration(limits::IDLE_TIMEOUT));
/// The least of it is a matter of the sinks: see [`crate::memory`].
const MEMORY: Setting = Setting::size(
    "memory",
    (limits::MEMORY_SET_MIN, limits::MEMORY_SET_MAX),
    "the memory that the process may use. All budgets are derived from it ([memory](../../concepts/resources.md#memory))",
)
.or(Unset::Described("the limit of the control group"))
.example("\"512MiB\"")
.restart();

const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);
/// The default of the admin address.
pub const ADMIN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9000);
const CONNECTIONS_PER_CLIENT: NonZeroUsize = NonZeroUsize::new(limits::CONNECTIONS_PER_CLIENT_MAX).unwrap();

/// The intake port and its limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayConfig {
    /// The address of the intake port.
    pub listen: SocketAddr,
    /// The address of the admin port.
    pub admin: SocketAddr,
    /// Whether clients of the intake port may post without a token.
    pub allow_anonymous: bool,
    /// The number of shards, if the configuration fixes it; see [`GatewayConfig::shards_for`].
    pub shards: Option<NonZeroU16>,
    /// The JSON pointer to an event's type within its payload.
    pub type_pointer: Option<JsonPointer>,
    /// The rules for events whose type isn't named, or is unknown.
    pub naming: Naming,
    /// The origins whose web pages may post.
    pub cors_origins: Vec<String>,
    /// The names by which requests without a token may call a port on loopback.
    pub allowed_hosts: Vec<String>,
    /// The proxies whose forwarding headers are trusted.
    pub trusted_proxies: Vec<IpNet>,
    /// Connections on the intake port, if the configuration limits them; see [`GatewayConfig::connections_wanted`].
    pub max_connections: Option<NonZeroUsize>,
    /// Connections of one client, if the configuration limits them; see [`GatewayConfig::connections_wanted`].
    pub max_connections_per_client: Option<NonZeroUsize>,
    /// How long clients wait at most that want their events to be stored.
    pub ack_timeout: Duration,
    /// How long a connection may be idle between two requests.
    pub idle_timeout: Duration,
    /// How many bytes of objects are in memory for those who read them, if the configuration says so.
    pub object_cache: Option<u64>,
    /// Bytes of memory that the process may take, if the configuration says how many.
    pub memory: Option<u64>,
    /// The times of a stop.
    pub stopping: Stopping,
    /// The file of tokens.
    pub tokens: TokenFile,
    /// The certificate of the intake port, if it uses TLS.
    pub tls: Option<TlsFiles>,
}

/// Limits of concurrent connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Of all clients together.
    pub all: usize,
    /// Of one client.
    pub per_client: usize,
}

impl GatewayConfig {
    /// Which requests on the intake port need a token.
    pub fn demand(&self) -> Demand {
        demand(self.allow_anonymous, self.listen)
    }

    /// Which requests to read events need a token. A gateway that lets all clients post doesn't yet let all clients
    /// read.
    pub fn read_demand(&self) -> Demand {
        if is_loopback(self.listen) { Demand::WithTokens } else { Demand::Always }
    }

    /// The names by which requests without a token may call the intake port; `None` if other machines reach it.
    pub fn hosts(&self) -> Option<Vec<String>> {
        is_loopback(self.listen).then(|| self.allowed_hosts.clone())
    }

    /// Whether the admin port can be reached from elsewhere.
    pub fn admin_is_reachable(&self) -> bool {
        !is_loopback(self.admin)
    }

    /// How many connections there should be room for: as configured, else as many as there is memory for. Unless the configuration says
    /// otherwise, one client has at most half of them.
    pub fn connections_wanted(&self, memory: &Budgets) -> ConnectionLimits {
        let all = self.max_connections.map_or(memory.connections, NonZeroUsize::get);
        let half = (all / 2).clamp(1, CONNECTIONS_PER_CLIENT.get());
        ConnectionLimits { all, per_client: self.max_connections_per_client.map_or(half, NonZeroUsize::get) }
    }

    /// The number of shards on a machine with `cores`: as configured, else all cores but one, at least one.
    pub fn shards_for(&self, cores: NonZeroUsize) -> NonZeroU16 {
        let spare = u16::try_from(cores.get() - 1).unwrap_or(SHARDS_MAX).min(SHARDS_MAX);
        self.shards.or(NonZeroU16::new(spare)).unwrap_or(NonZeroU16::MIN)
    }
}

/// Reads the table. If there is an intake with signatures, an address that isn't loopback needs no token.
pub(crate) fn read(
    reader: &mut SettingsReader<'_>,
    section: &Section<'_>,
    inputs: &Inputs<'_>,
    has_signed_intake: bool,
) -> GatewayConfig {
    reader.check_keys(section, names(SETTINGS).chain([tls::TABLE]));
    let flags = inputs.flags;
    let configured = reader.text_or_flag(section, "listen", flags.listen.as_deref(), address);
    let is_default_of_image = configured.is_none();
    let listen = configured.or_else(|| default_of_image(reader, LISTEN));
    let admin = reader.text_or_flag(section, "admin", flags.admin.as_deref(), address);
    let allow_anonymous = reader.boolean_or_default(section, &ALLOW_ANONYMOUS);
    let tls = tls::read(reader, section, inputs.folder);
    let (tokens, scopes) = tokens::read(reader, section, inputs);

    let port = Port { table: "gateway", all: "post", scope: Scope::Ingest, is_default_of_image, has_signed_intake };
    port.check_reach(reader, (listen.as_ref(), admin.as_ref()), allow_anonymous, scopes);
    check_distinct(reader, listen.as_ref(), admin.as_ref());
    GatewayConfig {
        listen: listen.map_or(LISTEN, |found| found.value),
        admin: admin.map_or(ADMIN, |found| found.value),
        allow_anonymous,
        shards: reader.number(section, &SHARDS).and_then(|found| NonZeroU16::new(found.value)),
        type_pointer: reader.text(section, "type_pointer", pointer::parse).map(|found| found.value),
        // Read when the types are known.
        naming: Naming::default(),
        cors_origins: origins::read(reader, section, "cors_origins"),
        allowed_hosts: hosts::read(reader, section, "allowed_hosts"),
        trusted_proxies: proxies::read(reader, section, "trusted_proxies"),
        max_connections: reader.count(section, &CONNECTIONS).map(|found| found.value),
        max_connections_per_client: reader.count(section, &CONNECTIONS_OF_CLIENT).map(|found| found.value),
        ack_timeout: reader.duration_or_default(section, &ACK_TIMEOUT),
        idle_timeout: reader
            .text(section, IDLE_TIMEOUT.name, idle_timeout)
            .map_or(limits::IDLE_TIMEOUT, |found| found.value),
        object_cache: reader.size(section, &object_serving::CACHE).map(|found| found.value),
        memory: reader.size(section, &MEMORY).map(|found| found.value),
        stopping: stopping::read(reader, section),
        tokens,
        tls,
    }
}

/// In whole seconds, as the header `Keep-Alive` has it.
fn idle_timeout(text: &str) -> Result<Duration, InvalidValue> {
    let found = duration::within(text, limits::IDLE_TIMEOUT_MIN, limits::IDLE_TIMEOUT_MAX)?;
    match found.subsec_nanos() {
        0 => Ok(found),
        _ => Err(InvalidValue::new("has a part of a second", "expected whole seconds, as \"620s\"".to_owned())),
    }
}

fn check_distinct(
    reader: &mut SettingsReader<'_>,
    listen: Option<&Located<SocketAddr>>,
    admin: Option<&Located<SocketAddr>>,
) {
    let at = |found: Option<&Located<SocketAddr>>, default| found.map_or(default, |found| found.value);
    if !collide(at(listen, LISTEN), at(admin, ADMIN)) {
        return;
    }
    let title = "conflict: the intake port and the admin port are the same";
    let mistake = match (listen, admin) {
        (Some(listen), Some(admin)) => {
            Diagnostic::new(title, admin.span.clone(), "the admin port").also(listen.span.clone(), "the intake port")
        }
        (Some(found), None) => Diagnostic::new(title, found.span.clone(), format!("the admin port is {ADMIN}")),
        (None, Some(found)) => Diagnostic::new(title, found.span.clone(), format!("the intake port is {LISTEN}")),
        (None, None) => return,
    };
    reader.push(mistake);
}

/// Port 0 asks the system for a free one, which collides with nothing.
pub(crate) fn collide(one: SocketAddr, other: SocketAddr) -> bool {
    let same_ip = one.ip() == other.ip() || one.ip().is_unspecified() || other.ip().is_unspecified();
    one.port() == other.port() && one.port() != 0 && same_ip
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_core_is_left_to_delivery() {
        let gateway = |shards| GatewayConfig {
            listen: LISTEN,
            admin: ADMIN,
            allow_anonymous: false,
            shards: NonZeroU16::new(shards),
            type_pointer: None,
            naming: Naming::default(),
            cors_origins: Vec::new(),
            allowed_hosts: Vec::new(),
            trusted_proxies: Vec::new(),
            max_connections: None,
            max_connections_per_client: None,
            ack_timeout: limits::ACK_TIMEOUT,
            idle_timeout: limits::IDLE_TIMEOUT,
            object_cache: None,
            memory: None,
            stopping: Stopping { delay: Duration::ZERO, deliver: Duration::ZERO },
            tokens: TokenFile::within(std::path::Path::new("")),
            tls: None,
        };
        for (configured, cores, shards) in [(0, 1, 1), (0, 2, 1), (0, 8, 7), (0, 1 << 20, SHARDS_MAX), (5, 2, 5)] {
            let cores = NonZeroUsize::new(cores).unwrap();
            assert_eq!(gateway(configured).shards_for(cores).get(), shards);
        }
    }

    #[test]
    fn addresses_collide_on_one_port() {
        let collides = |one: &str, other: &str| collide(one.parse().unwrap(), other.parse().unwrap());
        assert!(collides("127.0.0.1:1", "127.0.0.1:1"));
        assert!(collides("0.0.0.0:1", "127.0.0.1:1"));
        assert!(!collides("127.0.0.1:1", "127.0.0.1:2"));
        assert!(!collides("127.0.0.1:0", "127.0.0.1:0"));
        assert!(!collides("127.0.0.1:1", "127.0.0.2:1"));
    }
}
