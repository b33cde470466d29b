//! The waiting requests of a connection. Each has a slot, whose number and generation are the end of its response's
//! subject. A response that is late, or the second one, finds another generation.

use std::mem;
use std::task::{Context, Poll, Waker};

use super::bus_error::BusError;
use crate::message::Message;

type Answer = Result<Message, BusError>;

/// Digits of a token.
pub(super) const TOKEN_BYTES: usize = 16;

/// The waiting requests.
#[derive(Default)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    /// The numbers of those without a request.
    free: Vec<u32>,
}

#[derive(Default)]
struct Slot {
    generation: u32,
    state: State,
}

#[derive(Default)]
pub(super) enum State {
    #[default]
    Free,
    /// A request to the subject with this hash waits.
    Waiting(u64, Option<Waker>),
    Done(Answer),
}

impl Slots {
    /// A slot for a request to a subject: its number and its token.
    pub(super) fn take(&mut self, subject: u64) -> (u32, [u8; TOKEN_BYTES]) {
        let number = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
        });
        let slot = &mut self.slots[number as usize];
        slot.state = State::Waiting(subject, None);
        (number, encoded(u64::from(slot.generation) << 32 | u64::from(number)))
    }

    /// Whether no request waits.
    pub(super) fn is_empty(&self) -> bool {
        self.free.len() == self.slots.len()
    }

    /// Whether a request still waits for the response with this token.
    pub(super) fn waiting(&self, token: &[u8]) -> Option<u32> {
        let token = decoded(token)?;
        let number = u32::try_from(token & u64::from(u32::MAX)).ok()?;
        let slot = self.slots.get(number as usize)?;
        let waits = matches!(slot.state, State::Waiting(..)) && u64::from(slot.generation) == token >> 32;
        waits.then_some(number)
    }

    /// Stores a response. Returns the task to wake.
    pub(super) fn answer(&mut self, number: u32, answer: Answer) -> Option<Waker> {
        match mem::replace(&mut self.slots[number as usize].state, State::Done(answer)) {
            State::Waiting(_, waker) => waker,
            State::Free | State::Done(_) => None,
        }
    }

    /// Fails all waiting requests, or those to the subject with this hash. Returns the tasks to wake.
    pub(super) fn fail(&mut self, subject: Option<u64>, error: &BusError) -> Vec<Waker> {
        let mut wakers = Vec::new();
        for slot in &mut self.slots {
            if let State::Waiting(of, waker) = &mut slot.state
                && subject.is_none_or(|subject| subject == *of)
            {
                wakers.extend(waker.take());
                slot.state = State::Done(Err(error.clone()));
            }
        }
        wakers
    }

    pub(super) fn poll(&mut self, number: u32, cx: &Context<'_>) -> Poll<Answer> {
        let state = &mut self.slots[number as usize].state;
        match state {
            State::Waiting(_, Some(waker)) => waker.clone_from(cx.waker()),
            State::Waiting(_, waker) => *waker = Some(cx.waker().clone()),
            State::Free => {}
            State::Done(_) => {
                let State::Done(answer) = mem::take(state) else { return Poll::Pending };
                return Poll::Ready(answer);
            }
        }
        Poll::Pending
    }

    /// Frees a slot. Returns what it had, to be dropped later.
    pub(super) fn release(&mut self, number: u32) -> State {
        let slot = &mut self.slots[number as usize];
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(number);
        mem::take(&mut slot.state)
    }
}

fn encoded(token: u64) -> [u8; TOKEN_BYTES] {
    let mut digits = [0; TOKEN_BYTES];
    for (place, digit) in digits.iter_mut().rev().enumerate() {
        *digit = b"0123456789abcdef"[(token >> (4 * place) & 15) as usize];
    }
    digits
}

fn decoded(digits: &[u8]) -> Option<u64> {
    let value = |digit: &u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let digits = digits.first_chunk::<TOKEN_BYTES>().filter(|_| digits.len() == TOKEN_BYTES)?;
    digits.iter().try_fold(0, |token, digit| Some(token << 4 | u64::from(value(digit)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn polled(slots: &mut Slots, number: u32) -> Poll<Answer> {
        slots.poll(number, &Context::from_waker(Waker::noop()))
    }

    #[test]
    fn late_and_second_responses_find_nothing() {
        let mut slots = Slots::default();
        let (first, token) = slots.take(7);
        assert_eq!(slots.waiting(&token), Some(first));
        assert!(polled(&mut slots, first).is_pending());
        assert!(slots.answer(first, Err(BusError::NoResponders)).is_some());
        assert_eq!(slots.waiting(&token), None, "a second response");
        assert_eq!(polled(&mut slots, first), Poll::Ready(Err(BusError::NoResponders)));
        drop(slots.release(first));
        let (again, new) = slots.take(7);
        assert_eq!((again, slots.waiting(&token)), (first, None), "a late response for a slot in use");
        assert_eq!(slots.waiting(&new), Some(first));
        drop(slots.release(again));
        assert_eq!(slots.waiting(&new), None, "a request that was dropped");
        assert!(slots.is_empty());
    }

    #[test]
    fn only_tokens_are_accepted() {
        let mut slots = Slots::default();
        let (_, token) = slots.take(7);
        let (_, other) = slots.take(7);
        assert_ne!(token, other);
        for wrong in [&b""[..], b"0", b"00000000000000000", b"000000000000000g", b"0000000000000002", b"\xff"] {
            assert_eq!(slots.waiting(wrong), None, "{}", wrong.escape_ascii());
        }
        for token in [0, 1, 0x0123_4567_89ab_cdef, u64::MAX] {
            assert_eq!(decoded(&encoded(token)), Some(token));
        }
    }

    #[test]
    fn requests_of_a_subject_fail_together() {
        let mut slots = Slots::default();
        let (one, _) = slots.take(1);
        let (two, _) = slots.take(2);
        assert!(polled(&mut slots, one).is_pending() && polled(&mut slots, two).is_pending());
        let forbidden = BusError::Forbidden("x".to_owned());
        assert_eq!(slots.fail(Some(1), &forbidden).len(), 1);
        assert_eq!(polled(&mut slots, one), Poll::Ready(Err(forbidden)));
        assert!(polled(&mut slots, two).is_pending());
        assert_eq!(slots.fail(None, &BusError::Lost).len(), 1);
        assert_eq!(polled(&mut slots, two), Poll::Ready(Err(BusError::Lost)));
    }
}
