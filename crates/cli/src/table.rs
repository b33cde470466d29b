//! Tables for users: a head, and columns that are as wide as their cells. In a terminal no line is wider than it.

use std::io;
use std::os::fd::AsFd;

use rustix::termios::tcgetwinsize;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Between two columns.
const GAP: &str = "  ";
/// A column that is cut keeps this much, to keep its cells distinct.
const CUT_MIN: usize = 8;
/// A text below its row is indented by this, and has at most so many lines.
const INDENT: &str = "  ";
const LINES_MAX: usize = 3;
/// The end of a cell that is cut.
const CUT: char = '…';

/// A column's head, and how its cells are shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    head: &'static str,
    is_number: bool,
    may_be_cut: bool,
    goes_below_row: bool,
}

impl Column {
    /// Of text that is cut if the terminal is too narrow.
    pub(crate) const fn text(head: &'static str) -> Self {
        Self { head, is_number: false, may_be_cut: true, goes_below_row: false }
    }

    /// The last one, of long text: if the terminal is too narrow for a table with it, each of its cells is printed below its row.
    pub(crate) const fn note(head: &'static str) -> Self {
        Self { goes_below_row: true, ..Self::text(head) }
    }

    /// Of text that users copy: it is never cut.
    pub(crate) const fn whole(head: &'static str) -> Self {
        Self { may_be_cut: false, ..Self::text(head) }
    }

    /// Of numbers: aligned to the right, and never cut.
    pub(crate) const fn number(head: &'static str) -> Self {
        Self { is_number: true, ..Self::whole(head) }
    }
}

/// The table.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub(crate) fn new(columns: impl Into<Vec<Column>>) -> Self {
        Self { columns: columns.into(), rows: Vec::new() }
    }

    /// Adds a row: a cell for each column.
    pub(crate) fn add(&mut self, cells: impl Into<Vec<String>>) {
        let cells: Vec<String> = cells.into();
        debug_assert_eq!(cells.len(), self.columns.len(), "a cell for each column");
        // A store's or a client's text must not be obeyed by the terminal.
        self.rows.push(cells.iter().map(|cell| text::escape_control(cell).into_owned()).collect());
    }

    /// The table as text, each line at most `width` wide if the columns that may be cut allow it.
    pub(crate) fn text(&self, width: Option<usize>) -> String {
        let limit = width.unwrap_or(usize::MAX);
        let mut widths = self.widths();
        let notes_below = total(&widths) > limit && self.columns.last().is_some_and(|column| column.goes_below_row);
        if notes_below {
            widths.pop();
        }
        self.cut(&mut widths, limit);
        let heads = self.columns.iter().map(|column| column.head);
        let mut text = self.line(heads, &widths);
        for row in &self.rows {
            text += &self.line(row.iter().map(String::as_str), &widths);
            if let Some(note) = row.last().filter(|_| notes_below) {
                wrapped(note, limit).iter().for_each(|line| text += &format!("{INDENT}{line}\n"));
            }
        }
        text
    }

    fn widths(&self) -> Vec<usize> {
        let widest = |at: usize, column: &Column| {
            let cells = self.rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.width());
            cells.max().unwrap_or(0).max(column.head.width())
        };
        self.columns.iter().enumerate().map(|(at, column)| widest(at, column)).collect()
    }

    /// Makes columns narrower until a row is at most `limit` wide.
    fn cut(&self, widths: &mut [usize], limit: usize) {
        let mut excess = total(widths).saturating_sub(limit);
        // The last column usually has the longest text, and its beginning says the most.
        for (column, width) in self.columns.iter().zip(widths).rev().filter(|(column, _)| column.may_be_cut) {
            let cut = excess.min(width.saturating_sub(CUT_MIN.max(column.head.width())));
            *width -= cut;
            excess -= cut;
        }
    }

    fn line<'c>(&self, cells: impl Iterator<Item = &'c str>, widths: &[usize]) -> String {
        let mut line = String::new();
        for ((cell, column), width) in cells.zip(&self.columns).zip(widths) {
            let cell = shortened(cell, *width);
            let blanks = " ".repeat(width.saturating_sub(cell.width()));
            let padded = if column.is_number { blanks + &cell } else { cell + &blanks };
            line += &padded;
            line += GAP;
        }
        line.truncate(line.trim_end().len());
        line + "\n"
    }
}

/// The width of a row.
fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP.len() * widths.len().saturating_sub(1)
}

/// A text in lines that are at most as wide as the terminal, with their indentation.
fn wrapped(text: &str, limit: usize) -> Vec<String> {
    let width = limit.saturating_sub(INDENT.len()).max(CUT_MIN);
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut().filter(|line| line.width() + 1 + word.width() <= width) {
            Some(line) => *line += &format!(" {word}"),
            None => lines.push(word.to_owned()),
        }
    }
    if lines.len() > LINES_MAX {
        lines.truncate(LINES_MAX);
        lines[LINES_MAX - 1] += &format!(" {CUT}");
    }
    lines.iter().map(|line| shortened(line, width)).collect()
}

/// The columns of the terminal that the standard output is; none if it is no terminal.
pub(crate) fn terminal_width() -> Option<usize> {
    width_of(io::stdout())
}

/// The columns of a terminal; none if it is no terminal.
pub(super) fn width_of(stream: impl AsFd) -> Option<usize> {
    let size = tcgetwinsize(stream).ok()?;
    // A terminal without a known size says 0.
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// A text that is cut if it is wider than `width`.
pub(super) fn shortened(cell: &str, width: usize) -> String {
    if cell.width() <= width {
        return cell.to_owned();
    }
    let (mut short, mut left) = (String::new(), width.saturating_sub(1));
    for character in cell.chars() {
        let taken = character.width().unwrap_or(0);
        if taken > left {
            break;
        }
        left -= taken;
        short.push(character);
    }
    short.truncate(short.trim_end().len());
    short.push(CUT);
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Table {
        let mut table =
            Table::new([Column::text("TYPE"), Column::number("PENDING"), Column::whole("ID"), Column::text("REASON")]);
        table.add(["access".into(), "12".into(), "2651fa94".into(), "no bad ones are allowed here".into()]);
        table.add(["商品".into(), "3".into(), "7".into(), "red \u{1b}[31m".into()]);
        table
    }

    #[test]
    fn columns_are_as_wide_as_their_cells() {
        let expected = "TYPE    PENDING  ID        REASON\n\
                        access       12  2651fa94  no bad ones are allowed here\n\
                        商品          3  7         red \\u001b[31m\n";
        assert_eq!(example().text(None), expected);
        assert_eq!(example().text(Some(55)), expected);
    }

    #[test]
    fn narrow_terminal_cuts_text_but_no_id() {
        let text = example().text(Some(40));
        let expected = "TYPE    PENDING  ID        REASON\n\
                        access       12  2651fa94  no bad ones…\n\
                        商品          3  7         red \\u001b[3…\n";
        assert_eq!(text, expected);
        assert!(text.lines().all(|line| line.width() <= 40), "{text}");
        assert!(example().text(Some(1)).contains("access       12  2651fa94  no bad…\n"));
    }

    #[test]
    fn narrow_terminal_prints_notes_below_their_rows() {
        let mut table = Table::new([Column::text("SINK"), Column::number("PENDING"), Column::note("NOTE")]);
        table.add(["local".into(), "3".into(), String::new()]);
        table.add(["search".into(), "12".into(), "one two three four five six seven eight nine \u{1b}[31m".into()]);
        let expected = "SINK    PENDING  NOTE\n\
                        local         3\n\
                        search       12  one two three four five six seven eight nine \\u001b[31m\n";
        assert_eq!(table.text(Some(72)), expected);
        let expected = "SINK    PENDING\n\
                        local         3\n\
                        search       12\n  \
                        one two three four\n  \
                        five six seven\n  \
                        eight nine …\n";
        assert_eq!(table.text(Some(20)), expected);
        assert!(table.text(Some(1)).lines().all(|line| line.width() <= 15), "{}", table.text(Some(1)));
    }
}
