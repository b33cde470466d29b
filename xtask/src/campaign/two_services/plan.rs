//! When which writer has which fault, and when gateways are killed: all of it follows from the seed.

use std::fmt;
use std::time::Duration;

use anyhow::{Result, bail};

use super::{GATEWAYS, WRITERS};
use random::Random;

/// A fault of a writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// SIGKILL; it is started again.
    Kill,
    /// SIGTERM; it is started again.
    Stop,
    /// SIGSTOP; SIGCONT.
    Freeze,
    /// Its answers take ten times as long.
    Delay,
}

impl Fault {
    const ALL: [Self; 4] = [Self::Kill, Self::Stop, Self::Freeze, Self::Delay];

    /// How long it lasts.
    fn lasts(self, random: &mut Random) -> Duration {
        match self {
            Self::Freeze => Duration::from_secs(5),
            Self::Kill | Self::Stop => milliseconds(random, 100, 2_000),
            Self::Delay => milliseconds(random, 2_000, 5_000),
        }
    }
}

/// Something that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// A writer's fault begins.
    Begin(usize, Fault),
    /// It ends.
    End(usize, Fault),
    /// SIGKILL.
    KillGateway(usize),
    /// Over the same data directory.
    StartGateway(usize),
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Begin(writer, fault) => write!(f, "writer {writer}: {fault:?} begins"),
            Self::End(writer, fault) => write!(f, "writer {writer}: {fault:?} ends"),
            Self::KillGateway(gateway) => write!(f, "gateway {gateway} is killed"),
            Self::StartGateway(gateway) => write!(f, "gateway {gateway} is started"),
        }
    }
}

/// An action, and when it is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlannedAction {
    pub(super) at: Duration,
    pub(super) action: Action,
}

/// All steps in their order.
#[derive(Debug)]
pub(super) struct Plan(Vec<PlannedAction>);

impl Plan {
    /// Each kind of fault about as often, on writers that have none at that time. Faults of different writers overlap.
    pub(super) fn new(seed: u64, faults: u32, gateway_kills: u32) -> Result<Self> {
        if faults == 0 {
            bail!("a campaign without faults shows nothing");
        }
        let mut random = Random::new(seed);
        let mut kinds: Vec<Fault> = (0..faults).zip(Fault::ALL.into_iter().cycle()).map(|(_, fault)| fault).collect();
        random.shuffle(&mut kinds);
        let mut steps = Vec::new();
        let (mut now, mut free) = (Duration::from_secs(1), [Duration::ZERO; WRITERS]);
        for fault in kinds {
            now = (now + milliseconds(&mut random, 200, 2_500)).max(free.into_iter().min().unwrap_or_default());
            let idle: Vec<usize> = (0..WRITERS).filter(|writer| free[*writer] <= now).collect();
            let writer = idle[below(&mut random, idle.len())];
            let end = now + fault.lasts(&mut random);
            free[writer] = end + Duration::from_millis(1);
            steps.extend([(now, Action::Begin(writer, fault)), (end, Action::End(writer, fault))]);
        }
        let over = free.into_iter().max().unwrap_or_default();
        for number in 0..gateway_kills {
            // Each in a separate part of the time, in which the gateway is up again.
            let part = over / gateway_kills;
            let at = part * number + milliseconds(&mut random, 0, millis(part) / 2);
            let gateway = below(&mut random, GATEWAYS);
            let up = at + milliseconds(&mut random, 0, millis(part) / 4);
            steps.extend([(at, Action::KillGateway(gateway)), (up, Action::StartGateway(gateway))]);
        }
        // A stable order: of two at one time the first one stays the first.
        steps.sort_by_key(|(at, _)| *at);
        Ok(Self(steps.into_iter().map(|(at, action)| PlannedAction { at, action }).collect()))
    }

    pub(super) fn steps(&self) -> &[PlannedAction] {
        &self.0
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// From `least` on, for up to `most` milliseconds.
fn milliseconds(random: &mut Random, least: u64, most: u64) -> Duration {
    Duration::from_millis(least + random.below((most - least).max(1)))
}

fn below(random: &mut Random, end: usize) -> usize {
    usize::try_from(random.below(end as u64)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_of_a_writer_do_not_overlap() {
        for seed in 0..50 {
            let plan = Plan::new(seed, 40, 4).unwrap();
            assert_eq!(plan.steps(), Plan::new(seed, 40, 4).unwrap().steps());
            assert_eq!(plan.steps().len(), 88);
            let (mut faults, mut up, mut counts) = ([None; WRITERS], [true; GATEWAYS], [0; 4]);
            for step in plan.steps() {
                match step.action {
                    Action::Begin(writer, fault) => {
                        assert_eq!(faults[writer].replace(fault), None, "seed {seed}");
                        counts[Fault::ALL.iter().position(|one| *one == fault).unwrap()] += 1;
                    }
                    Action::End(writer, fault) => assert_eq!(faults[writer].take(), Some(fault), "seed {seed}"),
                    Action::KillGateway(gateway) => assert!(std::mem::replace(&mut up[gateway], false), "seed {seed}"),
                    Action::StartGateway(gateway) => assert!(!std::mem::replace(&mut up[gateway], true), "seed {seed}"),
                }
            }
            assert_eq!((faults, up, counts), ([None; WRITERS], [true; GATEWAYS], [10; 4]));
            assert!(plan.steps().last().unwrap().at < Duration::from_mins(4), "within ten minutes with all the rest");
        }
        assert_ne!(Plan::new(1, 40, 4).unwrap().steps(), Plan::new(2, 40, 4).unwrap().steps());
        assert!(Plan::new(1, 0, 4).is_err());
    }
}
