//! The table that a benchmark ends with.

use anyhow::{Result, bail};

/// A figure with the reference that it is compared with.
#[derive(Debug)]
pub struct Row {
    /// The measured value.
    pub what: String,
    /// The figure.
    pub measured: f64,
    /// Its unit.
    pub unit: &'static str,
    /// Measured in the same run; the bar is then for the ratio to it.
    pub reference: Option<Reference>,
    /// The bar.
    pub bar: Bar,
}

/// The reference of a figure.
#[derive(Clone, Copy, Debug)]
pub struct Reference {
    measured: f64,
    ratio: f64,
}

/// The bar of a figure, or of its ratio to the reference.
#[derive(Clone, Copy, Debug)]
pub enum Bar {
    /// The figure is this or higher.
    AtLeast(f64),
    /// The figure is this or lower.
    AtMost(f64),
}

impl Row {
    /// A figure and its reference, measured alternately. The machine's speed drifts: so the ratio is the median of the
    /// rounds' ratios, and not the ratio of two medians that may come from different moments.
    pub fn alternating(what: &str, unit: &'static str, rounds: &[(f64, f64)], bar: Bar) -> Self {
        let of = |figure: fn(&(f64, f64)) -> f64| median(rounds.iter().map(figure).collect());
        let reference = Some(Reference { measured: of(|round| round.1), ratio: of(|round| round.0 / round.1) });
        Self { what: what.to_owned(), measured: of(|round| round.0), unit, reference, bar }
    }

    /// A figure without a reference.
    pub fn alone(what: &str, unit: &'static str, measured: f64, bar: Bar) -> Self {
        Self { what: what.to_owned(), measured, unit, reference: None, bar }
    }

    fn judged(&self) -> f64 {
        self.reference.map_or(self.measured, |reference| reference.ratio)
    }

    /// How many times better this figure is than the same one of another server, whichever direction is better.
    pub fn gain_over(&self, other: &Self) -> f64 {
        match self.bar {
            Bar::AtLeast(_) => self.measured / other.measured,
            Bar::AtMost(_) => other.measured / self.measured,
        }
    }

    fn is_met(&self) -> bool {
        match self.bar {
            Bar::AtLeast(least) => self.judged() >= least,
            Bar::AtMost(most) => self.judged() <= most,
        }
    }

    fn cells(&self) -> [String; 6] {
        let ratio = self.reference.map(|_| format!("{:.2}", self.judged()));
        let bar = match self.bar {
            Bar::AtLeast(least) => format!("≥ {}", number(least)),
            Bar::AtMost(most) => format!("≤ {}", number(most)),
        };
        let result = if self.is_met() { "ok" } else { "short" };
        [
            self.what.clone(),
            format!("{} {}", number(self.measured), self.unit),
            self.reference.map(|reference| number(reference.measured)).unwrap_or_default(),
            ratio.unwrap_or_default(),
            bar,
            result.to_owned(),
        ]
    }
}

/// Prints the rows as a table, and fails if one misses its bar.
pub fn print(rows: &[Row]) -> Result<()> {
    show(rows);
    let short = rows.iter().filter(|row| !row.is_met()).count();
    if short > 0 {
        bail!("{short} of {} figures are short of their bars", rows.len());
    }
    Ok(())
}

/// Prints the rows as a table.
pub fn show(rows: &[Row]) {
    let header = ["what", "measured", "reference", "ratio", "bar", "result"].map(str::to_owned);
    let lines: Vec<_> = std::iter::once(header).chain(rows.iter().map(Row::cells)).collect();
    for line in &lines {
        let mut text = String::new();
        for (column, cell) in line.iter().enumerate() {
            let width = lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
            text.push_str(&format!("{cell:<width$}  "));
        }
        println!("{}", text.trim_end());
    }
}

/// The middle one of the figures.
pub fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    match figures.len() {
        0 => f64::NAN,
        count if count % 2 == 0 => f64::midpoint(figures[count / 2 - 1], figures[count / 2]),
        count => figures[count / 2],
    }
}

fn number(figure: f64) -> String {
    if figure.abs() < 100.0 {
        let text = format!("{figure:.2}");
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    let digits = format!("{figure:.0}");
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|group| std::str::from_utf8(group).unwrap_or("")).collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(measured: f64, reference: Option<f64>, bar: Bar) -> Row {
        match reference {
            Some(reference) => Row::alternating("x", "/s", &[(measured, reference)], bar),
            None => Row::alone("x", "/s", measured, bar),
        }
    }

    #[test]
    fn bar_applies_to_the_ratio_with_reference() {
        assert!(row(75.0, Some(100.0), Bar::AtLeast(0.75)).is_met());
        assert!(!row(74.0, Some(100.0), Bar::AtLeast(0.75)).is_met());
        assert!(row(8.0, None, Bar::AtMost(8.0)).is_met());
        assert!(!row(8.1, None, Bar::AtMost(8.0)).is_met());
        assert!(!row(f64::NAN, None, Bar::AtMost(8.0)).is_met());
        assert!(print(&[row(1.0, None, Bar::AtMost(2.0)), row(3.0, None, Bar::AtMost(2.0))]).is_err());
    }

    #[test]
    fn rounds_are_compared_with_their_own_reference() {
        let rounds = [(90.0, 100.0), (30.0, 40.0), (60.0, 1000.0)];
        let row = Row::alternating("x", "/s", &rounds, Bar::AtLeast(0.0));
        assert!((row.judged() - 0.75).abs() < 1e-9 && (row.measured - 60.0).abs() < 1e-9);
        assert!((row.reference.unwrap().measured - 100.0).abs() < 1e-9);
    }

    #[test]
    fn gain_is_above_one_for_the_better_figure() {
        let at_least = |measured| row(measured, None, Bar::AtLeast(0.0));
        let at_most = |measured| row(measured, None, Bar::AtMost(0.0));
        assert!((at_least(120.0).gain_over(&at_least(100.0)) - 1.2).abs() < 1e-9);
        assert!((at_most(100.0).gain_over(&at_most(120.0)) - 1.2).abs() < 1e-9);
    }

    #[test]
    fn figures_are_written_to_be_read() {
        assert_eq!([1.5, 12.0, 0.756, 1_234_567.8, 100.0].map(number), ["1.5", "12", "0.76", "1,234,568", "100"]);
        assert!((median(vec![5.0, 1.0, 3.0]) - 3.0).abs() < 1e-9);
        assert!((median(vec![4.0, 1.0]) - 2.5).abs() < 1e-9);
        assert!(median(vec![]).is_nan());
    }
}
