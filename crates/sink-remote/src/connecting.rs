//! Connects a sink of a gateway: asks the writers for their sink's description, compares it with the gateway's table, and binds the sink
//! to their store.

use http::Method;

use super::caller::Caller;
use super::config::RemoteConfig;
use super::exchange::Call;
use sink::SinkError;
use writer_protocol::SinkInfo;

impl Caller {
    /// Connects the writers' sink to its store, and binds this sink to that store. `also` compares settings of some kinds of store only; its
    /// error names the difference.
    pub(crate) async fn connect(&self, also: impl Fn(&SinkInfo) -> Result<(), String>) -> Result<(), SinkError> {
        let was_bound = self.binding().is_bound();
        if was_bound {
            let call = Call::new(Method::GET, "");
            match self.call::<SinkInfo>(&call).await.and_then(|answer| answer) {
                // If no writer has the bound sink, the operator may have changed all of them: ask again.
                Err(SinkError::Misconfigured(_)) => {}
                answered => return answered.map(drop),
            }
        }
        self.alone(async {
            // Another lane may have bound the sink while this one waited.
            if !was_bound && self.binding().is_bound() { Ok(()) } else { self.survey_and_bind(also).await }
        })
        .await
    }

    async fn survey_and_bind(&self, also: impl Fn(&SinkInfo) -> Result<(), String>) -> Result<(), SinkError> {
        let (mut answers, mut failures) = (Vec::new(), Vec::new());
        for (server, answer) in self.survey().await {
            match answer {
                Ok(info) => {
                    self.check(&info).and_then(|()| also(&info)).map_err(|difference| wrong(&server, &difference))?;
                    answers.push((server, info));
                }
                Err(error) => failures.push((server, error)),
            }
        }
        if answers.is_empty() {
            let none = || SinkError::Misconfigured("the upstream names no writer: add the address of one".into());
            return Err(failures.into_iter().next().map_or_else(none, |(_, error)| error));
        }
        self.binding().bind(answers)?;
        self.binding().pass_over(failures);
        Ok(())
    }

    /// Compares a writer's sink with this gateway's configuration.
    fn check(&self, info: &SinkInfo) -> Result<(), String> {
        let RemoteConfig { sink, store, reads, parts, .. } = self.config();
        if info.kind != *store {
            return Err(format!(
                "its sink `{sink}` is of kind {}, this gateway's configuration says store = \"{store}\": change one of them",
                info.kind
            ));
        }
        if *reads && !info.reads {
            return Err(format!(
                "events can't be read back from its sink `{sink}`: set read = false for this sink in the gateway's configuration"
            ));
        }
        let wanted = SinkInfo { parts: parts.clone(), ..info.clone() };
        let of_both = SinkInfo {
            parts: info
                .parts
                .iter()
                .filter(|(name, _)| parts.contains_key(*name))
                .map(|(name, part)| (name.clone(), part.clone()))
                .collect(),
            ..info.clone()
        };
        wanted.difference(&of_both).map_or(Ok(()), |(name, here, there)| {
            Err(format!(
                "`{name}` of its sink `{sink}` is {there}, this gateway's table says {here}: change one of them"
            ))
        })
    }
}

fn wrong(server: &str, difference: &str) -> SinkError {
    SinkError::Misconfigured(format!("writer {server}: {difference}").into())
}
