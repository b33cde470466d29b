//! Waits for the first of two things.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use tokio::sync::watch;

/// Which of two futures was done first.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum First<A, B> {
    One(A),
    Other(B),
}

/// Polls both until one is done, and drops the other.
pub(crate) async fn race<A: Future, B: Future>(one: A, other: B) -> First<A::Output, B::Output> {
    let (mut one, mut other) = (pin!(one), pin!(other));
    poll_fn(|context| {
        if let Poll::Ready(output) = one.as_mut().poll(context) {
            return Poll::Ready(First::One(output));
        }
        other.as_mut().poll(context).map(First::Other)
    })
    .await
}

/// Waits for the next change of a value; for ever where nobody can change it any more.
pub(crate) async fn changed<T>(receiver: &mut watch::Receiver<T>) {
    if receiver.changed().await.is_err() {
        std::future::pending().await
    }
}
