//! Which server is the master: what most sentinels say, and of what they say the newest.
//!
//! A sentinel may be dead, or cut off and behind. So all are asked at once, and as soon as most have answered the answer
//! that comes from the latest failover counts; whether that server agrees is asked of itself.

use std::path::Path;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use super::address::Address;
use super::deployment::Sentinel;
use super::error::Failure;
use super::protocol::{Answer, Command};
use super::session::Session;

/// How long a sentinel may take: one that is dead shall not keep the others' answer waiting for long.
const TIMEOUT: Duration = Duration::from_secs(3);

/// What a sentinel says.
#[derive(Debug, PartialEq, Eq)]
struct Word {
    /// The number of the failover that it comes from.
    epoch: u64,
    master: Address,
}

/// The server that `sentinels` know as `name`.
///
/// # Errors
/// What each of them said, where none of them knows.
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
        None => Err(nobody(name, &failures)),
    }
}

fn nobody(name: &str, failures: &[(&Sentinel, Failure)]) -> Failure {
    let said: Vec<String> = failures.iter().map(|(sentinel, failure)| format!("{sentinel}: {failure}")).collect();
    let why = format!("no sentinel says which server is {name} ({})", said.join("; "));
    // One that can't be reached may come back, and may know.
    if failures.iter().all(|(_, failure)| matches!(failure, Failure::Server(_))) {
        Failure::Unfit(format!("{why}: see to the name in `url`, and to who may ask in `sentinels`"))
    } else {
        Failure::NotReady(why)
    }
}

async fn execute(sentinel: &Sentinel, name: &str, ca: Option<&Path>) -> Result<Word, Failure> {
    let server = &sentinel.0;
    let mut session = Session::open(&server.address, server, ca, TIMEOUT).await?;
    let answer = session.call(Command::new(&["SENTINEL", "MASTER", name])).await?;
    word(answer).ok_or(Failure::Odd("it didn't answer as a sentinel does"))
}

/// Names and values, one after the other.
fn word(answer: Answer) -> Option<Word> {
    let mut fields = answer.pairs()?;
    let host = fields.remove("ip").filter(|host| !host.is_empty())?;
    let port = fields.get("port")?.parse().ok().filter(|port| *port != 0)?;
    Some(Word { epoch: fields.get("config-epoch")?.parse().ok()?, master: Address { host, port } })
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// Something that answers as a sentinel does; or never, without a failover and a port.
    async fn stand_in(said: Option<(u64, u16)>) -> Sentinel {
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
    async fn one_that_is_behind_or_silent_decides_nothing() {
        let (behind, silent) = (stand_in(Some((1, 7001))).await, stand_in(None).await);
        let newest = stand_in(Some((2, 7002))).await;
        for order in [[&behind, &newest, &silent], [&silent, &newest, &behind], [&newest, &silent, &behind]] {
            let found = master(&order.map(Clone::clone), "live", None).await.unwrap();
            assert_eq!(found.to_string(), "one:7002");
        }
        let mostly_silent = [behind.clone(), silent.clone(), silent];
        let found = master(&mostly_silent, "live", None).await.unwrap();
        assert_eq!(found.to_string(), "one:7001", "where most are silent, what there is counts");
    }

    #[test]
    fn a_sentinel_names_a_place_and_a_failover_or_nothing() {
        let list = |texts: &[&str]| Answer::List(texts.iter().map(|text| Answer::Text((*text).to_owned())).collect());
        let whole = ["name", "live", "ip", "10.0.0.7", "port", "7000", "config-epoch", "3"];
        let master = Address { host: "10.0.0.7".into(), port: 7000 };
        assert_eq!(word(list(&whole)), Some(Word { epoch: 3, master }));
        for missing in [2, 4, 6] {
            let mut part = whole.to_vec();
            part.drain(missing..missing + 2);
            assert_eq!(word(list(&part)), None, "{part:?}");
        }
        assert_eq!(word(Answer::Nothing), None);
        assert_eq!(word(list(&["ip", "one", "port", "0", "config-epoch", "1"])), None);
    }
}
