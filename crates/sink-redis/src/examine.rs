//! Examines a server or a cluster: version, settings, clock, memory and rights. It changes nothing.

use std::time::Duration;

use sink::Examination;

use super::cluster::Map;
use super::config::RedisConfig;
use super::connecting;
use super::deployment::Deployment;
use super::error::Failure;
use super::protocol::{Answer, Command};
use super::session::Session;

/// From this share of `maxmemory` on, the server soon rejects writes.
const FULL_PERCENT: u64 = 90;
/// A script as Forebay's are, which only reads: the server checks the rights to scripts and to the key.
const SCRIPT: &str = "return redis.call('exists', KEYS[1])";

/// Examines the server to write to, or at all nodes of the cluster.
pub(super) async fn examine(config: &RedisConfig) -> Result<Examination, Failure> {
    let mut found = Examination::default();
    let is_cluster = matches!(config.deployment, Deployment::Cluster(_));
    let (mut session, warning) = if is_cluster {
        let map = Map::default();
        map.connect(config).await?;
        let node = &config.server.address;
        (Session::open(node, &config.server, config.ca.as_deref(), config.timeout).await?, map.warning())
    } else {
        connecting::open(config).await?
    };
    let info = session.call(Command::new(&["INFO"])).await?.text().unwrap_or_default();
    let field =
        |name: &str| info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim_end);
    found.see(format!("Redis {}", field("redis_version").unwrap_or("of an unknown version")));
    found.warn_of_loss(warning);
    let bytes = |name| field(name).and_then(|text| text.parse().ok()).unwrap_or(0_u64);
    let (used, max) = (bytes("used_memory"), bytes("maxmemory"));
    if max > 0 && used >= max / 100 * FULL_PERCENT {
        found.warn(
            format!(
                "it uses {} MiB of maxmemory ({} MiB), and rejects writes when that is full",
                used >> 20,
                max >> 20
            ),
            "Raise maxmemory, or set `max_entries` for streams and lists",
        );
    }
    check_clock(&mut session, &mut found).await?;
    // In a cluster the key may belong to another node.
    if !is_cluster {
        let key = config.key.own().cursors;
        session.call(Command::new(&["EVAL", SCRIPT, "1", &key])).await?;
        found.see("the user may run scripts on Forebay's keys");
    }
    Ok(found)
}

async fn check_clock(session: &mut Session, found: &mut Examination) -> Result<(), Failure> {
    found.begin_clock();
    match session.call(Command::new(&["TIME"])).await {
        Ok(answer) => {
            if let Some(time) = time(answer) {
                found.compare_clock(time, Duration::ZERO);
            }
            Ok(())
        }
        // A user may not be allowed to ask.
        Err(Failure::Server(said)) => {
            found.skip(format!("its clock: {said}"));
            Ok(())
        }
        Err(failure) => Err(failure),
    }
}

/// Seconds and microseconds since 1970.
fn time(answer: Answer) -> Option<Duration> {
    let [seconds, microseconds] = answer.texts()?.try_into().ok()?;
    Some(Duration::from_secs(seconds.parse().ok()?) + Duration::from_micros(microseconds.parse().ok()?))
}
