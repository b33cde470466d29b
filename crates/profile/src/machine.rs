//! What needs `unsafe`: timers on the CPU clocks of threads, the handler of their signal, and stacks.
//!
//! One of the project's audited modules: see docs/internals/decisions/041. The handler calls no function of the C library but `pthread_self`, takes no lock, and
//! allocates nothing, so errno stays as it is. It reads only words of the interrupted thread's own stack, between the stack pointer
//! and the stack's end.
#![allow(unsafe_code, reason = "audited: see the comments at each use")]

use std::io;
use std::mem;
use std::ptr;

use libc::{c_int, c_void, siginfo_t, sigval, timer_t, ucontext_t};

use crate::active::{is_code, main_stack_end, of};
use crate::ring::Writing;
use crate::stacks::SampleKind;

/// A second has so many samples. Not a divisor of usual periods: work that recurs with a period would otherwise fall between samples.
pub(crate) const HERTZ: u64 = 99;
const SIGNAL: c_int = libc::SIGPROF;
const WORD: usize = size_of::<usize>();
/// Frames of functions without a frame pointer are looked for in so many bytes above the stack pointer.
const SEARCHED_BYTES: usize = 2048;
/// A stack is not larger. A stack pointer farther from the end is on another stack.
const STACK_BYTES_MAX: usize = 64 << 20;

/// The registers from which a stack is walked.
struct Registers {
    instruction: usize,
    frame: usize,
    stack: usize,
    /// The return address of a function that hasn't saved it; 0 if the machine keeps it on the stack.
    link: usize,
}

/// Sets the handler. It stays: a signal may arrive after the last timer is deleted, and would end the process without it.
///
/// # Errors
/// The kernel refuses it.
pub(crate) fn set_handler() -> io::Result<()> {
    if !cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
        return Err(io::ErrorKind::Unsupported.into());
    }
    // SAFETY: all-zero bytes are an empty sigaction; the handler has the signature that SA_SIGINFO asks for.
    let set = unsafe {
        // The first call finds the function; from then on it reads a register.
        libc::pthread_self();
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = on_signal as extern "C" fn(c_int, *mut siginfo_t, *mut c_void) as usize;
        // A system call that was interrupted continues, where the kernel can continue it.
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigaction(SIGNAL, &raw const action, ptr::null_mut())
    };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A timer that interrupts a thread [`HERTZ`] times a second of the thread's CPU time, until it is dropped.
pub(crate) struct ThreadTimer(timer_t);

impl ThreadTimer {
    /// # Errors
    /// The thread has ended, or the kernel refuses it.
    pub(crate) fn start(thread: i32) -> io::Result<Self> {
        // The kernel's name for the CPU clock of a thread: see `MAKE_THREAD_CPUCLOCK` in its sources.
        let clock = (!thread << 3) | 6;
        let interval = libc::timespec { tv_sec: 0, tv_nsec: (1_000_000_000 / HERTZ).cast_signed() };
        // SAFETY: all-zero bytes are an empty sigevent; each pointer is to a local variable, which outlives the call.
        unsafe {
            let mut event: libc::sigevent = mem::zeroed();
            event.sigev_value = sigval { sival_ptr: ptr::without_provenance_mut(thread.cast_unsigned() as usize) };
            event.sigev_signo = SIGNAL;
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_notify_thread_id = thread;
            let mut timer: timer_t = ptr::null_mut();
            if libc::timer_create(clock, &raw mut event, &raw mut timer) != 0 {
                return Err(io::Error::last_os_error());
            }
            let timer = Self(timer);
            let times = libc::itimerspec { it_interval: interval, it_value: interval };
            if libc::timer_settime(timer.0, 0, &raw const times, ptr::null_mut()) != 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(timer)
        }
    }
}

impl Drop for ThreadTimer {
    fn drop(&mut self) {
        // SAFETY: the timer was created, and is deleted once.
        unsafe {
            libc::timer_delete(self.0);
        }
    }
}

/// The beginning of the `siginfo_t` of a timer (`sigaction(2)`): libc has no function for its overruns.
#[repr(C)]
struct TimerInfo {
    _number: c_int,
    _error: c_int,
    _code: c_int,
    timer: TimerFields,
}

/// It has the alignment of a pointer, as the kernel's union has.
#[repr(C)]
struct TimerFields {
    _id: c_int,
    /// Expirations since the signal was sent: a signal is pending only once.
    overrun: c_int,
    _value: sigval,
}

const _: () = assert!(size_of::<TimerInfo>() <= size_of::<siginfo_t>());

extern "C" fn on_signal(_: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes both, and they are valid until the handler returns.
    let (code, value, registers) =
        unsafe { ((*info).si_code, (*info).si_value().sival_ptr, registers(&*context.cast::<ucontext_t>())) };
    if code != libc::SI_TIMER {
        return;
    }
    // SAFETY: the kernel has initialised the whole siginfo_t, which is larger and of the same alignment. Any bytes are a valid `c_int`.
    let overrun = unsafe { (*info.cast::<TimerInfo>()).timer.overrun };
    let Some((ring, run)) = of(SampleKind::Cpu) else { return };
    #[expect(clippy::cast_possible_truncation, reason = "it is the number of a thread")]
    let thread = value.addr() as i32;
    let ticks = 1 + u64::try_from(overrun).unwrap_or(0);
    ring.write(run, thread, ticks, |sample| {
        sample.frame(registers.instruction);
        walk(&registers, sample);
    });
}

#[expect(clippy::cast_possible_truncation, reason = "the machines have 64 bits")]
const fn address(register: u64) -> usize {
    register as usize
}

#[cfg(target_arch = "x86_64")]
fn registers(context: &ucontext_t) -> Registers {
    let register = |number: c_int| {
        let number = usize::try_from(number).ok();
        number
            .and_then(|number| context.uc_mcontext.gregs.get(number))
            .map_or(0, |value| address(value.cast_unsigned()))
    };
    Registers {
        instruction: register(libc::REG_RIP),
        frame: register(libc::REG_RBP),
        stack: register(libc::REG_RSP),
        link: 0,
    }
}

#[cfg(target_arch = "aarch64")]
const fn registers(context: &ucontext_t) -> Registers {
    let machine = &context.uc_mcontext;
    Registers {
        instruction: address(machine.pc),
        frame: address(machine.regs[29]),
        stack: address(machine.sp),
        link: address(machine.regs[30]),
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn registers(_: &ucontext_t) -> Registers {
    Registers { instruction: 0, frame: 0, stack: 0, link: 0 }
}

/// Adds the callers of the calling function.
#[inline(never)]
pub(crate) fn add_callers(sample: &Writing<'_>) {
    let frame: usize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: it copies a register.
    unsafe {
        std::arch::asm!("mov {}, rbp", out(reg) frame, options(nomem, nostack, preserves_flags));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: it copies a register.
    unsafe {
        std::arch::asm!("mov {}, x29", out(reg) frame, options(nomem, nostack, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        frame = 0;
    }
    if let Some(stack) = Stack::above(frame) {
        stack.walk(Some(frame), sample);
    }
}

/// Adds the callers of the function that these registers belong to.
fn walk(registers: &Registers, sample: &Writing<'_>) {
    let Some(stack) = Stack::above(registers.stack) else { return };
    let frame = stack.record(registers.frame).or_else(|| stack.search());
    let link = code_address(registers.link);
    if is_code(link) {
        sample.candidate(link);
    }
    for at in stack.searched(frame.unwrap_or(stack.end)) {
        let word = stack.word(at);
        if is_code(word) && !sample.candidate(word) {
            break;
        }
    }
    stack.walk(frame, sample);
}

/// The part of the calling thread's stack that is in use.
struct Stack {
    start: usize,
    end: usize,
}

impl Stack {
    /// From this stack pointer to the end. `None` if the pointer is not into this thread's own stack.
    fn above(pointer: usize) -> Option<Self> {
        // SAFETY: it reads a register; POSIX allows it in a signal handler.
        let descriptor = address(unsafe { libc::pthread_self() });
        // glibc and musl put the descriptor of a thread at the end of the mapping that has its stack. That of the main thread is below its
        // stack. A test checks both.
        let end = if descriptor > pointer { descriptor } else { main_stack_end() } & !(WORD - 1);
        let start = pointer.checked_next_multiple_of(WORD)?;
        (start < end && end - start <= STACK_BYTES_MAX).then_some(Self { start, end })
    }

    /// A word of it, at an address from `start` to `end`.
    fn word(&self, at: usize) -> usize {
        if at < self.start || at > self.end - WORD || !at.is_multiple_of(WORD) {
            return 0;
        }
        // SAFETY: it is in the mapping of the calling thread's stack, between the stack pointer and the end. The thread itself reads it, so
        // nothing writes it at the same time. Volatile: the compiler knows nothing of its content.
        unsafe { ptr::read_volatile(ptr::with_exposed_provenance(at)) }
    }

    /// `at`, if a frame may be there: a pointer to the next one, and a return address.
    fn record(&self, at: usize) -> Option<usize> {
        let fits = at.is_multiple_of(2 * WORD) && at >= self.start && at <= self.end - 2 * WORD;
        (fits && is_code(code_address(self.word(at + WORD)))).then_some(at)
    }

    /// Addresses of words from the start, before `end`.
    fn searched(&self, end: usize) -> impl Iterator<Item = usize> {
        (self.start..end.min(self.start + SEARCHED_BYTES).min(self.end)).step_by(WORD)
    }

    /// The frame of the nearest caller that has one: a function that uses the frame pointer's register for something else has saved it on
    /// the stack.
    fn search(&self) -> Option<usize> {
        self.searched(self.end).find_map(|at| {
            let saved = self.record(self.word(at)).filter(|saved| *saved > at)?;
            let next = self.word(saved);
            (next == 0 || (next > saved && next < self.end)).then_some(saved)
        })
    }

    /// Adds the return addresses of a frame and of those that follow it.
    fn walk(&self, first: Option<usize>, sample: &Writing<'_>) {
        let mut frame = first.and_then(|first| self.record(first));
        while let Some(at) = frame {
            if !sample.frame(code_address(self.word(at + WORD))) {
                break;
            }
            frame = self.record(self.word(at)).filter(|next| *next > at);
        }
    }
}

/// A return address without the signature that some builds for aarch64 put into its upper bits.
const fn code_address(word: usize) -> usize {
    if cfg!(target_arch = "aarch64") { word & ((1 << 48) - 1) } else { word }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::active::Run;
    use crate::active::tests::alone;

    /// The stack that the C library says the calling thread has.
    fn stack_of_c_library() -> (usize, usize) {
        // SAFETY: all pointers are to local variables; the attributes are destroyed once.
        unsafe {
            let mut attributes: libc::pthread_attr_t = mem::zeroed();
            assert_eq!(libc::pthread_getattr_np(libc::pthread_self(), &raw mut attributes), 0);
            let (mut start, mut bytes) = (ptr::null_mut(), 0);
            libc::pthread_attr_getstack(&raw const attributes, &raw mut start, &raw mut bytes);
            libc::pthread_attr_destroy(&raw mut attributes);
            (start as usize, start as usize + bytes)
        }
    }

    #[test]
    fn end_of_the_stack_is_within_the_thread() {
        for bytes in [128 * 1024, 2 << 20] {
            let thread = std::thread::Builder::new().stack_size(bytes).spawn(|| {
                let local = 0_u8;
                let pointer = ptr::from_ref(&local) as usize;
                let stack = Stack::above(pointer).unwrap();
                let (start, end) = stack_of_c_library();
                assert!((start..end).contains(&pointer), "{start:x} {pointer:x} {end:x}");
                assert!(
                    stack.end > pointer && stack.end <= end && stack.end - stack.start > 64,
                    "{:x} {end:x}",
                    stack.end
                );
                assert!(end - stack.end < 16 * 1024, "{} bytes are not walked", end - stack.end);
            });
            thread.unwrap().join().unwrap();
        }
    }

    /// Blocks the signal for the calling thread during `work`. The kernel then delivers it.
    fn without_signal(work: impl FnOnce()) {
        // SAFETY: all-zero bytes are an empty set; all pointers are to local variables.
        let change = |how| unsafe {
            let mut signals: libc::sigset_t = mem::zeroed();
            libc::sigaddset(&raw mut signals, SIGNAL);
            assert_eq!(libc::pthread_sigmask(how, &raw const signals, ptr::null_mut()), 0);
        };
        change(libc::SIG_BLOCK);
        work();
        change(libc::SIG_UNBLOCK);
    }

    /// Ticks of CPU time that the calling thread has used.
    fn ticks_used() -> u64 {
        let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        (used.tv_sec * 1_000_000_000 + used.tv_nsec).cast_unsigned() * HERTZ / 1_000_000_000
    }

    #[test]
    fn sample_weighs_the_ticks_without_signal() {
        let _alone = alone();
        let run = Run::begin(SampleKind::Cpu, &[]).unwrap();
        set_handler().unwrap();
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        let begun = ticks_used();
        let timer = ThreadTimer::start(thread).unwrap();
        without_signal(|| while ticks_used() - begun < 20 {});
        drop(timer);
        let passed = ticks_used() - begun;
        let mut weights = Vec::new();
        run.ring.drain(run.number, |sample| weights.extend((sample.thread == thread).then_some(sample.weight)));
        let (most, all) = (weights.iter().max().copied(), weights.iter().sum::<u64>());
        assert!(most >= Some(15) && all <= passed + 1, "{weights:?} of {passed}");
    }

    #[test]
    fn pointer_to_elsewhere_has_no_stack() {
        assert!(Stack::above(1 << 20).is_none());
        assert!(Stack::above(usize::MAX - 3).is_none());
    }
}
