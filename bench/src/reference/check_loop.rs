//! The ceiling of batch intake: pieces of NDJSON whose JSON is only checked, then checksummed, written and
//! fdatasynced. Without HTTP, ids, types, recovery or delivery.

use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use memchr::memchr_iter;
use serde::de::IgnoredAny;
use xxhash_rust::xxh3::xxh3_64;

use super::zero_filled::{ZeroFilled, padded};

const PIECE_BYTES: usize = 1024 * 1024;

/// Whole lines of NDJSON, about 1 MiB of them.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub(crate) bytes: Vec<u8>,
    pub(crate) events: u64,
}

/// The pieces of an NDJSON file.
pub(crate) fn pieces_of_file(path: &Path) -> Result<Vec<Piece>> {
    let bytes = std::fs::read(path).with_context(|| format!("reading {}", path.display()))?;
    let pieces = pieces(&bytes);
    if pieces.is_empty() {
        bail!("{} holds no events", path.display());
    }
    Ok(pieces)
}

/// Cuts NDJSON at line ends into pieces of full size: the lines are gone through again and again until the last
/// piece is full too.
pub(crate) fn pieces(ndjson: &[u8]) -> Vec<Piece> {
    let lines: Vec<&[u8]> = ndjson.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
    let mut pieces = Vec::new();
    let mut open = Piece { bytes: Vec::with_capacity(PIECE_BYTES), events: 0 };
    for (used, line) in lines.iter().cycle().enumerate() {
        if open.events > 0 && open.bytes.len() + line.len() + 1 > PIECE_BYTES {
            let next = Piece { bytes: Vec::with_capacity(PIECE_BYTES), events: 0 };
            pieces.push(std::mem::replace(&mut open, next));
            if used >= lines.len() {
                break;
            }
        }
        open.bytes.extend_from_slice(line);
        open.bytes.push(b'\n');
        open.events += 1;
    }
    pieces
}

/// Events a second that go through the loop.
pub(crate) fn run(pieces: &[Piece], directory: &Path, duration: Duration) -> Result<f64> {
    let mut file = ZeroFilled::new(directory)?;
    let longest = pieces.iter().map(|piece| piece.bytes.len()).max().context("no pieces")?;
    let mut block = vec![0; padded(longest)];
    let begun = Instant::now();
    let mut events = 0;
    for piece in pieces.iter().cycle() {
        events += check(&piece.bytes)?;
        black_box(xxh3_64(&piece.bytes));
        block[..piece.bytes.len()].copy_from_slice(&piece.bytes);
        file.commit(&block, piece.bytes.len())?;
        if begun.elapsed() >= duration {
            break;
        }
    }
    Ok(events as f64 / begun.elapsed().as_secs_f64())
}

fn check(piece: &[u8]) -> Result<u64> {
    let mut events = 0;
    let mut begin = 0;
    for end in memchr_iter(b'\n', piece) {
        serde_json::from_slice::<IgnoredAny>(&piece[begin..end]).context("a line that is no JSON")?;
        begin = end + 1;
        events += 1;
    }
    Ok(events)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_full_and_hold_whole_lines() {
        let lines: Vec<u8> = (0..90_000).flat_map(|n| format!("{{\"n\":{n}}}\n").into_bytes()).collect();
        let pieces = pieces(&lines);
        assert!(pieces.len() >= 2);
        for piece in &pieces {
            assert!((PIECE_BYTES - 100..=PIECE_BYTES).contains(&piece.bytes.len()));
            assert_eq!(check(&piece.bytes).unwrap(), piece.events);
        }
    }

    #[test]
    fn bad_json_is_no_event() {
        assert!(check(b"{\"a\":1}\n{\"a\":}\n").is_err());
        assert_eq!(super::pieces(b"\n\n").len(), 0);
    }
}
