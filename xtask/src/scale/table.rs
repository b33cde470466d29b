//! A table of figures, as it is printed.

use std::fmt::Write as _;

/// Rows with a figure for each column.
pub(super) struct Table {
    text: String,
}

impl Table {
    pub(super) fn new(title: &str, columns: &[&str]) -> Self {
        let mut text = format!("\n{title}\n{:<14}", "");
        columns.iter().for_each(|column| text.push_str(&format!(" {column:>14}")));
        text.push('\n');
        Self { text }
    }

    /// Adds a row. A figure that isn't a number is shown as a dash.
    pub(super) fn row(&mut self, name: &str, figures: &[f64]) {
        let _ = write!(self.text, "{name:<14}");
        for figure in figures {
            let shown = if figure.is_nan() { "–".to_owned() } else { format!("{figure:.0}") };
            let _ = write!(self.text, " {shown:>14}");
        }
        self.text.push('\n');
    }

    pub(super) fn print(&self) {
        println!("{}", self.text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_aligned_with_their_columns() {
        let mut table = Table::new("rates", &["a", "b"]);
        table.row("one", &[12.4, f64::NAN]);
        let lines: Vec<&str> = table.text.lines().skip(2).collect();
        assert_eq!(lines[0].find('a'), lines[1].rfind('2'));
        assert_eq!(lines[0].chars().position(|c| c == 'b'), lines[1].chars().position(|c| c == '–'));
    }
}
