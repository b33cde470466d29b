//! Figures of the process, its threads and its container, read when they are asked for. What can't be read has no series.

use host::{ThreadTimes, container_stats, pressure, process_stats};

use super::exposition::{Exposition, float};

/// The process's part of the metrics, which every role has.
#[derive(Debug, Default)]
pub(crate) struct HostMetrics {
    threads: ThreadTimes,
}

impl HostMetrics {
    /// Adds all figures.
    pub(crate) fn add(&self, text: &mut Exposition) {
        process(text);
        container(text);
        stalls(text);
        let times = self.threads.read();
        text.counter("forebay_thread_cpu_seconds_total", "CPU time of threads, by name.", |series| {
            times.iter().for_each(|(name, time)| series.value(&[("thread", name)], time.cpu_seconds));
        });
        let help = "Time in which threads were ready to run and had no CPU, by name. Throttling is included.";
        text.counter("forebay_thread_run_wait_seconds_total", help, |series| {
            times.iter().for_each(|(name, time)| series.value(&[("thread", name)], time.run_wait_seconds));
        });
    }
}

fn process(text: &mut Exposition) {
    let stats = process_stats();
    let mut counter = |name, help, value| total(text, name, help, value);
    let count = |value: Option<u64>| value.map(float);
    counter("process_cpu_seconds_total", "CPU time of the process, in user mode and in the kernel.", stats.cpu_seconds);
    let help = "Bytes that the process's network received over IP, loopback included.";
    counter("process_network_receive_bytes_total", help, count(stats.received_bytes));
    let help = "Bytes that the process's network sent over IP, loopback included.";
    counter("process_network_transmit_bytes_total", help, count(stats.sent_bytes));
    let help = "Bytes read from disks for the process.";
    counter("forebay_process_disk_read_bytes_total", help, count(stats.disk_read_bytes));
    let help = "Bytes that the kernel wrote to disks for the process.";
    counter("forebay_process_disk_written_bytes_total", help, count(stats.disk_written_bytes));
    let mut gauge = |name, help, value| level(text, name, help, value);
    gauge("process_resident_memory_bytes", "Memory of the process.", count(stats.resident_bytes));
    gauge("process_virtual_memory_bytes", "Address space of the process.", count(stats.virtual_bytes));
    gauge("process_threads", "Threads of the process.", count(stats.threads));
    gauge("process_open_fds", "Open file descriptors.", count(stats.open_fds));
    gauge("process_max_fds", "Limit of file descriptors.", count(stats.max_fds));
    let help = "When the process started, in seconds since 1970.";
    gauge("process_start_time_seconds", help, stats.start_time_seconds);
}

fn container(text: &mut Exposition) {
    let stats = container_stats();
    let count = |value: Option<u64>| value.map(float);
    let mut counter = |name, help, value| total(text, name, help, value);
    counter("forebay_container_cpu_seconds_total", "CPU time of the container.", stats.cpu_seconds);
    let help = "Periods of the container's CPU limit in which it ran.";
    counter("forebay_container_cpu_periods_total", help, count(stats.periods));
    let help = "Periods in which the container used up its CPU limit.";
    counter("forebay_container_cpu_throttled_periods_total", help, count(stats.throttled_periods));
    let help = "Time in which the CPU limit held the container, over all CPUs.";
    counter("forebay_container_cpu_throttled_seconds_total", help, stats.throttled_seconds);
    let (bytes, operations) = (stats.disk_bytes, stats.disk_operations);
    let help = "Bytes that the container read from disks.";
    counter("forebay_container_disk_read_bytes_total", help, bytes.map(|bytes| float(bytes.reads)));
    let help = "Bytes that the container wrote to disks.";
    counter("forebay_container_disk_written_bytes_total", help, bytes.map(|bytes| float(bytes.writes)));
    let help = "Reads from disks by the container.";
    counter("forebay_container_disk_reads_total", help, operations.map(|operations| float(operations.reads)));
    let help = "Writes to disks by the container.";
    counter("forebay_container_disk_writes_total", help, operations.map(|operations| float(operations.writes)));
    let mut gauge = |name, help, value| level(text, name, help, value);
    gauge("forebay_container_cpu_limit_cores", "CPU limit of the container, in CPUs.", stats.cpu_limit);
    let help = "Memory limit of the container.";
    gauge("forebay_container_memory_limit_bytes", help, count(stats.memory_limit_bytes));
    let help = "Memory of the container, with its page cache.";
    gauge("forebay_container_memory_bytes", help, count(stats.memory_bytes));
    let help = "Page cache of the container, which the kernel can reclaim.";
    gauge("forebay_container_memory_cache_bytes", help, count(stats.memory_cache_bytes));
}

/// Pressure stall information, under names as node_exporter's.
fn stalls(text: &mut Exposition) {
    let pressure = pressure();
    let mut counter = |name, help, value| total(text, name, help, value);
    let help = "Time in which tasks of the container, or else of the machine, waited for a CPU.";
    counter("forebay_pressure_cpu_waiting_seconds_total", help, pressure.cpu.waiting_seconds);
    let help = "Time in which tasks waited for memory.";
    counter("forebay_pressure_memory_waiting_seconds_total", help, pressure.memory.waiting_seconds);
    let help = "Time in which all tasks waited for memory.";
    counter("forebay_pressure_memory_stalled_seconds_total", help, pressure.memory.stalled_seconds);
    let help = "Time in which tasks waited for disks.";
    counter("forebay_pressure_io_waiting_seconds_total", help, pressure.io.waiting_seconds);
    let help = "Time in which all tasks waited for disks.";
    counter("forebay_pressure_io_stalled_seconds_total", help, pressure.io.stalled_seconds);
}

fn total(text: &mut Exposition, name: &'static str, help: &str, value: Option<f64>) {
    text.counter(name, help, |series| value.into_iter().for_each(|value| series.value(&[], value)));
}

fn level(text: &mut Exposition, name: &'static str, help: &str, value: Option<f64>) {
    text.gauge(name, help, |series| value.into_iter().for_each(|value| series.value(&[], value)));
}
