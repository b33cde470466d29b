//! Tests on the simulated disk.
