//! Traces the server's system calls during one POST: an fdatasync that began after the block's write must have
//! ended before the answer is written.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::frame::{FrameOptions, short_with};
use crate::http::{self, Connection};

#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    frame: FrameOptions,
}

/// A block of the journal begins with it.
const BLOCK: &str = "\"FBLK";
/// Found in the block of the POST, and in no other.
const MARK: &str = "order-of-system-calls";

/// With the server that the tests were built with.
pub(crate) fn short() -> Result<()> {
    short_with(&["strace"], || run(&Options { frame: FrameOptions::short() }))
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let frame = options.frame.begin("fsync order")?;
    let trace = frame.folder.join("trace");
    let launch = frame.launch(None)?;
    let server = launch.ready()?;
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-s", "4096", "-e", "trace=pwrite64,fdatasync,write,writev,sendto,sendmsg", "-p"]);
    strace.arg(server.process.id().to_string()).arg("-o").arg(&trace);
    let mut strace = strace.stdin(Stdio::null()).spawn().context("`cargo xtask services` installs strace")?;
    // Until strace has attached to every thread, posts are not seen: the first one that is seen counts.
    let mut connection = Connection::open(launch.intake)?;
    let request = http::post("/ingest/event", &[], format!("\"{MARK}\"").as_bytes());
    let mut lines = Vec::new();
    for _ in 0..1_000 {
        let answer = connection.send(&request)?;
        if answer.status != 200 {
            bail!("the POST was answered {}", answer.status);
        }
        lines = std::fs::read_to_string(&trace).unwrap_or_default().lines().map(str::to_owned).collect();
        if lines.iter().filter(|line| is_answer(line)).count() >= 3 {
            break;
        }
    }
    server.stop()?;
    strace.wait()?;
    let synced = order(&lines)?;
    println!("{synced} POSTs: each fdatasync ended between the write of its block and its answer");
    frame.end()
}

fn is_answer(line: &str) -> bool {
    line.contains("HTTP/1.1 200")
}

/// Walks the calls in the order of their ends, and counts the answers. Each needs a block and then a sync before it.
fn order(lines: &[String]) -> Result<u64> {
    let (mut written, mut synced, mut answers) = (false, false, 0);
    for line in lines {
        // The store writes the payload too, later and elsewhere.
        if line.contains("pwrite64(") && line.contains(BLOCK) && line.contains(MARK) {
            (written, synced) = (true, false);
        } else if line.contains("fdatasync") && line.ends_with("= 0") && written {
            synced = true;
        } else if is_answer(line) {
            // Before the first block was seen, strace was not attached to the thread that wrote it.
            if written && !synced {
                bail!("an answer left before the fdatasync of its block had ended:\n{}", lines.join("\n"));
            }
            answers += u64::from(written);
            (written, synced) = (false, false);
        }
    }
    if answers == 0 {
        bail!("no POST was seen as a whole: nothing was checked\n{}", lines.join("\n"));
    }
    Ok(answers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(calls: &[&str]) -> Result<u64> {
        order(&calls.iter().map(|call| format!("7 {call}")).collect::<Vec<_>>())
    }

    const WRITE: &str = "pwrite64(9, \"FBLK…\\\"order-of-system-calls\\\"…\", 4096, 4096) = 4096";
    const SYNC: &str = "fdatasync(9) = 0";
    const ANSWER: &str = "writev(12, [{iov_base=\"HTTP/1.1 200 OK\\r\\n\", iov_len=70}], 1) = 70";

    #[test]
    fn answer_needs_a_finished_sync_after_write() {
        assert_eq!(check(&[WRITE, SYNC, ANSWER, WRITE, SYNC, ANSWER]).unwrap(), 2);
        assert!(check(&[WRITE, ANSWER]).is_err());
        assert!(check(&[WRITE, "fdatasync(9) = -1 EIO (Input/output error)", ANSWER]).is_err());
        assert!(check(&[SYNC, WRITE, ANSWER]).is_err());
        assert!(check(&[WRITE, SYNC, ANSWER, WRITE, "fdatasync(9 <unfinished ...>", ANSWER]).is_err());
        assert!(check(&[ANSWER]).is_err());
        let stored = "pwrite64(11, \"…\\\"order-of-system-calls\\\"…\", 4096, 4096) = 4096";
        assert_eq!(check(&[WRITE, SYNC, stored, ANSWER]).unwrap(), 1);
    }
}
