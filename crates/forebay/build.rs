//! Links the release binary without unwind tables.
//!
//! A panic ends the process (`panic = "abort"`), and the profile follows frame pointers: nothing reads the tables. They were a seventh of the
//! binary. Only the linker that the Rust toolchain brings for x86-64 is known to
//! accept the script, so other architectures keep the tables.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=discard-unwind-tables.ld");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    let has_linker = is("CARGO_CFG_TARGET_ARCH", "x86_64") && is("CARGO_CFG_TARGET_ENV", "gnu");
    if is("PROFILE", "release") && has_linker && is("CARGO_CFG_TARGET_OS", "linux") {
        let folder = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
        println!("cargo::rustc-link-arg-bin=forebay=-Wl,-T,{folder}/discard-unwind-tables.ld");
    }
}
