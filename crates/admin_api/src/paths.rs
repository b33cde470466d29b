//! The paths of the admin port.

pub const ACTIONS: &str = "/api/actions";
pub const API_HEALTH: &str = "/api/health";
pub const API_LIVE: &str = "/api/live";
pub const API_OVERVIEW: &str = "/api/overview";
pub const API_TAP: &str = "/api/tap";
pub const CONFIG: &str = "/api/config";
pub const DEAD: &str = "/api/dead";
pub const DEBUG_HEAP: &str = "/debug/heap";
pub const DEBUG_MEMORY: &str = "/debug/memory";
pub const DEBUG_PROFILE: &str = "/debug/profile";
pub const DEBUG_SHARDS: &str = "/debug/shards";
pub const EVENTS: &str = "/api/events";
pub const EVENT_TYPES: &str = "/api/types";
pub const HEALTH: &str = "/healthz";
pub const HISTORY: &str = "/api/history";
pub const JOBS: &str = "/api/jobs";
pub const LOG: &str = "/api/log";
pub const METRICS: &str = "/metrics";
pub const PEERS: &str = "/api/peers";
pub const READY: &str = "/readyz";
pub const REFUSED: &str = "/api/refused";
pub const RELOAD: &str = "/api/reload";
pub const ROUTES: &str = "/api/routes";
pub const SESSION: &str = "/api/session";
pub const STATUS: &str = "/api/status";
pub const TRY: &str = "/api/try";
