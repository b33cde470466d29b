//! Which server is the master: the newest of most sentinels' answers.
//!
//! A sentinel may be dead, or isolated and outdated. So all are asked concurrently. When most have answered, the answer
//! of the latest failover counts; the server itself is asked whether it agrees.

use std::path::Path;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use super::address::Address;
use super::deployment::Sentinel;
use super::error::Failure;
use super::protocol::{Answer, Command};
use super::session::Session;

/// The time limit of a sentinel: a dead one must not delay the others' answer for long.
const TIMEOUT: Duration = Duration::from_secs(3);

/// A sentinel's answer.
#[derive(Debug, PartialEq, Eq)]
struct SentinelAnswer {
    /// The number of its failover.
    epoch: u64,
    master: Address,
}

/// The server that is `name` for `sentinels`.
///
/// # Errors
/// Each sentinel's error, if none of them knows it.
pub(super) async fn master(sentinels: &[Sentinel], name: &str, ca: Option<&Path>) -> Result<Address, Failure> {
    let mut asking: FuturesUnordered<_> =
        sentinels.iter().map(async |sentinel| (sentinel, execute(sentinel, name, ca).await)).collect();
    let most = sentinels.len() / 2 + 1;
    let (mut words, mut failures) = (Vec::new(), Vec::new());
    while words.len() < most
        && let Some((sentinel, answer)) = asking.next().await
    {
        match answer {
            Ok(word) => words.push(word),
            Err(failure) => failures.push((sentinel, failure)),
        }
    }
    match words.into_iter().max_by_key(|word| word.epoch) {
        Some(word) => Ok(word.master),
        None => Err(no_master(name, &failures)),
    }
}

fn no_master(name: &str, failures: &[(&Sentinel, Failure)]) -> Failure {
    let said: Vec<String> = failures.iter().map(|(sentinel, failure)| format!("{sentinel}: {failure}")).collect();
    let why = format!("no sentinel returned the master {name} ({})", said.join("; "));
    // An unreachable sentinel may return and know it.
    if failures.iter().all(|(_, failure)| matches!(failure, Failure::Server(_))) {
        Failure::Misfit(format!("{why}: check the name in `url`, and the accounts in `sentinels`"))
    } else {
        Failure::NotReady(why)
    }
}

async fn execute(sentinel: &Sentinel, name: &str, ca: Option<&Path>) -> Result<SentinelAnswer, Failure> {
    let server = &sentinel.0;
    let mut session = Session::open(&server.address, server, ca, TIMEOUT).await?;
    let answer = session.call(Command::new(&["SENTINEL", "MASTER", name])).await?;
    word(answer).ok_or(Failure::Unexpected("the response isn't a sentinel's: check the addresses in `sentinels`"))
}

/// Parses alternating names and values.
fn word(answer: Answer) -> Option<SentinelAnswer> {
    let mut fields = answer.pairs()?;
    let host = fields.remove("ip").filter(|host| !host.is_empty())?;
    let port = fields.get("port")?.parse().ok().filter(|port| *port != 0)?;
    Some(SentinelAnswer { epoch: fields.get("config-epoch")?.parse().ok()?, master: Address { host, port } })
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// A server that answers like a sentinel, or never, if it has no failover and port.
    async fn fake_sentinel(said: Option<(u64, u16)>) -> Sentinel {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let mut kept = Vec::new();
            while let Ok((mut client, _)) = listener.accept().await {
                if let Some((epoch, port)) = said {
                    let _ = client.read(&mut [0; 256]).await;
                    let words = ["ip", "one", "port", &port.to_string(), "config-epoch", &epoch.to_string()];
                    let _ = client.write_all(&Command::new(&words).into_bytes()).await;
                }
                kept.push(client);
            }
        });
        address.to_string().parse().unwrap()
    }

    #[tokio::test]
    async fn outdated_or_silent_sentinel_does_not_decide() {
        let (outdated, silent) = (fake_sentinel(Some((1, 7001))).await, fake_sentinel(None).await);
        let newest = fake_sentinel(Some((2, 7002))).await;
        for order in [[&outdated, &newest, &silent], [&silent, &newest, &outdated], [&newest, &silent, &outdated]] {
            let found = master(&order.map(Clone::clone), "live", None).await.unwrap();
            assert_eq!(found.to_string(), "one:7002");
        }
        let mostly_silent = [outdated.clone(), silent.clone(), silent];
        let found = master(&mostly_silent, "live", None).await.unwrap();
        assert_eq!(found.to_string(), "one:7001", "if most are silent, the other answers count");
    }

    #[test]
    fn answer_needs_an_address_and_an_epoch() {
        let list = |texts: &[&str]| Answer::List(texts.iter().map(|text| Answer::Text((*text).to_owned())).collect());
        let whole = ["name", "live", "ip", "10.0.0.7", "port", "7000", "config-epoch", "3"];
        let master = Address { host: "10.0.0.7".into(), port: 7000 };
        assert_eq!(word(list(&whole)), Some(SentinelAnswer { epoch: 3, master }));
        for missing in [2, 4, 6] {
            let mut part = whole.to_vec();
            part.drain(missing..missing + 2);
            assert_eq!(word(list(&part)), None, "{part:?}");
        }
        assert_eq!(word(Answer::Nothing), None);
        assert_eq!(word(list(&["ip", "one", "port", "0", "config-epoch", "1"])), None);
    }
}
