//! Pressure stall information: how long tasks waited for a resource. It is that of the control group if that has version 2, else of the
//! machine. Format: the kernel's documentation, "PSI - Pressure Stall Information".

use std::path::Path;

use crate::{control_group, float, read};

/// Seconds since the boot, or since the group began.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stall {
    /// In which some tasks waited.
    pub waiting_seconds: Option<f64>,
    /// In which all tasks waited.
    pub stalled_seconds: Option<f64>,
}

/// The pressure on each resource.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pressure {
    /// On the CPUs.
    pub cpu: Stall,
    /// On memory.
    pub memory: Stall,
    /// On disks.
    pub io: Stall,
}

/// Reads the pressure.
#[must_use]
pub fn pressure() -> Pressure {
    let group = control_group::unified_folder();
    let stall = |resource: &str| {
        let of_group = group.as_ref().and_then(|folder| read(&folder.join(format!("{resource}.pressure"))));
        let text = of_group.or_else(|| read(&Path::new("/proc/pressure").join(resource)));
        text.map_or_else(Stall::default, |text| parse(&text))
    };
    Pressure { cpu: stall("cpu"), memory: stall("memory"), io: stall("io") }
}

/// Lines as `some avg10=0.00 avg60=0.00 avg300=0.00 total=7`, in microseconds.
fn parse(text: &str) -> Stall {
    let total = |kind: &str| {
        let line = text.lines().find(|line| line.split(' ').next() == Some(kind))?;
        let microseconds = line.split(' ').find_map(|word| word.strip_prefix("total="))?;
        Some(float(microseconds.parse().ok()?) / 1e6)
    };
    Stall { waiting_seconds: total("some"), stalled_seconds: total("full") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_seconds() {
        let text = "some avg10=73.09 avg60=79.10 avg300=68.93 total=2500000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=10\n";
        assert_eq!(parse(text), Stall { waiting_seconds: Some(2.5), stalled_seconds: Some(0.000_01) });
        assert_eq!(parse("some avg10=0.00\n"), Stall::default());
    }
}
