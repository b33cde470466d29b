//! The CPU time of threads, and how long they were ready to run and got no CPU: `/proc/self/task/*/schedstat`.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::{SECOND, float, read};

/// The times of all threads with a name, those that have ended included.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ThreadTime {
    /// Seconds on a CPU.
    pub cpu_seconds: f64,
    /// Seconds in which they were ready to run and got no CPU: others used it, or a limit of the container held them.
    pub run_wait_seconds: f64,
}

/// Nanoseconds on a CPU, and of waiting for one.
type Nanoseconds = (u64, u64);

/// The times of threads by their names. It remembers the times of threads that have ended, so sums never fall.
#[derive(Debug, Default)]
pub struct ThreadTimes(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    running: HashMap<OsString, (String, Nanoseconds)>,
    ended: BTreeMap<String, Nanoseconds>,
}

impl ThreadTimes {
    /// The times up to now, by thread name. Empty where the kernel doesn't record them.
    pub fn read(&self) -> BTreeMap<String, ThreadTime> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.renew(tasks());
        let mut sums = state.ended.clone();
        for (name, time) in state.running.values() {
            add(sums.entry(name.clone()).or_default(), *time);
        }
        let seconds = |nanoseconds: u64| float(nanoseconds) / SECOND;
        let time = |(cpu, wait)| ThreadTime { cpu_seconds: seconds(cpu), run_wait_seconds: seconds(wait) };
        sums.into_iter().map(|(name, sum)| (name, time(sum))).collect()
    }
}

impl State {
    /// Takes the times of the threads that run now. A number with less time than before belongs to a new thread.
    fn renew(&mut self, now: HashMap<OsString, (String, Nanoseconds)>) {
        for (number, (name, time)) in std::mem::take(&mut self.running) {
            if now.get(&number).is_none_or(|(same, later)| *same != name || later.0 < time.0) {
                add(self.ended.entry(name).or_default(), time);
            }
        }
        self.running = now;
    }
}

/// The threads that run now: the kernel's number, and the name, of which the kernel keeps 15 bytes.
#[must_use]
pub fn thread_names() -> Vec<(i32, String)> {
    let Ok(tasks) = fs::read_dir("/proc/self/task") else { return Vec::new() };
    let named = |task: fs::DirEntry| {
        let name = read(&task.path().join("comm"))?.trim_end().to_owned();
        Some((task.file_name().to_str()?.parse().ok()?, name))
    };
    tasks.flatten().filter_map(named).collect()
}

fn add(sum: &mut Nanoseconds, time: Nanoseconds) {
    *sum = (sum.0.saturating_add(time.0), sum.1.saturating_add(time.1));
}

/// The name of the process's first thread, which is the program's.
#[must_use]
pub fn main_thread() -> Option<String> {
    Some(read(Path::new("/proc/self/comm"))?.trim_end().to_owned())
}

/// The threads that run now, by number. One that ends during this time is left out.
fn tasks() -> HashMap<OsString, (String, Nanoseconds)> {
    let Ok(tasks) = fs::read_dir("/proc/self/task") else { return HashMap::new() };
    let of_task = |folder: &Path| {
        let name = read(&folder.join("comm"))?.trim_end().to_owned();
        Some((name, times(&read(&folder.join("schedstat"))?)?))
    };
    tasks.flatten().filter_map(|task| Some((task.file_name(), of_task(&task.path())?))).collect()
}

/// The first two numbers of `schedstat`.
fn times(schedstat: &str) -> Option<Nanoseconds> {
    let mut numbers = schedstat.split_ascii_whitespace().map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn spin() {
        let begun = std::time::Instant::now();
        while begun.elapsed().as_millis() < 20 {
            std::hint::black_box(0);
        }
    }

    #[test]
    fn times_of_ended_threads_stay_in_the_sum() {
        let times = ThreadTimes::default();
        let (done, wait) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let spinner = thread::Builder::new().name("spinner".into());
        let running = spinner.spawn(move || {
            spin();
            done.send(()).unwrap();
            ended.recv().unwrap_err();
        });
        wait.recv().unwrap();
        let before = times.read()["spinner"].cpu_seconds;
        assert!(before > 0.0);
        drop(end);
        running.unwrap().join().unwrap();
        // The kernel may list the thread for a moment after it was joined.
        while times.0.lock().unwrap().running.values().any(|(name, _)| name == "spinner") {
            times.read();
        }
        assert!(times.read()["spinner"].cpu_seconds >= before);
    }

    #[test]
    fn threads_have_their_names() {
        let own = thread::current().name().unwrap().chars().take(15).collect::<String>();
        assert!(thread_names().iter().any(|(_, name)| *name == own), "{own}");
    }

    #[test]
    fn number_that_is_used_again_is_another_thread() {
        let mut state = State::default();
        let running = |name: &str, time| HashMap::from([("7".into(), (name.to_owned(), time))]);
        state.renew(running("a", (100, 5)));
        state.renew(running("a", (150, 6)));
        assert!(state.ended.is_empty());
        state.renew(running("a", (20, 1)));
        state.renew(running("b", (30, 2)));
        assert_eq!(state.ended, BTreeMap::from([("a".to_owned(), (170, 7))]));
        assert_eq!((times("12 34 5\n"), times("12")), (Some((12, 34)), None));
    }
}
