//! Digests of bytes that are kept, of two objects at a time: that takes little more than half of the work of one after the other
//! (`md5_pair.rs`).
//!
//! A thread that may block takes two objects. There is one for each two of them, and none where there is no object.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use sha2::{Digest, Sha256};
use tokio::sync::oneshot;

use super::digests::Digests;
use super::md5_pair::{BLOCK_BYTES, Block, Md5State};

/// Objects of a thread.
const SIDE_BY_SIDE: usize = 2;

/// Those whose digests are looked for. Cheap to clone: the clones share them.
#[derive(Clone, Default)]
pub(super) struct DigestPool(Arc<Mutex<Queue>>);

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Text>,
    /// Texts that threads are at work on.
    taken: usize,
    threads: usize,
}

impl DigestPool {
    /// The digests of these pieces, none of which is empty. `None` where the process ends.
    pub(super) async fn of(&self, pieces: Arc<Vec<Bytes>>) -> Option<Digests> {
        let (sender, digests) = oneshot::channel();
        if self.add(Text::new(pieces, sender)) {
            let mut worker = Worker { all: self.clone(), texts: Vec::new(), is_counted: true };
            drop(tokio::task::spawn_blocking(move || worker.work()));
        }
        digests.await.ok()
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it takes another thread.
    fn add(&self, text: Text) -> bool {
        let mut queue = self.queue();
        queue.waiting.push_back(text);
        // One that is left over waits for another of those to end: alone it would take nearly as much work as two.
        let wanted = ((queue.waiting.len() + queue.taken) / SIDE_BY_SIDE).max(1);
        let is_short = queue.threads < wanted;
        queue.threads += usize::from(is_short);
        is_short
    }
}

/// What a thread is at work on. It may end before it begins, with its runtime: then another one is to begin.
struct Worker {
    all: DigestPool,
    texts: Vec<Text>,
    /// Whether it is one of the queue's threads.
    is_counted: bool,
}

impl Worker {
    fn work(&mut self) {
        while self.fill() {
            match &mut self.texts[..] {
                [one, other] => Text::advance_both(one, other),
                texts => texts.iter_mut().for_each(Text::advance),
            }
            let before = self.texts.len();
            self.texts = std::mem::take(&mut self.texts).into_iter().filter_map(Text::unless_done).collect();
            self.all.queue().taken -= before - self.texts.len();
        }
    }

    /// Takes texts that wait; whether there are any to be at work on. Else the thread is none of these any more.
    fn fill(&mut self) -> bool {
        let mut queue = self.all.queue();
        while self.texts.len() < SIDE_BY_SIDE
            && let Some(text) = queue.waiting.pop_front()
        {
            queue.taken += 1;
            self.texts.push(text);
        }
        self.is_counted = !self.texts.is_empty();
        queue.threads -= usize::from(!self.is_counted);
        self.is_counted
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let mut queue = self.all.queue();
        queue.taken -= self.texts.len();
        queue.threads -= usize::from(self.is_counted);
    }
}

/// Bytes in pieces, the first of which were taken.
struct Text {
    pieces: Arc<Vec<Bytes>>,
    next: usize,
    /// The whole blocks of a piece that weren't taken yet.
    blocks: Bytes,
    /// The beginning of a block, the rest of which stands in the next piece, and how long it is.
    begun: (Block, usize),
    bytes: u64,
    md5: Md5State,
    sha256: Sha256,
    /// Who waits for it.
    digests: oneshot::Sender<Digests>,
}

impl Text {
    fn new(pieces: Arc<Vec<Bytes>>, digests: oneshot::Sender<Digests>) -> Self {
        let (md5, sha256) = (Md5State::begin(), Sha256::new());
        Self { pieces, next: 0, blocks: Bytes::new(), begun: ([0; BLOCK_BYTES], 0), bytes: 0, md5, sha256, digests }
    }

    /// Goes on to the next piece, if all blocks are taken.
    fn begin_piece(&mut self) {
        if !self.blocks.is_empty() {
            return;
        }
        let Some(piece) = self.pieces.get(self.next).cloned() else { return };
        self.next += 1;
        self.sha256.update(&piece);
        self.bytes += piece.len() as u64;
        let (block, held) = &mut self.begun;
        let missing = if *held == 0 { 0 } else { piece.len().min(BLOCK_BYTES - *held) };
        block[*held..*held + missing].copy_from_slice(&piece[..missing]);
        *held += missing;
        if *held == BLOCK_BYTES {
            self.md5.take(&[*block]);
            *held = 0;
        }
        let whole = (piece.len() - missing) / BLOCK_BYTES * BLOCK_BYTES;
        let rest = &piece[missing + whole..];
        // Where there is a rest the block that was begun is whole, or there was none: a piece that doesn't fill it has no rest.
        block[*held..*held + rest.len()].copy_from_slice(rest);
        *held += rest.len();
        self.blocks = piece.slice(missing..missing + whole);
    }

    /// Takes a piece.
    fn advance(&mut self) {
        self.begin_piece();
        self.md5.take(self.blocks.as_chunks().0);
        self.blocks.clear();
    }

    /// Takes of both as much as the shorter one has at hand.
    fn advance_both(one: &mut Self, other: &mut Self) {
        one.begin_piece();
        other.begin_piece();
        let bytes = one.blocks.len().min(other.blocks.len());
        let (of_one, of_other) = (one.blocks.split_to(bytes), other.blocks.split_to(bytes));
        Md5State::take_both([&mut one.md5, &mut other.md5], [of_one.as_chunks().0, of_other.as_chunks().0]);
    }

    /// Tells who waits for them what the digests are, if all is taken; gives itself back unless that is so, or nobody waits any more.
    fn unless_done(self) -> Option<Self> {
        let is_done = self.blocks.is_empty() && self.next == self.pieces.len();
        if !is_done {
            return Some(self).filter(|text| !text.digests.is_closed());
        }
        let md5 = self.md5.finish(&self.begun.0[..self.begun.1], self.bytes);
        // Who has left doesn't want them.
        let _ = self.digests.send(Digests { bytes: self.bytes, md5, sha256: self.sha256.finalize().into() });
        None
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::join_all;

    use super::*;

    /// So many bytes in pieces of which each begins at another place of a block.
    fn pieces(bytes: usize, seed: usize) -> Arc<Vec<Bytes>> {
        let mut rest = Bytes::from_iter((0..bytes).map(|at| (at.wrapping_mul(seed + 167) >> 3).to_le_bytes()[0]));
        let mut pieces = Vec::new();
        while !rest.is_empty() {
            let length = 1 + (pieces.len() * 37 + seed * 11) % 300;
            pieces.push(rest.split_to(length.min(rest.len())));
        }
        Arc::new(pieces)
    }

    #[tokio::test]
    async fn objects_beside_others_have_their_own_digests() {
        for objects in 1..=7 {
            let digesting = DigestPool::default();
            let all: Vec<_> = (0..objects).map(|object| pieces(20_000 + 3_001 * object, object)).collect();
            let found = join_all(all.iter().map(|pieces| digesting.of(pieces.clone()))).await;
            for (pieces, found) in all.iter().zip(found) {
                assert_eq!(found, Some(Digests::of(&pieces.concat())), "{objects} at once");
            }
        }
    }

    #[tokio::test]
    async fn short_pieces_and_none_have_digests() {
        let digesting = DigestPool::default();
        for bytes in 0..150 {
            let bytes = Bytes::from(vec![7; bytes]);
            let single: Vec<Bytes> = (0..bytes.len()).map(|at| bytes.slice(at..=at)).collect();
            assert_eq!(digesting.of(Arc::new(single)).await, Some(Digests::of(&bytes)));
        }
    }

    /// As many threads as it takes, and none that stays.
    #[test]
    fn threads_come_for_two_objects_each_and_go_with_them() {
        let digesting = DigestPool::default();
        let mut waiting = Vec::new();
        let mut add = |count: usize| -> Vec<bool> {
            let mut text = |number| {
                let (sender, digests) = oneshot::channel();
                waiting.push(digests);
                digesting.add(Text::new(pieces(1_000, number), sender))
            };
            (0..count).map(&mut text).collect()
        };
        assert_eq!(add(5), [true, false, false, true, false]);
        let worker = || Worker { all: digesting.clone(), texts: Vec::new(), is_counted: true };
        (0..2).for_each(|_| worker().work());
        assert_eq!(add(1), [true], "none is there any more");
        drop(worker());
        assert_eq!(add(1), [true], "it has ended before it began");
        // Nobody waits for those that are left.
        waiting.clear();
        worker().work();
        let queue = digesting.queue();
        assert_eq!((queue.waiting.len(), queue.taken, queue.threads), (0, 0, 0));
    }
}
