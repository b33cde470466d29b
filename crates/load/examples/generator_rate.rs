//! Measures how fast records are generated: `cargo run --release -p load --example generator_rate`

#![allow(clippy::print_stdout)]

use std::time::Instant;

use generator::{Generator, RecordKind};

const RECORDS: u32 = 300_000;

fn main() {
    for kind in RecordKind::ALL {
        let mut generator = Generator::new(kind, 1);
        let (mut line, mut bytes) = (Vec::new(), 0);
        let start = Instant::now();
        for _ in 0..RECORDS {
            line.clear();
            generator.next_line(&mut line);
            bytes += line.len();
        }
        let seconds = start.elapsed().as_secs_f64();
        let (rate, size) = (f64::from(RECORDS) / seconds, bytes as f64 / f64::from(RECORDS));
        println!("{kind:?}: {rate:.0} records/s of {size:.0} bytes");
    }
}
