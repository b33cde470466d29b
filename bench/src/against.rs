//! `--against`: the same benchmark of two servers alternately, and the ratio of each figure.

use std::path::Path;

use anyhow::{Result, bail};

use harness::report::{Row, median};

use crate::{Arguments, measure};

/// Fewer pairs say little on a machine that others share.
const PAIRS_MIN: u32 = 7;

/// Measures the server and `other` alternately, and prints the median of the pairs' ratios for each figure: above 1, the server is better.
pub(super) fn run(arguments: &Arguments, server: &Path, other: &Path) -> Result<()> {
    let mut pairs = Vec::new();
    for pair in 0..arguments.pairs.max(PAIRS_MIN) {
        // Each is first as often as the other, so neither always runs with caches and a disk that the other has used.
        let (new, old) = if pair % 2 == 0 {
            let new = measure(arguments, server, 1)?;
            (new, measure(arguments, other, 1)?)
        } else {
            let old = measure(arguments, other, 1)?;
            (measure(arguments, server, 1)?, old)
        };
        let ratios = ratios(&new, &old)?;
        for (row, ratio) in new.iter().zip(&ratios) {
            println!("pair {}: {}: {ratio:.3}", pair + 1, row.what);
        }
        pairs.push((new, ratios));
    }
    let Some((rows, _)) = pairs.last() else { bail!("no pair was measured") };
    for (at, row) in rows.iter().enumerate() {
        let mut of_row: Vec<f64> = pairs.iter().map(|(_, ratios)| ratios[at]).collect();
        of_row.sort_by(f64::total_cmp);
        let (least, most) = (of_row[0], of_row[of_row.len() - 1]);
        println!(
            "{}: median {:.3} of {} pairs ({least:.3} to {most:.3})",
            row.what,
            median(of_row.clone()),
            of_row.len()
        );
    }
    Ok(())
}

/// How much better each figure of the first is.
fn ratios(new: &[Row], old: &[Row]) -> Result<Vec<f64>> {
    if new.len() != old.len() || new.iter().zip(old).any(|(new, old)| new.what != old.what) {
        bail!("the two servers were measured by different figures");
    }
    Ok(new.iter().zip(old).map(|(new, old)| new.gain_over(old)).collect())
}
