//! The systems that the built binary starts on.

/// The C library of Ubuntu 22.04, minor version.
const GLIBC_MINOR_MAX: u32 = 35;

/// Names of needed versions are in the binary as text: `GLIBC_2.34`, and `GLIBC_ABI_DT_RELR` for packed relocations, which came with 2.36.
#[test]
fn binary_starts_on_older_systems() {
    let binary = std::fs::read(env!("CARGO_BIN_EXE_forebay")).unwrap();
    let text = String::from_utf8_lossy(&binary);
    assert!(!text.contains("GLIBC_ABI_DT_RELR"), "packed relocations need glibc 2.36");
    let versions = text.split("GLIBC_2.").skip(1);
    let minor = |rest: &str| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u32>().ok();
    let newest = versions.filter_map(minor).max();
    assert!(newest.is_none_or(|newest| newest <= GLIBC_MINOR_MAX), "it needs glibc 2.{newest:?}");
}
