//! Measures maps that could hold the groups of a window: hash maps with several hashes, and a tree ordered by a hash;
//! with plain keys and with keys built to collide. `docs/internals/decisions/012-order-independent-aggregates.md` draws the
//! conclusion.
//!
//! `cargo run --release --package aggregate --example group_hash_rate`
//!
//! Real keys are the clients with paths of `access.ndjson` in the folder that `FOREBAY_TEST_RECORDS` names.

#![allow(clippy::print_stdout)]

use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, BuildHasherDefault, Hasher};
use std::hint::black_box;

use xxhash_rust::xxh3::{Xxh3DefaultBuilder, xxh3_64};

const KEYS: usize = 1_000_000;
/// With this many colliding keys, a quadratic map already takes seconds.
const COLLIDING: usize = 20_000;
/// The slots of the table that these collide in.
const COLLIDING_PLACES: u64 = 1 << 14;
const ROUNDS: usize = 5;

type Key = Box<str>;

/// One multiplication a word: fast, but anyone who knows the hash can generate collisions.
#[derive(Default)]
struct Weak(u64);

const WEAK_FACTOR: u64 = 0x517c_c1b7_2722_0a95;

impl Hasher for Weak {
    fn write(&mut self, bytes: &[u8]) {
        for word in bytes.chunks(8) {
            let mut padded = [0; 8];
            padded[..word.len()].copy_from_slice(word);
            self.0 = (self.0.rotate_left(5) ^ u64::from_le_bytes(padded)).wrapping_mul(WEAK_FACTOR);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

trait Groups {
    fn count(&mut self, key: &str);
}

impl<S: BuildHasher> Groups for HashMap<Key, [u64; 4], S> {
    fn count(&mut self, key: &str) {
        match self.get_mut(key) {
            Some(group) => group[0] += 1,
            None => {
                self.insert(key.into(), [1; 4]);
            }
        }
    }
}

/// Ordered by a hash, then by the text.
struct Tree {
    groups: BTreeMap<(u64, String), [u64; 4]>,
    key: (u64, String),
    hash: fn(&[u8]) -> u64,
}

impl Tree {
    fn new(hash: fn(&[u8]) -> u64) -> Self {
        Self { groups: BTreeMap::new(), key: (0, String::new()), hash }
    }
}

impl Groups for Tree {
    fn count(&mut self, key: &str) {
        self.key.0 = (self.hash)(key.as_bytes());
        self.key.1.clear();
        self.key.1.push_str(key);
        match self.groups.get_mut(&self.key) {
            Some(group) => group[0] += 1,
            None => {
                self.groups.insert(self.key.clone(), [1; 4]);
            }
        }
    }
}

/// Nanoseconds of CPU time of this thread: on a shared machine, wall-clock time would include the work of others.
fn worked() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|text| text.parse().ok()).unwrap_or(0.0)
}

/// Nanoseconds of work for each key, in the best round: to insert all, and to count all again in another order. With
/// few keys it repeats: the kernel's account of work moves in steps of milliseconds.
fn measure<G: Groups>(make: impl Fn() -> G, keys: &[Key], again: usize) -> (f64, f64) {
    let (mut inserting, mut counting) = (f64::INFINITY, f64::INFINITY);
    let each = |begun: f64| (worked() - begun) / (again * keys.len()) as f64;
    for _ in 0..ROUNDS {
        let mut groups = make();
        let begun = worked();
        for _ in 0..again {
            groups = make();
            keys.iter().for_each(|key| groups.count(black_box(key)));
        }
        inserting = inserting.min(each(begun));
        let begun = worked();
        for _ in 0..again {
            // A step that shares no factor with the number of keys visits each of them.
            (0..keys.len()).for_each(|number| groups.count(black_box(&keys[number * 7_368_787 % keys.len()])));
        }
        counting = counting.min(each(begun));
    }
    (inserting, counting)
}

fn row(name: &str, keys: &str, (inserting, counting): (f64, f64)) {
    println!("{name:32} {keys:28} insert {inserting:9.0} ns  count {counting:9.0} ns");
}

fn rows(name: &str, keys: &[Key], again: usize) {
    row("HashMap, SipHash (std)", name, measure(HashMap::<_, _, RandomState>::default, keys, again));
    row("HashMap, foldhash", name, measure(HashMap::<_, _, foldhash::quality::RandomState>::default, keys, again));
    row("HashMap, ahash", name, measure(HashMap::<_, _, ahash::RandomState>::default, keys, again));
    row("HashMap, XXH3 without a seed", name, measure(HashMap::<_, _, Xxh3DefaultBuilder>::default, keys, again));
    row("HashMap, weak", name, measure(HashMap::<_, _, BuildHasherDefault<Weak>>::default, keys, again));
    row("tree by XXH3", name, measure(|| Tree::new(xxh3_64), keys, again));
}

/// Texts whose weak hashes agree in the bits that choose a slot in a table. With a known hash they are found in a
/// second.
fn colliding() -> Vec<Key> {
    let alphabet: Vec<u8> = (b'0'..=b'9').chain(b'a'..=b'z').chain(b'A'..=b'Z').collect();
    let digits = |mut number: usize| {
        let mut text = [b'0'; 8];
        for byte in &mut text {
            *byte = alphabet[number % alphabet.len()];
            number /= alphabet.len();
        }
        text
    };
    let hash = |text: &[u8]| {
        let mut weak = Weak::default();
        weak.write(text);
        weak.write(&[0xff]);
        weak.finish()
    };
    let place = |text: &[u8]| hash(text) & (COLLIDING_PLACES - 1);
    // The hash of some text: not every slot has printable texts.
    let wanted = place(&digits(0));
    let (mut found, mut number) = (Vec::new(), 0);
    while found.len() < COLLIDING {
        let text = digits(number);
        if place(&text) == wanted {
            found.push(std::str::from_utf8(&text).unwrap_or_default().into());
        }
        number += 1;
    }
    found
}

fn real() -> Option<Vec<Key>> {
    let folder = std::env::var_os("FOREBAY_TEST_RECORDS")?;
    let text = std::fs::read_to_string(std::path::Path::new(&folder).join("access.ndjson")).ok()?;
    let lines = text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    Some(lines.map(|line| format!("{}\n{}", line["client"], line["path"]).into()).collect())
}

fn main() {
    match real() {
        Some(keys) => rows(&format!("{} clients and paths", keys.len()), &keys, KEYS / keys.len()),
        None => println!("no access.ndjson: set FOREBAY_TEST_RECORDS to its folder"),
    }
    let keys: Vec<Key> = (0..KEYS)
        .map(|number| format!("\"10.{}.{}.{}\"", number >> 16, number >> 8 & 255, number & 255).into())
        .collect();
    rows("1,000,000 addresses", &keys, 1);
    let keys = colliding();
    rows(&format!("{} colliding in the weak hash", keys.len()), &keys, 1);
    // With any hash: all keys have the same one.
    row("tree by a constant", "the same hash for all", measure(|| Tree::new(|_| 0), &keys, 1));
}
