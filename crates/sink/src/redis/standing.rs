//! The look at a server before anything is written to it: whether it takes writes, whether it may throw away what it
//! holds, and what it loses when it crashes.

use std::collections::HashMap;

use super::failure::Failure;
use super::session::Session;
use super::wire::{Answer, Command};

/// The oldest version whose scripts refuse the first write or none.
const VERSION_MIN: u32 = 7;

/// What a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    /// What it may lose although it has answered; none where that is nothing.
    pub(super) caution: Option<&'static str>,
}

impl Standing {
    /// Asks the server. One that can't be written to, or that might throw away a cursor, is a failure.
    pub(super) async fn of(session: &mut Session) -> Result<Self, Failure> {
        let info = match session.call(Command::new(&[b"INFO"])).await? {
            Answer::Text(text) => text,
            _ => return Err(Failure::Odd("INFO was answered with something else than a text")),
        };
        let fsync = appendfsync(session).await?;
        judge(&info, fsync.as_deref())
    }
}

/// When the server's log is brought to the disk; nothing where the server doesn't tell.
async fn appendfsync(session: &mut Session) -> Result<Option<String>, Failure> {
    match session.call(Command::new(&[b"CONFIG", b"GET", b"appendfsync"])).await {
        Ok(Answer::List(pair)) => Ok(pair.into_iter().nth(1).and_then(|value| match value {
            Answer::Text(text) => Some(text),
            _ => None,
        })),
        // Many who rent a server out keep CONFIG to themselves.
        Ok(_) | Err(Failure::Server(_)) => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Judges what INFO and CONFIG say.
fn judge(info: &str, fsync: Option<&str>) -> Result<Standing, Failure> {
    let fields: HashMap<&str, &str> = info.lines().filter_map(|line| line.trim_end().split_once(':')).collect();
    let field = |name: &str| fields.get(name).copied().unwrap_or_default();
    let version = field("redis_version");
    if version.split('.').next().and_then(|major| major.parse().ok()).is_none_or(|major: u32| major < VERSION_MIN) {
        let why = format!("its version is {version:?}: {VERSION_MIN}.0 or later is needed");
        return Err(Failure::Unfit(why));
    }
    if field("redis_mode") != "standalone" {
        let why = format!("it runs as a {}: name a server of its own in `url`", field("redis_mode"));
        return Err(Failure::Unfit(why));
    }
    if field("loading") != "0" {
        return Err(Failure::NotReady("it reads its data, and goes on by itself".to_owned()));
    }
    if field("role") != "master" {
        let why = "it is a replica: after a failover `url` must lead to the new master";
        return Err(Failure::NotReady(why.to_owned()));
    }
    let policy = field("maxmemory_policy");
    if policy != "noeviction" {
        let why = format!(
            "its maxmemory-policy is {policy:?}: it might throw away what was stored, and the cursor that says what was; \
             set maxmemory-policy noeviction"
        );
        return Err(Failure::Unfit(why));
    }
    let caution = match (field("aof_enabled"), fsync) {
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
    };
    Ok(Standing { caution })
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
            (("redis_mode", "cluster"), "cluster"),
            (("maxmemory_policy", "allkeys-lru"), "allkeys-lru"),
            (("maxmemory_policy", "volatile-ttl"), "noeviction"),
        ] {
            let Err(Failure::Unfit(why)) = judge(&info(&[change]), Some("always")) else { panic!("{change:?}") };
            assert!(why.contains(words), "{why}");
        }
        for change in [("loading", "1"), ("role", "slave")] {
            assert!(matches!(judge(&info(&[change]), Some("always")), Err(Failure::NotReady(_))), "{change:?}");
        }
    }

    #[test]
    fn what_a_crash_may_lose_is_said() {
        let caution = |aof, fsync| judge(&info(&[("aof_enabled", aof)]), fsync).unwrap().caution;
        assert_eq!(caution("1", Some("always")), None);
        for (aof, fsync, words) in [
            ("1", Some("everysec"), "everysec"),
            ("1", Some("no"), "appendfsync no"),
            ("1", None, "doesn't tell"),
            ("0", Some("always"), "without appendonly"),
        ] {
            assert!(caution(aof, fsync).unwrap().contains(words), "{aof} {fsync:?}");
        }
    }
}
