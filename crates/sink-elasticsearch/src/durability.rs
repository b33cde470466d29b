//! Checks that an index has acknowledged documents on its disk. The cursor of such a store is in Forebay, and doesn't go back with the
//! documents. So an index that can lose them is rejected unless the configuration allows it by name.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Deserialize;

use super::config::ElasticsearchConfig;
use super::error::Failure;
use super::server::Server;
use sink::{Batch, Risk};

const ASYNC: &str = "translog_async";
/// The names of the risks in the configuration.
pub(super) const NAMES: [&str; 1] = [ASYNC];
/// The maximum of cached names. Others are checked again.
const KNOWN_MAX: usize = 4096;

/// The names whose indices are known to be durable.
#[derive(Debug, Default)]
pub(super) struct Durability {
    known: Mutex<HashSet<String>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Described {
    settings: Settings,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Settings {
    index: Index,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Index {
    translog: Translog,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Translog {
    durability: Option<String>,
}

impl Durability {
    /// Clears the cache, and checks the index if the configuration has only one name.
    ///
    /// # Errors
    /// [`Failure::Misfit`] if it has a risk that the configuration doesn't allow.
    pub(super) async fn prepare(&self, config: &ElasticsearchConfig, server: &Server) -> Result<(), Failure> {
        self.known().clear();
        match config.index.only_name().filter(|_| !config.allowed.allows(ASYNC)) {
            Some(name) => self.inspect(config, server, name).await.map(drop),
            None => Ok(()),
        }
    }

    /// Checks the indices of a batch that aren't known. The batch is written: its indices exist.
    ///
    /// # Errors
    /// [`Failure::Misfit`] if one has a risk that the configuration doesn't allow.
    pub(super) async fn check(
        &self,
        config: &ElasticsearchConfig,
        server: &Server,
        batch: &Batch,
    ) -> Result<(), Failure> {
        if config.allowed.allows(ASYNC) {
            return Ok(());
        }
        for name in self.unknown(config, batch) {
            self.inspect(config, server, &name).await?;
            // An index that the user can't read isn't checked again.
            self.remember(&name);
        }
        Ok(())
    }

    async fn inspect(&self, config: &ElasticsearchConfig, server: &Server, name: &str) -> Result<(), Failure> {
        let Some(answer) = server.durability(name).await? else { return Ok(()) };
        let indices: HashMap<String, Described> = serde_json::from_slice(&answer).map_err(|error| {
            Failure::Unexpected(format!(
                "its response to _settings is invalid ({error}): check the proxies in front of it"
            ))
        })?;
        config.allowed.check(&risks(&indices)).map_err(Failure::Misfit)?;
        if !indices.is_empty() {
            self.remember(name);
        }
        Ok(())
    }

    fn unknown(&self, config: &ElasticsearchConfig, batch: &Batch) -> HashSet<String> {
        let known = self.known();
        match config.index.only_name() {
            Some(name) => (!known.contains(name)).then(|| name.to_owned()).into_iter().collect(),
            None => {
                let names = batch.records().map(|record| config.index.of(&record));
                names.filter(|name| !known.contains(name)).collect()
            }
        }
    }

    fn remember(&self, name: &str) {
        let mut known = self.known();
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(name.to_owned());
    }

    fn known(&self) -> MutexGuard<'_, HashSet<String>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn risks(indices: &HashMap<String, Described>) -> Vec<Risk> {
    let is_async = |described: &Described| {
        described.settings.index.translog.durability.as_ref().is_some_and(|value| value.eq_ignore_ascii_case("async"))
    };
    let risk = |name: &String| Risk {
        name: ASYNC,
        found: format!("index {name} has index.translog.durability async"),
        help: "Set it to request, also in the template",
    };
    indices.iter().filter(|(_, described)| is_async(described)).map(|(name, _)| risk(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(answer: &str) -> Vec<Risk> {
        risks(&serde_json::from_str(answer).unwrap())
    }

    #[test]
    fn only_async_indices_are_a_risk() {
        let index = |settings: &str| format!(r#"{{"i": {{"settings": {{"index": {{{settings}}}}}}}}}"#);
        for durable in [r#""creation_date": "1""#, r#""translog": {"durability": "request"}"#] {
            assert_eq!(found(&index(durable)), [], "{durable}");
        }
        for value in ["async", "ASYNC"] {
            let [risk] = &found(&index(&format!(r#""translog": {{"durability": "{value}"}}"#)))[..] else {
                panic!("{value}")
            };
            assert!(risk.found.contains("index i "), "{}", risk.found);
        }
        assert_eq!(found("{}"), []);
    }
}
