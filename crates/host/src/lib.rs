//! What the kernel says about this process, its threads, and its container. It is read from `/proc` and from the files of control groups
//! when it is asked for; what can't be read is absent.

mod control_group;
mod file_system;
mod kernel;
mod mappings;
mod pressure;
mod process;
mod threads;

use std::fs;
use std::path::Path;

pub use control_group::{ContainerStats, MemoryLimit, ReadsWrites, container_stats, container_stats_in, memory_limit};
pub use file_system::{FileSystem, file_system};
pub use kernel::{KernelSettings, TaskLimits, kernel_settings, task_limits};
pub use mappings::{CodeMapping, code_mappings, main_stack_end};
pub use pressure::{Pressure, Stall, pressure};
pub use process::{ProcessStats, cpu_steal, process_stats};
pub use threads::{ThreadTime, ThreadTimes, main_thread, thread_names};

/// Nanoseconds of a second.
const SECOND: f64 = 1e9;

/// The name of the host, or of the container. Empty if it can't be read.
#[must_use]
pub fn host_name() -> String {
    read(Path::new("/proc/sys/kernel/hostname")).map_or_else(String::new, |name| name.trim_end().to_owned())
}

/// Reads a small file, or the reason why there is none to read is dropped: kernels and containers differ in what they show.
fn read(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// Counts are far below 2⁵³, where a float is still exact.
#[expect(clippy::cast_precision_loss, reason = "figures for users; exact below 2⁵³")]
const fn float(value: u64) -> f64 {
    value as f64
}
