//! The durability of the journal: on real disks and simulated ones, through power cuts, faults and damage, and in files
//! of earlier versions.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails loudly")]

// The mutant takes every checksum as right: only the power cuts have to notice it.
#[cfg(not(feature = "mutant-no-checksum"))]
mod damage;
mod events;
#[cfg(not(feature = "mutant-no-checksum"))]
mod faults;
#[cfg(not(feature = "mutant-no-checksum"))]
mod fixtures;
#[cfg(not(feature = "mutant-no-checksum"))]
mod found;
mod power_cuts;
mod reopen;
mod small_disk;
