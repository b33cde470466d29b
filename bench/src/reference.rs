//! Reference loops: the least that any program must do for the same work on the same machine. Benchmarks quote
//! ratios against them, measured in the same run, since absolute figures say more about the machine.

pub(crate) mod check_loop;
pub(crate) mod http_durable;
mod zero_filled;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Subcommand;

/// Options of `cargo xtask reference`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    reference: Reference,
}

#[derive(Subcommand)]
enum Reference {
    /// Answers POSTs once their bodies are on disk; it knows nothing of JSON, ids or recovery. Runs until killed.
    HttpDurable {
        /// Port of 127.0.0.1 to listen on.
        #[arg(long)]
        port: u16,
        /// The path of the file: on the disk that is measured.
        #[arg(long)]
        directory: PathBuf,
    },
    /// Answers requests and writes nothing. Runs until killed.
    Http {
        /// Port of 127.0.0.1 to listen on.
        #[arg(long)]
        port: u16,
    },
    /// Takes all cores until it is killed.
    Burn,
    /// Checks the JSON of every line, checksums, writes and fdatasyncs pieces of 1 MiB.
    CheckLoop {
        /// NDJSON.
        #[arg(long)]
        file: PathBuf,
        /// The path of the file: on the disk that is measured.
        #[arg(long, default_value = "target")]
        directory: PathBuf,
        #[arg(long, default_value_t = 4)]
        seconds: u64,
    },
}

/// Runs one of the loops.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    match &arguments.reference {
        Reference::HttpDurable { port, directory } => http_durable::run(*port, Some(directory)),
        Reference::Http { port } => http_durable::run(*port, None),
        Reference::Burn => burn(),
        Reference::CheckLoop { file, directory, seconds } => {
            let pieces = check_loop::pieces_of_file(file)?;
            let rate = check_loop::run(&pieces, directory, Duration::from_secs(*seconds))?;
            println!("check-loop: {rate:.0} events/s");
            Ok(())
        }
    }
}

fn burn() -> Result<()> {
    let cores = std::thread::available_parallelism()?.get();
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    std::hint::spin_loop();
                }
            });
        }
    });
    Ok(())
}
