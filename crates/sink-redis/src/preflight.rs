//! Checks a server before anything is written to it: whether it accepts writes, whether it may evict data, and what it
//! loses in a crash.

use std::collections::HashMap;

use super::deployment::Deployment;
use super::error::{Failure, replica};
use super::protocol::Command;
use super::session::Session;

/// The oldest version whose scripts reject the first write or none.
const VERSION_MIN: u32 = 7;
const FSYNC: &str = "appendfsync";
const MIN_REPLICAS: &str = "min-replicas-to-write";

/// Checks the server, and returns what it may lose although it has confirmed the write, if anything. A server that
/// rejects writes, or that might evict a cursor, is a failure.
pub(super) async fn inspect(session: &mut Session, deployment: &Deployment) -> Result<Option<String>, Failure> {
    let info = session.call(Command::new(&["INFO"])).await?;
    let info = info.text().ok_or(Failure::Unexpected(
        "the response to INFO isn't a text: check that `url` is the URL of a Redis server",
    ))?;
    check(&info, deployment)?;
    let settings = settings(session).await?;
    let persistence = persistence(&info, settings.get(FSYNC).map(String::as_str));
    let failover = match deployment {
        Deployment::Alone => None,
        Deployment::Watched(_) | Deployment::Cluster(_) => {
            Some(failover(settings.get(MIN_REPLICAS).map(String::as_str)))
        }
    };
    let warnings: Vec<&str> = persistence.into_iter().chain(failover).collect();
    Ok(Some(warnings.join("; ")).filter(|text| !text.is_empty()))
}

/// Reads the server's settings.
async fn settings(session: &mut Session) -> Result<HashMap<String, String>, Failure> {
    match session.call(Command::new(&["CONFIG", "GET", FSYNC, MIN_REPLICAS])).await {
        Ok(answer) => Ok(answer.pairs().unwrap_or_default()),
        // Many hosting providers disable CONFIG.
        Err(Failure::Server(_)) => Ok(HashMap::new()),
        Err(failure) => Err(failure),
    }
}

fn fields(info: &str) -> HashMap<&str, &str> {
    info.lines().filter_map(|line| line.trim_end().split_once(':')).collect()
}

/// Checks by INFO whether the server can be written to.
fn check(info: &str, deployment: &Deployment) -> Result<(), Failure> {
    let fields = fields(info);
    let field = |name: &str| fields.get(name).copied().unwrap_or_default();
    let version = field("redis_version");
    if version.split('.').next().and_then(|major| major.parse().ok()).is_none_or(|major: u32| major < VERSION_MIN) {
        let why = format!("its version is {version:?}: upgrade it to {VERSION_MIN}.0 or later");
        return Err(Failure::Misfit(why));
    }
    let mode = field("redis_mode");
    let wanted = if matches!(deployment, Deployment::Cluster(_)) { "cluster" } else { "standalone" };
    if mode != wanted {
        let help = match mode {
            "sentinel" => "name it in `sentinels`, and the master's name in `url`",
            "cluster" => "set cluster = true",
            "standalone" => "the server isn't part of a cluster: remove `cluster`",
            _ => "set `url` to a standalone server",
        };
        return Err(Failure::Misfit(format!("it runs as a {mode}: {help}")));
    }
    if field("loading") != "0" {
        return Err(Failure::NotReady("the server is loading its data: Forebay waits for it".to_owned()));
    }
    if field("role") != "master" {
        return Err(Failure::NotReady(replica(deployment).to_owned()));
    }
    let policy = field("maxmemory_policy");
    if policy != "noeviction" {
        let why = format!(
            "its maxmemory-policy is {policy:?}: the server may evict stored events and their cursor; set \
             maxmemory-policy noeviction"
        );
        return Err(Failure::Misfit(why));
    }
    Ok(())
}

/// What a crash loses, according to INFO and CONFIG.
fn persistence(info: &str, fsync: Option<&str>) -> Option<&'static str> {
    match (fields(info).get("aof_enabled").copied().unwrap_or_default(), fsync) {
        ("1", Some("always")) => None,
        ("1", Some("everysec")) => Some(
            "with appendfsync everysec, a crash of the server's machine loses the last one or two seconds, and Forebay \
             delivers these events again",
        ),
        ("1", Some("no")) => Some(
            "with appendfsync no, a crash of the server's machine loses data that isn't on disk. Forebay redelivers \
             the last minute, and stops the lane if more is missing",
        ),
        ("1", _) => Some(
            "the server hides appendfsync (CONFIG GET is rejected): unless it is `always`, a crash of its machine \
             loses the last seconds or more",
        ),
        _ => Some(
            "appendonly is off: a restart loses everything since the last snapshot. Forebay redelivers the last \
             minute, and stops the lane if more is missing. Set appendonly yes",
        ),
    }
}

/// What a failover loses, according to the required number of replicas in CONFIG.
fn failover(min_replicas: Option<&str>) -> &'static str {
    match min_replicas {
        Some("0") => {
            "a failover loses what the replica hasn't received, and Forebay redelivers the last minute. With \
             min-replicas-to-write 0, an isolated master accepts writes that get lost: set min-replicas-to-write 1"
        }
        Some(_) => "a failover loses what the replica hasn't received, and Forebay redelivers the last minute",
        None => {
            "a failover loses what the replica hasn't received, and Forebay redelivers the last minute. The server \
             hides min-replicas-to-write (CONFIG GET is rejected): at 0, an isolated master accepts writes that get \
             lost"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(changes: &[(&str, &str)]) -> String {
        let usual = [
            ("redis_version", "7.0.15"),
            ("redis_mode", "standalone"),
            ("loading", "0"),
            ("role", "master"),
            ("maxmemory_policy", "noeviction"),
            ("aof_enabled", "1"),
        ];
        let value = |name, value| changes.iter().find(|(changed, _)| *changed == name).map_or(value, |change| change.1);
        usual.iter().map(|(name, usual)| format!("# Part\r\n{name}:{}\r\n", value(*name, *usual))).collect()
    }

    #[test]
    fn unsuitable_server_is_rejected() {
        for (change, words) in [
            (("redis_version", "6.2.7"), "7.0 or later"),
            (("redis_version", ""), "7.0 or later"),
            (("redis_mode", "cluster"), "cluster = true"),
            (("redis_mode", "sentinel"), "`sentinels`"),
            (("maxmemory_policy", "allkeys-lru"), "allkeys-lru"),
            (("maxmemory_policy", "volatile-ttl"), "noeviction"),
        ] {
            let Err(Failure::Misfit(why)) = check(&info(&[change]), &Deployment::Alone) else { panic!("{change:?}") };
            assert!(why.contains(words), "{why}");
        }
        for change in [("loading", "1"), ("role", "slave")] {
            assert!(matches!(check(&info(&[change]), &Deployment::Alone), Err(Failure::NotReady(_))), "{change:?}");
        }
    }

    #[test]
    fn possible_losses_are_reported() {
        let warning = |aof, fsync| persistence(&info(&[("aof_enabled", aof)]), fsync);
        assert_eq!(warning("1", Some("always")), None);
        for (aof, fsync, words) in [
            ("1", Some("everysec"), "everysec"),
            ("1", Some("no"), "appendfsync no"),
            ("1", None, "hides"),
            ("0", Some("always"), "appendonly is off"),
        ] {
            assert!(warning(aof, fsync).unwrap().contains(words), "{aof} {fsync:?}");
        }
        for (min, words) in [(Some("0"), "set min-replicas-to-write 1"), (Some("1"), "last minute"), (None, "hides")] {
            assert!(failover(min).contains(words), "{min:?}");
        }
        assert!(!failover(Some("1")).contains("min-replicas"), "no advice is necessary");
    }
}
