//! Places that have lost their last writes, with servers in memory that implement only the scripts' effects on cursors
//! and notes.

use std::collections::BTreeMap;

use bytes::Bytes;
use event::{EventId, Origin};

use super::super::deployment::Deployment;
use super::super::protocol::{self, Answer};
use super::*;
use crate::Structure;
use sink::{Record, Write};

/// Hashes by key.
#[derive(Default)]
struct InMemory(BTreeMap<String, BTreeMap<String, String>>);

impl InMemory {
    fn field(&self, key: &str, field: &str) -> Option<String> {
        self.0.get(key)?.get(field).cloned()
    }

    fn number(&self, key: &str, field: &str) -> u64 {
        self.field(key, field).map_or(0, |text| text.parse().unwrap())
    }

    fn set(&mut self, key: &str, field: &str, number: u64) {
        self.0.entry(key.to_owned()).or_default().insert(field.to_owned(), number.to_string());
    }

    /// Sets a field if it is less than `last`, unless it is less than `at_least`.
    fn fence(&mut self, key: &str, field: &str, at_least: u64, last: u64) -> Vec<String> {
        let cursor = self.number(key, field);
        if cursor < at_least {
            return vec!["lost".to_owned(), cursor.to_string()];
        }
        self.set(key, field, cursor.max(last));
        vec!["stored".to_owned(), cursor.max(last).to_string()]
    }

    fn run(&mut self, words: &[String]) -> Vec<String> {
        let number = |text: &String| text.parse::<u64>().unwrap();
        let keys = words[2].parse::<usize>().unwrap();
        let (key, arguments) = (&words[3], &words[3 + keys..]);
        if words[1] != NOTE {
            return self.fence(key, &arguments[0], number(&arguments[1]), number(&arguments[2]));
        }
        let outcome = self.fence(key, "", number(&arguments[2]), number(&arguments[3]));
        for pair in arguments[4..].chunks(2) {
            self.set(key, &pair[0], self.number(key, &pair[0]).max(number(&pair[1])));
        }
        outcome
    }
}

impl Execute for InMemory {
    async fn execute(&mut self, key: &str, command: Command) -> Result<Answer, Failure> {
        let (Answer::List(words), _) = protocol::answer(&command.into_bytes())?.unwrap() else { panic!("no command") };
        let words: Vec<String> = words
            .into_iter()
            .map(|word| match word {
                Answer::Text(text) => text,
                other => panic!("{other:?}"),
            })
            .collect();
        let list = |texts: Vec<String>| Answer::List(texts.into_iter().map(Answer::Text).collect());
        Ok(match words[0].as_str() {
            "HGET" => self.field(key, &words[2]).map_or(Answer::Nothing, Answer::Text),
            "HGETALL" => {
                list(self.0.get(key).into_iter().flatten().flat_map(|(k, v)| [k.clone(), v.clone()]).collect())
            }
            "EVAL" => list(self.run(&words)),
            other => panic!("{other}"),
        })
    }
}

pub(crate) fn config() -> RedisConfig {
    RedisConfig {
        server: "redis://one".parse().unwrap(),
        deployment: Deployment::Cluster(Vec::new()),
        ca: None,
        key: "{type}".parse().unwrap(),
        structure: Structure::Set,
        timeout: Duration::from_secs(1),
        connections_max: RedisConfig::CONNECTIONS_MAX,
    }
}

fn lane() -> Lane {
    Lane { origin: Origin([1; 16]), shard: 0, sink: "live".into() }
}

/// A batch from `first` on, with an event of each of these types.
fn batch(first: u64, types: &[&str]) -> Batch {
    let mut batch = Batch::new(lane(), first);
    for (sequence, name) in (first..).zip(types) {
        let block = Bytes::from(format!("{name}1"));
        let (type_name, payload) = block.split_at(name.len());
        batch.push(
            &block,
            &Record {
                sequence,
                id: EventId([0; 16]),
                type_name: std::str::from_utf8(type_name).unwrap(),
                source: "",
                received_at: 0,
                event_time: None,
                write: Write::Insert,
                payload,
            },
        );
    }
    batch
}

fn cursor_of(servers: &InMemory, place: &str) -> u64 {
    servers.number(&config().own_of(place).cursors, &script::field(&lane()))
}

fn lose(servers: &mut InMemory, place: &str, position: u64) {
    servers.set(&config().own_of(place).cursors, &script::field(&lane()), position);
}

#[tokio::test(start_paused = true)]
async fn lost_tail_of_an_idle_place_is_noticed() {
    let (config, mut servers, mut places) = (config(), InMemory::default(), Places::default());
    assert_eq!(
        places.write(&mut servers, &config, &batch(1, &["a", "b", "a"])).await.unwrap(),
        WriteOutcome::Committed
    );
    assert_eq!((cursor_of(&servers, "a"), cursor_of(&servers, "b")), (3, 3));
    lose(&mut servers, "b", 1);
    assert_eq!(
        places.write(&mut servers, &config, &batch(4, &["a"]).sent_after(3, 3)).await.unwrap(),
        WriteOutcome::Committed
    );
    tokio::time::advance(CHECK_EVERY).await;
    let failure = places.write(&mut servers, &config, &batch(5, &["a"]).sent_after(4, 4)).await.unwrap_err();
    assert!(matches!(failure, Failure::LostTail { position: 1, stored: 4 }), "{failure}");
    assert_eq!(cursor_of(&servers, "a"), 4, "nothing was written");
    assert_eq!(places.held(&mut servers, &config, &lane()).await.unwrap().position, 1);
}

#[tokio::test(start_paused = true)]
async fn place_with_a_lost_tail_catches_up() {
    let (config, mut servers) = (config(), InMemory::default());
    let all = batch(1, &["a", "b", "a", "b", "a"]);
    assert_eq!(Places::default().write(&mut servers, &config, &all).await.unwrap(), WriteOutcome::Committed);
    lose(&mut servers, "b", 2);
    // A new process knows it from the notes.
    let mut places = Places::default();
    assert_eq!(places.held(&mut servers, &config, &lane()).await.unwrap().position, 2);
    // A batch that leaves a gap isn't written: the place would be moved past it.
    let gap = places.write(&mut servers, &config, &batch(4, &["a"]).sent_after(2, 5)).await.unwrap_err();
    assert!(matches!(gap, Failure::LostTail { position: 2, stored: 3 }), "{gap}");
    assert_eq!(places.write(&mut servers, &config, &batch(3, &["a", "b"])).await.unwrap(), WriteOutcome::Committed);
    assert_eq!((cursor_of(&servers, "a"), cursor_of(&servers, "b")), (5, 4));
    assert_eq!(places.held(&mut servers, &config, &lane()).await.unwrap().position, 4);
    // The last batch has no record for it.
    assert_eq!(places.write(&mut servers, &config, &batch(5, &["a"])).await.unwrap(), WriteOutcome::Committed);
    assert_eq!((cursor_of(&servers, "a"), cursor_of(&servers, "b")), (5, 5));
    assert_eq!(places.held(&mut servers, &config, &lane()).await.unwrap().position, 5);
}

#[tokio::test(start_paused = true)]
async fn other_process_reads_the_notes_before_writing() {
    let (config, mut servers) = (config(), InMemory::default());
    let (mut one, mut other) = (Places::default(), Places::default());
    let write =
        async |places: &mut Places, servers: &mut InMemory, batch: Batch| places.write(servers, &config, &batch).await;
    assert_eq!(write(&mut one, &mut servers, batch(1, &["a", "b"])).await.unwrap(), WriteOutcome::Committed);
    let second = batch(3, &["a", "b"]).sent_after(2, 2);
    assert_eq!(write(&mut other, &mut servers, second.clone()).await.unwrap(), WriteOutcome::Committed);
    lose(&mut servers, "b", 2);
    let failure = write(&mut one, &mut servers, batch(5, &["a"]).sent_after(4, 4)).await.unwrap_err();
    assert!(matches!(failure, Failure::LostTail { position: 2, stored: 4 }), "{failure}");
    assert_eq!(write(&mut one, &mut servers, second.sent_after(2, 5)).await.unwrap(), WriteOutcome::Committed);
    assert_eq!((cursor_of(&servers, "a"), cursor_of(&servers, "b")), (4, 4));
}

#[test]
fn patterns_share_no_cursors() {
    let with = |key: &str| RedisConfig { key: key.parse().unwrap(), ..config() };
    let (one, other) = (with("{type}:{id}"), with("{id}"));
    assert_eq!(one.own_of("7").cursors, "forebay:{7}:type:id:cursors");
    assert_ne!(one.own_of("7"), other.own_of("7"));
    assert_eq!(config().own_of("access").revisions, "forebay:{access}:revisions");
}

#[tokio::test(start_paused = true)]
async fn lost_tail_of_notes_delays_only_the_lane() {
    let (config, mut servers, mut places) = (config(), InMemory::default(), Places::default());
    for first in [1, 3] {
        let batch = batch(first, &["a", "b"]).sent_after(first - 1, first - 1);
        assert_eq!(places.write(&mut servers, &config, &batch).await.unwrap(), WriteOutcome::Committed);
    }
    let key = notes_key(&config, &lane());
    for place in ["", "a", "b"] {
        servers.set(&key, place, 2);
    }
    let next = batch(5, &["a"]).sent_after(4, 4);
    let failure = places.write(&mut servers, &config, &next).await.unwrap_err();
    assert!(matches!(failure, Failure::LostTail { position: 2, stored: 4 }), "{failure}");
    assert_eq!(places.held(&mut servers, &config, &lane()).await.unwrap().position, 2);
    assert_eq!(
        places.write(&mut servers, &config, &batch(3, &["a", "b", "a"])).await.unwrap(),
        WriteOutcome::Committed
    );
    assert_eq!(places.held(&mut servers, &config, &lane()).await.unwrap().position, 5);
}
