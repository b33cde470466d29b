//! The faults that a test can set in the memory store.

use bytes::Bytes;
use event::Origin;

use super::*;
use sink::{Record, Write};

fn lane() -> Lane {
    Lane { origin: Origin([1; 16]), shard: 0, sink: "memory".into() }
}

fn id(number: u8) -> EventId {
    EventId([number; 16])
}

/// Records with the ids of their positions, from `first` on.
fn batch(first: u8, count: u8) -> Batch {
    let block = Bytes::from_static(b"type{}");
    let mut batch = Batch::new(lane(), first.into());
    for number in first..first + count {
        let record = Record {
            sequence: number.into(),
            id: id(number),
            type_name: std::str::from_utf8(&block[..4]).unwrap(),
            source: "",
            received_at: 0,
            event_time: None,
            write: Write::Insert,
            payload: &block[4..],
        };
        batch.push(&block, &record);
    }
    batch
}

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}

#[test]
fn lost_answer_had_its_effect() {
    let memory = MemoryHandle::fenced();
    memory.lose_answers(1);
    assert!(run(memory.write(&batch(1, 2))).is_err());
    assert_eq!((memory.count(), memory.position(&lane())), (2, 2));
    assert_eq!(run(memory.write(&batch(1, 2))), Ok(WriteOutcome::Committed));
    assert_eq!(memory.count(), 2);
    assert_eq!(memory.calls().len(), 2);
}

#[test]
fn failures_are_counted_down_over_all_calls() {
    let memory = MemoryHandle::fenced();
    memory.fail_next(3);
    assert!(run(memory.connect()).is_err() && run(memory.held(&lane())).is_err());
    assert!(run(memory.write(&batch(1, 1))).is_err());
    assert_eq!(memory.count(), 0);
    assert_eq!(run(memory.write(&batch(1, 1))), Ok(WriteOutcome::Committed));
}

#[test]
fn retries_are_answered_by_record_or_by_batch() {
    let keyed = MemoryHandle::keyed();
    keyed.retry_id(id(2));
    keyed.refuse_id(id(3));
    let Ok(WriteOutcome::Partial { refused, retry }) = run(keyed.write(&batch(1, 3))) else {
        panic!("not all are stored")
    };
    assert_eq!((refused[0].index, retry[0].index, keyed.count()), (2, 1, 1));
    let fenced = MemoryHandle::fenced();
    fenced.retry_id(id(2));
    assert!(matches!(run(fenced.write(&batch(1, 3))), Err(SinkError::Unavailable(_))));
    assert_eq!((fenced.count(), fenced.position(&lane())), (0, 0));
    fenced.heal();
    assert_eq!(run(fenced.write(&batch(1, 3))), Ok(WriteOutcome::Committed));
}

#[test]
fn rejected_types_reject_the_batch() {
    let memory = MemoryHandle::fenced();
    memory.refuse_type("type");
    let Ok(WriteOutcome::Rejected { refused }) = run(memory.write(&batch(1, 2))) else { panic!("nothing is stored") };
    assert_eq!((refused.len(), memory.count()), (2, 0));
    memory.heal();
    assert_eq!(run(memory.write(&batch(1, 2))), Ok(WriteOutcome::Committed));
}

#[test]
fn a_blocked_write_waits_for_its_release() {
    run(async {
        let memory = MemoryHandle::fenced();
        memory.block();
        let writer = memory.clone();
        let write = tokio::spawn(async move { writer.write(&batch(1, 1)).await });
        tokio::task::yield_now().await;
        assert!(!write.is_finished() && memory.count() == 0);
        memory.release();
        memory.until(|memory| memory.count() == 1).await;
        assert_eq!(write.await.unwrap(), Ok(WriteOutcome::Committed));
    });
}
