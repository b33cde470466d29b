//! The events sent and acknowledged, kept outside of the server that is killed, and compared with the stored
//! ones.

use std::collections::HashMap;
use std::fmt;

use random::Random;

/// One event: which client sent it, and its number among that client's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::campaign) struct Event {
    pub(in crate::campaign) client: u32,
    pub(in crate::campaign) number: u32,
}

impl Event {
    /// The key that the client repeats until the event is acknowledged.
    pub(super) fn key(self) -> String {
        format!("{}-{}", self.client, self.number)
    }

    /// The event's bytes: they follow from the seed, so the oracle needn't keep them. Lengths differ, so
    /// records end anywhere in a sector.
    pub(super) fn payload(self, seed: u64) -> String {
        let Self { client, number } = self;
        let mut random = Random::new(seed ^ (u64::from(client) << 32 | u64::from(number)));
        let words = random.below(24);
        let text: String = (0..words).map(|_| format!("{:016x}", random.number())).collect();
        format!("{{\"client\":{client},\"number\":{number},\"text\":\"{text}\"}}")
    }

    fn of_payload(payload: &str) -> Option<Self> {
        let rest = payload.strip_prefix("{\"client\":")?;
        let (client, rest) = rest.split_once(",\"number\":")?;
        let (number, _) = rest.split_once(',')?;
        Some(Self { client: client.parse().ok()?, number: number.parse().ok()? })
    }
}

/// The record of one client: whether each event that it sent was acknowledged, by number.
pub(in crate::campaign) type Acknowledged = Vec<bool>;

/// Compares stored payloads with the clients' records.
pub(in crate::campaign) struct Oracle {
    seed: u64,
    clients: Vec<Acknowledged>,
    stored: HashMap<Event, u32>,
    faults: Vec<Fault>,
}

/// An error of the server.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Acknowledged, but not stored.
    Lost(Event),
    /// Stored more than once.
    Doubled(Event, u32),
    /// Stored with other bytes than were sent.
    Altered(Event),
    /// Stored, but no client sent it.
    Foreign(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost(event) => write!(f, "acknowledged but not stored: key {}", event.key()),
            Self::Doubled(event, count) => write!(f, "stored {count} times: key {}", event.key()),
            Self::Altered(event) => write!(f, "stored with other bytes than were sent: key {}", event.key()),
            Self::Foreign(payload) => write!(f, "stored but never sent: {payload}"),
        }
    }
}

/// The summary of a campaign.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Account {
    pub(super) acknowledged: usize,
    /// Sent but never acknowledged: stored, and not stored.
    pub(super) unacknowledged_stored: usize,
    pub(super) unacknowledged_missing: usize,
    pub(super) faults: Vec<Fault>,
}

impl Oracle {
    pub(in crate::campaign) fn new(seed: u64, clients: Vec<Acknowledged>) -> Self {
        Self { seed, clients, stored: HashMap::new(), faults: Vec::new() }
    }

    /// Takes note of one stored payload.
    pub(super) fn stored(&mut self, payload: &str) {
        let event = Event::of_payload(payload).filter(|event| self.acknowledged(*event).is_some());
        let Some(event) = event else {
            self.faults.push(Fault::Foreign(payload.chars().take(200).collect()));
            return;
        };
        if event.payload(self.seed) != payload {
            self.faults.push(Fault::Altered(event));
        }
        *self.stored.entry(event).or_default() += 1;
    }

    /// Whether the event was acknowledged; none if it was never sent.
    fn acknowledged(&self, event: Event) -> Option<bool> {
        let client = self.clients.get(usize::try_from(event.client).ok()?)?;
        client.get(usize::try_from(event.number).ok()?).copied()
    }

    /// The result, once every stored payload was noted.
    pub(super) fn account(mut self) -> Account {
        let mut account =
            Account { acknowledged: 0, unacknowledged_stored: 0, unacknowledged_missing: 0, faults: Vec::new() };
        for (client, numbers) in (0..).zip(&self.clients) {
            for (number, is_acknowledged) in (0..).zip(numbers) {
                let event = Event { client, number };
                let count = self.stored.get(&event).copied().unwrap_or(0);
                match (is_acknowledged, count) {
                    (true, _) => account.acknowledged += 1,
                    (false, 0) => account.unacknowledged_missing += 1,
                    (false, _) => account.unacknowledged_stored += 1,
                }
                if *is_acknowledged && count == 0 {
                    self.faults.push(Fault::Lost(event));
                }
                if count > 1 {
                    self.faults.push(Fault::Doubled(event, count));
                }
            }
        }
        account.faults = self.faults;
        account
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: u64 = 7;

    fn event(client: u32, number: u32) -> Event {
        Event { client, number }
    }

    /// Client 0 was acknowledged its first event and not its second, client 1 its only one.
    fn account(stored: &[String]) -> Account {
        let mut oracle = Oracle::new(SEED, vec![vec![true, false], vec![true]]);
        stored.iter().for_each(|payload| oracle.stored(payload));
        oracle.account()
    }

    fn payloads(events: &[Event]) -> Vec<String> {
        events.iter().map(|event| event.payload(SEED)).collect()
    }

    #[test]
    fn acknowledged_once_and_others_at_most_once_passes() {
        let account_with = account(&payloads(&[event(1, 0), event(0, 0), event(0, 1)]));
        assert_eq!(
            (account_with.acknowledged, account_with.unacknowledged_stored, account_with.faults),
            (2, 1, vec![])
        );
        let account_without = account(&payloads(&[event(1, 0), event(0, 0)]));
        assert_eq!((account_without.unacknowledged_missing, account_without.faults), (1, vec![]));
    }

    #[test]
    fn each_fault_is_seen() {
        assert_eq!(account(&payloads(&[event(1, 0)])).faults, [Fault::Lost(event(0, 0))]);
        let all = [event(0, 0), event(1, 0)];
        let with = |more: String| account(&[payloads(&all), vec![more]].concat()).faults;
        assert_eq!(with(event(1, 0).payload(SEED)), [Fault::Doubled(event(1, 0), 2)]);
        let twice_unacknowledged = payloads(&[all[0], all[1], event(0, 1), event(0, 1)]);
        assert_eq!(account(&twice_unacknowledged).faults, [Fault::Doubled(event(0, 1), 2)]);
        assert!(matches!(with(event(2, 0).payload(SEED))[..], [Fault::Foreign(_)]));
        assert_eq!(with("null".into()), [Fault::Foreign("null".into())]);
        let altered = event(0, 1).payload(SEED).replace("\"}", " \"}");
        assert_eq!(with(altered), [Fault::Altered(event(0, 1))]);
    }

    #[test]
    fn payloads_are_json_and_differ_by_seed() {
        let payload = event(3, 9).payload(SEED);
        assert!(serde_json::from_str::<serde_json::Value>(&payload).is_ok());
        assert_eq!(Event::of_payload(&payload), Some(event(3, 9)));
        assert_ne!(payload, event(3, 9).payload(SEED + 1));
    }
}
