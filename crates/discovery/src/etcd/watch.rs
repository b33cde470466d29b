//! A watch of the prefix. It only signals a possible change; a look-up reads the keys. So a watch ignores the content of its messages, and a lost
//! message only delays a change.

use std::time::Duration;

use net::http_client::HttpResponse;
use serde::Deserialize;
use serde_json::{Deserializer, json};
use tokio::time::{Instant, timeout, timeout_at};

use super::client::CALL_MAX;
use super::{Client, EtcdError};

/// Changes within this time count as one, because writers often start together.
const SETTLE: Duration = Duration::from_millis(100);
/// The longest life of a watch. It bounds the time with a watch that etcd has ended silently.
const LIFE_MAX: Duration = Duration::from_mins(1);

/// A watch of the keys under the prefix.
pub(crate) struct Watch {
    answer: HttpResponse,
    begun: Instant,
}

#[derive(Deserialize)]
struct Message {
    result: Begun,
}

#[derive(Deserialize)]
struct Begun {
    #[serde(default)]
    created: bool,
    #[serde(default)]
    canceled: bool,
}

impl Client {
    /// Watches the prefix, at the member that answered last. The watch sees what changes after this call.
    pub(crate) async fn watch(&self) -> Result<Watch, EtcdError> {
        let begin = async {
            let answer = self.stream("/v3/watch", &json!({ "create_request": self.range() })).await?;
            // Messages may be rare.
            let mut answer = answer.at_any_rate();
            let first = answer.chunk().await?.unwrap_or_default();
            let message = Deserializer::from_slice(&first).into_iter::<Message>().next();
            let is_begun = matches!(message, Some(Ok(Message { result })) if result.created && !result.canceled);
            let odd = || EtcdError::NotEtcd(self.member().to_string());
            if is_begun { Ok(Watch { answer, begun: Instant::now() }) } else { Err(odd()) }
        };
        let silent = |_| EtcdError::NoAnswer(format!("{}: no watch within {CALL_MAX:?}", self.member()));
        timeout(CALL_MAX, begin).await.map_err(silent)?
    }
}

impl Watch {
    /// Waits for a change, and no longer than this. `false`: the watch has ended.
    pub(crate) async fn wait(&mut self, max: Duration) -> bool {
        let Ok(first) = timeout(max, self.answer.chunk()).await else { return self.begun.elapsed() < LIFE_MAX };
        let mut is_open = matches!(first, Ok(Some(_)));
        let settled = Instant::now() + SETTLE;
        while is_open && let Ok(next) = timeout_at(settled, self.answer.chunk()).await {
            is_open = matches!(next, Ok(Some(_)));
        }
        is_open
    }
}
