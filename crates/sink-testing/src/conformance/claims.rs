//! Cases of two processes that deliver one lane, each from a copy of the data directory.

use super::events::{batch, lane, numbered};
use super::stand::{Stand, may_pass};
use super::suite::Suite;
use sink::{Batch, Claim, Held, Takeover};

const FIRST: Claim = Claim([1; 16]);
const SECOND: Claim = Claim([0xa2; 16]);
const THIRD: Claim = Claim([0x03; 16]);

impl Stand {
    async fn claim(&self, claim: Claim, takeover: Takeover) -> Held {
        let held = self.sink.claim(&lane(0), claim, takeover).await;
        held.expect("a store at hand answers").expect("a fenced store holds claims")
    }

    /// Exchanges one of these claims for another, which must succeed.
    async fn exchange(&self, known: &[Claim], claim: Claim) {
        let held = self.claim(claim, Takeover::Known(known.into())).await;
        assert_eq!(held.claims, [claim], "the exchange is allowed");
        self.expect_claim(claim).await;
    }

    async fn expect_claim(&self, claim: Claim) {
        let held = self.sink.held(&lane(0)).await.expect("a store at hand answers");
        assert_eq!(held.expect("a fenced store holds claims").claims, [claim]);
    }

    async fn expect_no_write(&self, batch: &Batch) {
        let error = self.sink.write(batch).await.expect_err("a batch without the claim is not stored");
        assert!(may_pass(&error), "{error}");
    }
}

pub(super) async fn one_at_a_time(suite: Suite) {
    let mut stand = Stand::new(suite).await;
    if !stand.is_fenced() {
        return;
    }
    let events = numbered(1, 30);
    let of =
        |first: usize, last: usize, claim| batch(&lane(0), first as u64, &events[first - 1..last]).claimed_by(claim);
    stand.exchange(&[], FIRST).await;
    stand.store(&of(1, 10, FIRST)).await;
    // Another process, over a connection of its own; the first one isn't notified.
    let first = std::mem::replace(&mut stand.sink, stand.subject.sink());
    let held = stand.claim(SECOND, Takeover::Known([THIRD].into())).await;
    assert_eq!(held, Held { position: 10, claims: vec![FIRST] }, "a claim that isn't known isn't exchanged");
    stand.expect_no_write(&of(11, 15, SECOND)).await;
    stand.exchange(&[THIRD, FIRST], SECOND).await;
    stand.store(&of(11, 15, SECOND)).await;
    let second = std::mem::replace(&mut stand.sink, first);
    for _ in 0..2 {
        stand.expect_no_write(&of(11, 20, FIRST)).await;
        stand.expect_no_write(&batch(&lane(0), 11, &events[10..20])).await;
        let mut empty = Batch::new(lane(0), 11).claimed_by(FIRST);
        empty.cover(25);
        stand.expect_no_write(&empty).await;
    }
    stand.expect_cursor(&lane(0), 15).await;
    stand.sink = second;
    stand.store(&of(16, 30, SECOND)).await;
    stand.expect_rows(&events).await;
    stand.expect_cursor(&lane(0), 30).await;
    stand.expect_claim(SECOND).await;
}

pub(super) async fn upgrade_and_repetition(suite: Suite) {
    let mut stand = Stand::new(suite).await;
    if !stand.is_fenced() {
        return;
    }
    let events = numbered(1, 20);
    stand.store(&batch(&lane(0), 1, &events[..10])).await;
    for _ in 0..2 {
        stand.exchange(&[], FIRST).await;
        stand.sink = stand.subject.sink();
    }
    stand.expect_cursor(&lane(0), 10).await;
    let rest = batch(&lane(0), 11, &events[10..]).claimed_by(FIRST);
    stand.store(&rest).await;
    stand.store(&rest).await;
    stand.expect_rows(&events).await;
    stand.expect_cursor(&lane(0), 20).await;
}

pub(super) async fn by_force(suite: Suite) {
    let mut stand = Stand::new(suite).await;
    if !stand.is_fenced() {
        return;
    }
    let events = numbered(1, 30);
    stand.exchange(&[], FIRST).await;
    stand.store(&batch(&lane(0), 1, &events[..20]).claimed_by(FIRST)).await;
    let first = std::mem::replace(&mut stand.sink, stand.subject.sink());
    let held = stand.claim(SECOND, Takeover::Forced(12)).await;
    assert_eq!(held, Held { position: 12, claims: vec![SECOND] });
    let others = numbered(113, 130);
    let batch_of_others = batch(&lane(0), 13, &others).claimed_by(SECOND);
    stand.store(&batch_of_others).await;
    stand.expect_cursor(&lane(0), 30).await;
    let second = std::mem::replace(&mut stand.sink, first);
    stand.expect_no_write(&batch(&lane(0), 21, &events[20..]).claimed_by(FIRST)).await;
    stand.sink = second;
    stand.expect_rows(&[&events[..20], &others].concat()).await;
    let held = stand.claim(SECOND, Takeover::Forced(200)).await;
    assert_eq!(held.position, 200, "forwards too");
    stand.expect_cursor(&lane(0), 200).await;
}
