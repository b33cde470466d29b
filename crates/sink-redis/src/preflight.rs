//! The look at a server before anything is written to it: whether it takes writes, whether it may throw away what it
//! holds, and what it loses when it crashes.

use std::collections::HashMap;

use super::deployment::Deployment;
use super::error::{Failure, replica};
use super::protocol::Command;
use super::session::Session;

/// The oldest version whose scripts refuse the first write or none.
const VERSION_MIN: u32 = 7;
const FSYNC: &str = "appendfsync";
const MIN_REPLICAS: &str = "min-replicas-to-write";

/// Asks the server, and says what it may lose although it has answered; none where that is nothing. A server that can't be written to, or
/// that might throw away a cursor, is a failure.
pub(super) async fn inspect(session: &mut Session, deployment: &Deployment) -> Result<Option<String>, Failure> {
    let info = session.call(Command::new(&["INFO"])).await?;
    let info = info.text().ok_or(Failure::Odd("INFO was answered with something else than a text"))?;
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

/// What the server tells of its settings.
async fn settings(session: &mut Session) -> Result<HashMap<String, String>, Failure> {
    match session.call(Command::new(&["CONFIG", "GET", FSYNC, MIN_REPLICAS])).await {
        Ok(answer) => Ok(answer.pairs().unwrap_or_default()),
        // Many who rent a server out keep CONFIG to themselves.
        Err(Failure::Server(_)) => Ok(HashMap::new()),
        Err(failure) => Err(failure),
    }
}

fn fields(info: &str) -> HashMap<&str, &str> {
    info.lines().filter_map(|line| line.trim_end().split_once(':')).collect()
}

/// Judges what INFO says of whether the server can be written to.
fn check(info: &str, deployment: &Deployment) -> Result<(), Failure> {
    let fields = fields(info);
    let field = |name: &str| fields.get(name).copied().unwrap_or_default();
    let version = field("redis_version");
    if version.split('.').next().and_then(|major| major.parse().ok()).is_none_or(|major: u32| major < VERSION_MIN) {
        let why = format!("its version is {version:?}: {VERSION_MIN}.0 or later is needed");
        return Err(Failure::Unfit(why));
    }
    let mode = field("redis_mode");
    let wanted = if matches!(deployment, Deployment::Cluster(_)) { "cluster" } else { "standalone" };
    if mode != wanted {
        let help = match mode {
            "sentinel" => "name it in `sentinels`, and in `url` what it calls the master",
            "cluster" => "set cluster = true",
            "standalone" => "it is no part of a cluster: leave out `cluster`",
            _ => "name a server of its own in `url`",
        };
        return Err(Failure::Unfit(format!("it runs as a {mode}: {help}")));
    }
    if field("loading") != "0" {
        return Err(Failure::NotReady("it reads its data, and goes on by itself".to_owned()));
    }
    if field("role") != "master" {
        return Err(Failure::NotReady(replica(deployment).to_owned()));
    }
    let policy = field("maxmemory_policy");
    if policy != "noeviction" {
        let why = format!(
            "its maxmemory-policy is {policy:?}: it might throw away what was stored, and the cursor that says what was; \
             set maxmemory-policy noeviction"
        );
        return Err(Failure::Unfit(why));
    }
    Ok(())
}

/// What a crash loses, by what INFO and CONFIG say.
fn persistence(info: &str, fsync: Option<&str>) -> Option<&'static str> {
    match (fields(info).get("aof_enabled").copied().unwrap_or_default(), fsync) {
        ("1", Some("always")) => None,
        ("1", Some("everysec")) => Some(
            "with appendfsync everysec a crash of its machine loses what it stored in the last second or two, and Forebay \
             delivers that again",
        ),
        ("1", Some("no")) => Some(
            "with appendfsync no a crash of its machine loses what the system hadn't written to the disk: Forebay delivers \
             again what is missing of the last minute, and stops the lane where more is",
        ),
        ("1", _) => Some(
            "it doesn't tell its appendfsync (CONFIG GET is refused): where that isn't `always`, a crash of its machine loses \
             the last seconds or more",
        ),
        _ => Some(
            "without appendonly a restart loses everything since the last snapshot: Forebay delivers again what is missing of \
             the last minute, and stops the lane where more is; set appendonly yes",
        ),
    }
}

/// What a failover loses, by what CONFIG says of the replicas that must follow.
fn failover(min_replicas: Option<&str>) -> &'static str {
    match min_replicas {
        Some("0") => {
            "a failover loses what the replica hadn't got yet, and Forebay delivers again what is missing of the last minute; with \
             min-replicas-to-write 0 a master that is cut off goes on taking what is lost then: set min-replicas-to-write 1"
        }
        Some(_) => {
            "a failover loses what the replica hadn't got yet, and Forebay delivers again what is missing of the last minute"
        }
        None => {
            "a failover loses what the replica hadn't got yet, and Forebay delivers again what is missing of the last minute; it \
             doesn't tell its min-replicas-to-write (CONFIG GET is refused): where that is 0, a master that is cut off goes on \
             taking what is lost then"
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
    fn a_server_that_could_lose_a_cursor_or_takes_no_writes_is_refused() {
        for (change, words) in [
            (("redis_version", "6.2.7"), "7.0 or later"),
            (("redis_version", ""), "7.0 or later"),
            (("redis_mode", "cluster"), "cluster = true"),
            (("redis_mode", "sentinel"), "`sentinels`"),
            (("maxmemory_policy", "allkeys-lru"), "allkeys-lru"),
            (("maxmemory_policy", "volatile-ttl"), "noeviction"),
        ] {
            let Err(Failure::Unfit(why)) = check(&info(&[change]), &Deployment::Alone) else { panic!("{change:?}") };
            assert!(why.contains(words), "{why}");
        }
        for change in [("loading", "1"), ("role", "slave")] {
            assert!(matches!(check(&info(&[change]), &Deployment::Alone), Err(Failure::NotReady(_))), "{change:?}");
        }
    }

    #[test]
    fn what_a_crash_may_lose_is_said() {
        let warning = |aof, fsync| persistence(&info(&[("aof_enabled", aof)]), fsync);
        assert_eq!(warning("1", Some("always")), None);
        for (aof, fsync, words) in [
            ("1", Some("everysec"), "everysec"),
            ("1", Some("no"), "appendfsync no"),
            ("1", None, "doesn't tell"),
            ("0", Some("always"), "without appendonly"),
        ] {
            assert!(warning(aof, fsync).unwrap().contains(words), "{aof} {fsync:?}");
        }
        for (min, words) in
            [(Some("0"), "set min-replicas-to-write 1"), (Some("1"), "last minute"), (None, "doesn't tell")]
        {
            assert!(failover(min).contains(words), "{min:?}");
        }
        assert!(!failover(Some("1")).contains("min-replicas"), "nothing is left to be done");
    }
}
