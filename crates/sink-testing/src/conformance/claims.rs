//! Cases of two processes that deliver one lane, each from a copy of the data directory.

use super::events::{batch, lane, numbered};
use super::fixture::{Fixture, may_pass};
use super::suite::Suite;
use sink::{Batch, Claim, Held, Takeover};

const FIRST: Claim = Claim([1; 16]);
const SECOND: Claim = Claim([0xa2; 16]);
const THIRD: Claim = Claim([0x03; 16]);

impl Fixture {
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
    let mut fixture = Fixture::new(suite).await;
    if !fixture.is_fenced() {
        return;
    }
    let events = numbered(1, 30);
    let of =
        |first: usize, last: usize, claim| batch(&lane(0), first as u64, &events[first - 1..last]).claimed_by(claim);
    fixture.exchange(&[], FIRST).await;
    fixture.store(&of(1, 10, FIRST)).await;
    // Another process with a separate connection; the first one is not notified.
    let first = std::mem::replace(&mut fixture.sink, fixture.subject.sink());
    let held = fixture.claim(SECOND, Takeover::Known([THIRD].into())).await;
    assert_eq!(held, Held { position: 10, claims: vec![FIRST] }, "a claim that isn't known isn't exchanged");
    fixture.expect_no_write(&of(11, 15, SECOND)).await;
    fixture.exchange(&[THIRD, FIRST], SECOND).await;
    fixture.store(&of(11, 15, SECOND)).await;
    let second = std::mem::replace(&mut fixture.sink, first);
    for _ in 0..2 {
        fixture.expect_no_write(&of(11, 20, FIRST)).await;
        fixture.expect_no_write(&batch(&lane(0), 11, &events[10..20])).await;
        let mut empty = Batch::new(lane(0), 11).claimed_by(FIRST);
        empty.cover(25);
        fixture.expect_no_write(&empty).await;
    }
    fixture.expect_cursor(&lane(0), 15).await;
    fixture.sink = second;
    fixture.store(&of(16, 30, SECOND)).await;
    fixture.expect_rows(&events).await;
    fixture.expect_cursor(&lane(0), 30).await;
    fixture.expect_claim(SECOND).await;
}

pub(super) async fn upgrade_and_repetition(suite: Suite) {
    let mut fixture = Fixture::new(suite).await;
    if !fixture.is_fenced() {
        return;
    }
    let events = numbered(1, 20);
    fixture.store(&batch(&lane(0), 1, &events[..10])).await;
    for _ in 0..2 {
        fixture.exchange(&[], FIRST).await;
        fixture.sink = fixture.subject.sink();
    }
    fixture.expect_cursor(&lane(0), 10).await;
    let rest = batch(&lane(0), 11, &events[10..]).claimed_by(FIRST);
    fixture.store(&rest).await;
    fixture.store(&rest).await;
    fixture.expect_rows(&events).await;
    fixture.expect_cursor(&lane(0), 20).await;
}

pub(super) async fn by_force(suite: Suite) {
    let mut fixture = Fixture::new(suite).await;
    if !fixture.is_fenced() {
        return;
    }
    let events = numbered(1, 30);
    fixture.exchange(&[], FIRST).await;
    fixture.store(&batch(&lane(0), 1, &events[..20]).claimed_by(FIRST)).await;
    let first = std::mem::replace(&mut fixture.sink, fixture.subject.sink());
    let held = fixture.claim(SECOND, Takeover::Forced(12)).await;
    assert_eq!(held, Held { position: 12, claims: vec![SECOND] });
    let others = numbered(113, 130);
    let batch_of_others = batch(&lane(0), 13, &others).claimed_by(SECOND);
    fixture.store(&batch_of_others).await;
    fixture.expect_cursor(&lane(0), 30).await;
    let second = std::mem::replace(&mut fixture.sink, first);
    fixture.expect_no_write(&batch(&lane(0), 21, &events[20..]).claimed_by(FIRST)).await;
    fixture.sink = second;
    fixture.expect_rows(&[&events[..20], &others].concat()).await;
    let held = fixture.claim(SECOND, Takeover::Forced(200)).await;
    assert_eq!(held.position, 200, "forwards too");
    fixture.expect_cursor(&lane(0), 200).await;
}
