//! Where this process spends its CPU time, and what allocates memory: the process itself samples its stacks.
//!
//! It works in a container without any right, where `perf_event_open` fails: see docs/internals/decisions/041. Without a running profile it
//! costs nothing but the load of one number at each allocation.

mod active;
mod code;
mod cpu;
mod elf;
mod folded;
mod heap;
mod instructions;
mod machine;
mod pprof;
mod protobuf;
mod ring;
mod stacks;
mod svg;

use std::io;
use std::str::FromStr;

pub use cpu::cpu;
pub use heap::{allocated, heap};
pub use stacks::{Profile, SampleKind};

/// Why there is no profile.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// Another one is running.
    #[error("another profile is running: wait until it ends")]
    Busy,
    /// The kernel gave no thread a timer, or no handler of the signal.
    #[error(
        "the kernel refuses the timers that a profile needs (timer_create: {0}): it may be a sandbox such as gVisor, or `ulimit -i` is reached"
    )]
    Timer(#[source] io::Error),
}

/// How a profile is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// A flame graph for a browser.
    #[default]
    Svg,
    /// The compressed protocol buffer that `go tool pprof` and other viewers read.
    Pprof,
    /// A line for each stack: names from the root, separated by semicolons, and the weight.
    Folded,
}

impl FromStr for Format {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        Ok(match name {
            "svg" => Self::Svg,
            "pprof" => Self::Pprof,
            "folded" => Self::Folded,
            _ => return Err(()),
        })
    }
}

impl Profile {
    /// Writes the profile. `title` is text for the reader, for instance the program's version.
    #[must_use]
    pub fn write(&self, format: Format, title: &str) -> Vec<u8> {
        match format {
            Format::Svg => svg::write(self, title).into_bytes(),
            Format::Pprof => pprof::write(self, title),
            Format::Folded => folded::write(self).into_bytes(),
        }
    }
}
