//! A cluster's slots: the slot of a key, and the node of a slot.

use std::collections::BTreeSet;

use super::address::Address;
use super::protocol::Answer;

const SLOTS: u16 = 16_384;

/// The slot of a key: the slot of the text in its first braces, if that isn't empty, or else of the whole key.
pub(super) fn slot(key: &str) -> u16 {
    let tag = key.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map(|(tag, _)| tag);
    checksum(tag.filter(|tag| !tag.is_empty()).unwrap_or(key).as_bytes()) % SLOTS
}

/// CRC-16/XMODEM: with the polynomial 0x1021, beginning with 0.
fn checksum(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |sum, byte| {
        let bit = |sum: u16, _| if sum & 0x8000 == 0 { sum << 1 } else { (sum << 1) ^ 0x1021 };
        (0..8).fold(sum ^ (u16::from(*byte) << 8), bit)
    })
}

/// The slots and their nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Slots {
    /// First slot, last slot, and their node.
    ranges: Vec<(u16, u16, Address)>,
}

impl Slots {
    /// Parses the slots that the node at `asked` returned.
    pub(super) fn of(answer: &Answer, asked: &Address) -> Option<Self> {
        let Answer::List(list) = answer else { return None };
        let ranges = list.iter().map(|part| {
            let Answer::List(parts) = part else { return None };
            let [Answer::Number(first), Answer::Number(last), Answer::List(master), ..] = parts.as_slice() else {
                return None;
            };
            let [host, Answer::Number(port), ..] = master.as_slice() else { return None };
            let host = match host {
                Answer::Text(host) => host,
                // The node doesn't know its own address.
                _ => "",
            };
            let port = u16::try_from(*port).ok()?;
            Some((slot_number(*first)?, slot_number(*last)?, resolve(asked, host, port)))
        });
        Some(Self { ranges: ranges.collect::<Option<_>>()? })
    }

    /// The node of a slot.
    pub(super) fn owner(&self, slot: u16) -> Option<&Address> {
        let range = self.ranges.iter().find(|(first, last, _)| (*first..=*last).contains(&slot));
        range.map(|(_, _, owner)| owner)
    }

    /// All nodes with slots.
    pub(super) fn owners(&self) -> BTreeSet<&Address> {
        self.ranges.iter().map(|(_, _, owner)| owner).collect()
    }
}

fn slot_number(number: i64) -> Option<u16> {
    u16::try_from(number).ok().filter(|slot| *slot < SLOTS)
}

/// An address that a node has returned: without a host it is the node's own host.
fn resolve(asked: &Address, host: &str, port: u16) -> Address {
    let host = if host.is_empty() || host == "?" { &asked.host } else { host };
    Address { host: host.to_owned(), port }
}

/// A node's redirection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Redirect {
    /// Another node has the slot from now on.
    Moved(Address),
    /// The slot is moving to another node, and the requested keys have moved already.
    Ask(Address),
    /// Some of the keys have moved and others not yet.
    TryAgain,
}

impl Redirect {
    /// Parses the error of the node at `asked`, if it is a redirection.
    pub(super) fn of(said: &str, asked: &Address) -> Option<Self> {
        let mut words = said.split(' ');
        let word = words.next()?;
        if word == "TRYAGAIN" {
            return Some(Self::TryAgain);
        }
        let of = match word {
            "MOVED" => Self::Moved,
            "ASK" => Self::Ask,
            _ => return None,
        };
        let (host, port) = words.nth(1)?.rsplit_once(':')?;
        Some(of(resolve(asked, host, port.parse().ok()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(host: &str, port: u16) -> Address {
        Address { host: host.into(), port }
    }

    #[test]
    fn text_in_braces_decides_the_slot() {
        // The first is the checksum's own example.
        assert_eq!((checksum(b"123456789"), slot("123456789"), slot("")), (0x31c3, 12_739, 0));
        assert_eq!(slot("forebay:{access}:cursors"), slot("access"));
        assert_eq!(slot("{7}access:1}"), slot("7"));
        for whole in ["a{}b", "a{b", "a}b{"] {
            assert_eq!(slot(whole), checksum(whole.as_bytes()) % SLOTS, "{whole}");
        }
    }

    #[test]
    fn slots_are_parsed_from_a_node() {
        let node = |host: Answer, port| Answer::List(vec![host, Answer::Number(port), Answer::Text("id".into())]);
        let range = |first, last, nodes: Vec<Answer>| {
            Answer::List([vec![Answer::Number(first), Answer::Number(last)], nodes].concat())
        };
        let (named, unnamed) = (node(Answer::Text("one".into()), 7001), node(Answer::Nothing, 7002));
        let answer = Answer::List(vec![
            range(0, 99, vec![named.clone(), unnamed.clone()]),
            range(100, 16_383, vec![unnamed.clone()]),
        ]);
        let slots = Slots::of(&answer, &at("asked", 1)).unwrap();
        assert_eq!((slots.owner(99), slots.owner(100)), (Some(&at("one", 7001)), Some(&at("asked", 7002))));
        assert_eq!(slots.owners().len(), 2);
        assert_eq!(Slots::default().owner(0), None);
        for wrong in [range(0, 16_384, vec![named.clone()]), range(-1, 2, vec![named]), range(0, 1, vec![])] {
            assert_eq!(Slots::of(&Answer::List(vec![wrong]), &at("asked", 1)), None);
        }
    }

    #[test]
    fn redirections_are_parsed_from_errors() {
        let of = |said| Redirect::of(said, &at("asked", 1));
        assert_eq!(of("MOVED 3999 127.0.0.1:6381"), Some(Redirect::Moved(at("127.0.0.1", 6381))));
        assert_eq!(of("ASK 3999 ::1:6381"), Some(Redirect::Ask(at("::1", 6381))));
        assert_eq!(of("MOVED 3999 :6381"), Some(Redirect::Moved(at("asked", 6381))));
        assert_eq!(of("TRYAGAIN Multiple keys request during rehashing of slot"), Some(Redirect::TryAgain));
        for none in ["CLUSTERDOWN Hash slot not served", "MOVED", "MOVED 1", "ASK 1 one", "ASK 1 one:x", ""] {
            assert_eq!(of(none), None, "{none}");
        }
    }
}
