//! The waiting requests of a connection. Each has a slot, whose number and secret are the end of its response's subject.
//! A response that is late, or the second one, finds another secret. A service can't guess those of other requests.

use std::mem;
use std::task::{Context, Poll, Waker};

use super::bus_error::BusError;
use crate::message::Message;
use crate::wire::random;

/// Whether there is room for a response of so many bytes.
pub(super) type Room = Box<dyn Fn(usize) -> bool>;
type Answer = Result<Message, BusError>;

/// Digits of a token: 8 of the slot's number, and 16 of the secret.
pub(super) const TOKEN_BYTES: usize = 24;
/// Bytes of secrets that are drawn together: the system is asked once for 64 requests.
const DRAWN_BYTES: usize = 512;

/// The waiting requests.
#[derive(Default)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    /// The numbers of those without a request.
    free: Vec<u32>,
    /// Secrets of the next requests.
    drawn: Vec<u64>,
}

#[derive(Default)]
struct Slot {
    secret: u64,
    state: State,
}

#[derive(Default)]
pub(super) enum State {
    #[default]
    Free,
    /// A request to the subject with this hash waits for a response that there is room for.
    Waiting(u64, Room, Option<Waker>),
    Done(Answer),
}

impl Slots {
    /// A slot for a request to the subject with this hash: its number and its token.
    ///
    /// # Errors
    /// The system has no random bytes.
    pub(super) fn take(&mut self, subject: u64, room: Room) -> Result<(u32, [u8; TOKEN_BYTES]), BusError> {
        let secret = self.secret()?;
        let number = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
        });
        self.slots[number as usize] = Slot { secret, state: State::Waiting(subject, room, None) };
        Ok((number, encoded(u128::from(number) << 64 | u128::from(secret))))
    }

    fn secret(&mut self) -> Result<u64, BusError> {
        if self.drawn.is_empty() {
            let bytes = random::<DRAWN_BYTES>().map_err(|_| BusError::Unavailable("the system has no random bytes"))?;
            self.drawn.extend(bytes.as_chunks().0.iter().map(|secret| u64::from_ne_bytes(*secret)));
        }
        Ok(self.drawn.pop().unwrap_or_default())
    }

    /// Whether no request waits.
    pub(super) fn is_empty(&self) -> bool {
        self.free.len() == self.slots.len()
    }

    /// Whether a request still waits for the response with this token.
    pub(super) fn waiting(&self, token: &[u8]) -> Option<u32> {
        let token = decoded(token)?;
        let number = u32::try_from(token >> 64).ok()?;
        let slot = self.slots.get(number as usize)?;
        let waits = matches!(slot.state, State::Waiting(..)) && u128::from(slot.secret) == token & u128::from(u64::MAX);
        waits.then_some(number)
    }

    /// Whether a request waits with this number, and has room for so many bytes.
    pub(super) fn has_room(&self, number: u32, bytes: usize) -> bool {
        matches!(&self.slots[number as usize].state, State::Waiting(_, room, _) if room(bytes))
    }

    /// Stores a response. Returns the task to wake.
    pub(super) fn answer(&mut self, number: u32, answer: Answer) -> Option<Waker> {
        match mem::replace(&mut self.slots[number as usize].state, State::Done(answer)) {
            State::Waiting(.., waker) => waker,
            State::Free | State::Done(_) => None,
        }
    }

    /// Fails all waiting requests, or those to the subject with this hash. Returns the tasks to wake.
    pub(super) fn fail(&mut self, subject: Option<u64>, error: &BusError) -> Vec<Waker> {
        let mut wakers = Vec::new();
        for slot in &mut self.slots {
            if let State::Waiting(of, _, waker) = &mut slot.state
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
            State::Waiting(.., Some(waker)) => waker.clone_from(cx.waker()),
            State::Waiting(.., waker) => *waker = Some(cx.waker().clone()),
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
        self.free.push(number);
        mem::take(&mut self.slots[number as usize].state)
    }
}

fn encoded(token: u128) -> [u8; TOKEN_BYTES] {
    let mut digits = [0; TOKEN_BYTES];
    for (place, digit) in digits.iter_mut().rev().enumerate() {
        *digit = b"0123456789abcdef"[(token >> (4 * place) & 15) as usize];
    }
    digits
}

fn decoded(digits: &[u8]) -> Option<u128> {
    let value = |digit: &u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let digits = digits.first_chunk::<TOKEN_BYTES>().filter(|_| digits.len() == TOKEN_BYTES)?;
    digits.iter().try_fold(0, |token, digit| Some(token << 4 | u128::from(value(digit)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn any() -> Room {
        Box::new(|_| true)
    }

    fn polled(slots: &mut Slots, number: u32) -> Poll<Answer> {
        slots.poll(number, &Context::from_waker(Waker::noop()))
    }

    #[test]
    fn late_and_second_responses_find_nothing() {
        let mut slots = Slots::default();
        let (first, token) = slots.take(7, any()).unwrap();
        assert_eq!(slots.waiting(&token), Some(first));
        assert!(polled(&mut slots, first).is_pending());
        assert!(slots.answer(first, Err(BusError::NoResponders)).is_some());
        assert_eq!(slots.waiting(&token), None, "a second response");
        assert_eq!(polled(&mut slots, first), Poll::Ready(Err(BusError::NoResponders)));
        drop(slots.release(first));
        let (again, new) = slots.take(7, any()).unwrap();
        assert_eq!((again, slots.waiting(&token)), (first, None), "a late response for a slot in use");
        assert_eq!(slots.waiting(&new), Some(first));
        drop(slots.release(again));
        assert_eq!(slots.waiting(&new), None, "a request that was dropped");
        assert!(slots.is_empty());
    }

    #[test]
    fn only_tokens_are_accepted() {
        let mut slots = Slots::default();
        let (_, token) = slots.take(7, any()).unwrap();
        let (_, other) = slots.take(7, any()).unwrap();
        assert_ne!(token, other);
        let unknown = &[b"ffffffff", &token[8..]].concat();
        for wrong in [&b""[..], b"0", &token[1..], &[&token[..], b"0"].concat(), b"00000000000000000000000g", unknown] {
            assert_eq!(slots.waiting(wrong), None, "{}", wrong.escape_ascii());
        }
        for token in [0, 1, 0x0123_4567_89ab_cdef_0123_4567, u128::MAX >> 32] {
            assert_eq!(decoded(&encoded(token)), Some(token));
        }
    }

    #[test]
    fn token_of_another_request_can_not_be_guessed() {
        let mut slots = Slots::default();
        let secrets: Vec<u64> = (0..1000)
            .map(|_| {
                let (number, token) = slots.take(7, any()).unwrap();
                slots.release(number);
                u64::try_from(decoded(&token).unwrap() & u128::from(u64::MAX)).unwrap()
            })
            .collect();
        for bit in 0..64 {
            let ones = secrets.iter().filter(|secret| **secret >> bit & 1 == 1).count();
            assert!((350..650).contains(&ones), "bit {bit} was 1 in {ones} of 1000");
        }
        let changed = |pair: &[u64]| (pair[0] ^ pair[1]).count_ones();
        assert!(secrets.windows(2).map(changed).sum::<u32>() / 999 > 28, "the next one doesn't follow from the last");
    }

    #[test]
    fn requests_of_a_subject_fail_together() {
        let mut slots = Slots::default();
        let (one, _) = slots.take(1, any()).unwrap();
        let (two, _) = slots.take(2, any()).unwrap();
        assert!(polled(&mut slots, one).is_pending() && polled(&mut slots, two).is_pending());
        let forbidden = BusError::Forbidden("x".to_owned());
        assert_eq!(slots.fail(Some(1), &forbidden).len(), 1);
        assert_eq!(polled(&mut slots, one), Poll::Ready(Err(forbidden)));
        assert!(polled(&mut slots, two).is_pending());
        assert_eq!(slots.fail(None, &BusError::Lost).len(), 1);
        assert_eq!(polled(&mut slots, two), Poll::Ready(Err(BusError::Lost)));
    }
}
