//! The lines of a file, of which each request takes one at random.

use std::io::Read;
use std::path::Path;

use settings::{InvalidValue, files};

/// The largest file: its lines are kept in memory.
const BYTES_MAX: usize = 16 * 1024 * 1024;

/// Lines that aren't blank, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lines {
    /// All lines without their ends.
    text: String,
    /// Where each line ends in `text`.
    ends: Vec<u32>,
}

impl Lines {
    /// Reads a file. `is_allowed` checks the bytes of each line.
    ///
    /// # Errors
    /// The file can't be read, is too large or not UTF-8, or has no line or one that isn't allowed.
    pub(super) fn read(path: &Path, is_allowed: impl Fn(u8) -> bool) -> Result<Self, InvalidValue> {
        let shown = path.display();
        let wrong = |label: String, help: &str| InvalidValue::new("", label).help(help);
        let mut bytes = Vec::new();
        let read = files::open(path).and_then(|file| file.take(BYTES_MAX as u64 + 1).read_to_end(&mut bytes));
        let relative = "a path is relative to the folder of the scenario";
        read.map_err(|error| wrong(format!("can't read {shown}: {error}"), relative))?;
        if bytes.len() > BYTES_MAX {
            let label = format!("{shown} is larger than {} MiB", BYTES_MAX / 1024 / 1024);
            return Err(wrong(label, "write fewer lines: a sample of them is enough"));
        }
        let text = str::from_utf8(files::content(&bytes));
        let text = text.map_err(|_| wrong(format!("{shown} is not UTF-8"), "convert it, as with iconv"))?;
        let mut lines = Self { text: String::new(), ends: Vec::new() };
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            if !line.bytes().all(&is_allowed) {
                let label = format!("{shown}:{} has a space or a character other than ASCII", index + 1);
                return Err(wrong(label, "write such characters percent-encoded, as %20"));
            }
            lines.text.push_str(line);
            lines.ends.extend(u32::try_from(lines.text.len()));
        }
        if lines.ends.is_empty() {
            return Err(wrong(format!("{shown} has no lines"), "write one value a line"));
        }
        Ok(lines)
    }

    pub(super) const fn count(&self) -> usize {
        self.ends.len()
    }

    /// The line of this index; empty if there is none.
    pub(super) fn get(&self, index: usize) -> &str {
        let end = |index: usize| self.ends.get(index).map_or(0, |end| *end as usize);
        let start = index.checked_sub(1).map_or(0, end);
        self.text.get(start..end(index)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is read from a file with these bytes, or the label of the error.
    fn read(bytes: &[u8]) -> Result<Vec<String>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        std::fs::write(&path, bytes).unwrap();
        let lines = Lines::read(&path, |byte| byte.is_ascii_graphic()).map_err(|wrong| wrong.label)?;
        Ok((0..lines.count()).map(|index| lines.get(index).to_owned()).collect())
    }

    #[test]
    fn blank_lines_and_line_ends_do_not_count() {
        assert_eq!(read(b"\xef\xbb\xbfa/1\r\n\n  \nb-2\nc").unwrap(), ["a/1", "b-2", "c"]);
        assert_eq!(read(b"one\n").unwrap(), ["one"]);
    }

    #[test]
    fn unusable_files_are_rejected() {
        for (bytes, expected) in [
            (&b""[..], "a.txt has no lines"),
            (b"\n \r\n", "a.txt has no lines"),
            (b"a\n\nb c\n", "a.txt:3 has a space"),
            (b"a\nb\xff\n", "a.txt is not UTF-8"),
            (&b"a\n".repeat(BYTES_MAX / 2 + 1), "a.txt is larger than 16 MiB"),
        ] {
            let label = read(bytes).unwrap_err();
            assert!(label.contains(expected), "{label}");
        }
        assert_eq!(read(&b"a\n".repeat(BYTES_MAX / 2)).unwrap().len(), BYTES_MAX / 2);
        let folder = tempfile::tempdir().unwrap();
        for (path, expected) in
            [(folder.path().join("b.txt"), "No such file"), (folder.path().into(), "not a regular file")]
        {
            let label = Lines::read(&path, |_| true).unwrap_err().label;
            assert!(label.contains("can't read") && label.contains(expected), "{label}");
        }
    }
}
