//! Holds back wake-ups that a task gives itself.
//!
//! hyper wakes a connection's task whenever its handler takes a piece of the body, so that the next piece is read.
//! After the last piece there is nothing to read: the task would be polled for nothing, once for each request, which
//! is a third of all polls.

use std::cell::Cell;
use std::sync::Arc;
use std::task::{Wake, Waker};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Watch {
    Off,
    Quiet,
    Woken,
}

thread_local! {
    /// What happens to wake-ups that this thread gives; those of other threads always pass.
    static WATCH: Cell<Watch> = const { Cell::new(Watch::Off) };
}

/// Runs `act`, and holds back the wake-ups that it gives to wakers of [`waker`]. Returns also whether there were any:
/// then the task must be woken, unless it is known to have nothing to do.
pub(crate) fn held_back<T>(act: impl FnOnce() -> T) -> (T, bool) {
    debug_assert!(WATCH.get() == Watch::Off, "wake-ups are held back by one at a time");
    WATCH.set(Watch::Quiet);
    let result = act();
    (result, WATCH.replace(Watch::Off) == Watch::Woken)
}

/// A waker for the task of `task`, whose wake-ups can be held back.
pub(crate) fn waker(task: &Waker) -> Waker {
    Waker::from(Arc::new(Passing(task.clone())))
}

struct Passing(Waker);

impl Wake for Passing {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        match WATCH.get() {
            Watch::Off => self.0.wake_by_ref(),
            Watch::Quiet | Watch::Woken => WATCH.set(Watch::Woken),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[derive(Default)]
    struct Count(AtomicU32);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn only_what_this_thread_gives_meanwhile_is_held_back() {
        let count = Arc::new(Count::default());
        let waker = waker(&Waker::from(count.clone()));
        let wakes = || count.0.load(Ordering::Relaxed);
        waker.wake_by_ref();
        assert_eq!(wakes(), 1);
        assert_eq!(held_back(|| waker.wake_by_ref()), ((), true));
        assert_eq!(wakes(), 1);
        let other = waker.clone();
        let ((), woken) = held_back(|| std::thread::spawn(move || other.wake()).join().unwrap());
        assert!(!woken);
        assert_eq!(wakes(), 2);
        waker.wake();
        assert_eq!(wakes(), 3);
    }
}
