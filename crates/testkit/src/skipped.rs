//! Tests that are skipped, since a program or a file that they need is missing.

use std::fs::File;
use std::io::Write;

/// The environment variable with the path of the file that lists skipped tests. `cargo xtask test` sets it and prints the list at its end.
pub const LIST: &str = "FOREBAY_SKIPPED_TESTS";

/// Reports that the running test is skipped, and why: a line of the list if there is one, else a message.
pub fn report(reason: &str) {
    let thread = std::thread::current();
    let line = format!("{}: {reason}\n", thread.name().unwrap_or("a thread of a test"));
    let Some(path) = std::env::var_os(LIST) else {
        eprint!("skipped: {line}");
        return;
    };
    // One write for each line: processes append at the same time.
    let list = File::options().create(true).append(true).open(&path);
    list.and_then(|mut list| list.write_all(line.as_bytes())).unwrap();
}
