//! The differences between two texts, line by line.

/// Texts of more lines than this, both together as a product, are compared line by line at their places: to find what they have
/// in common would take too long.
const PAIRS_MAX: usize = 4_000_000;
const RED: &str = "\x1b[31m";
const GREEN: &str = "\x1b[32m";
const PLAIN: &str = "\x1b[0m";

/// Lines that are only expected begin with `-`, those that are only found with `+`.
pub(super) fn of(expected: &str, found: &str, coloured: bool) -> String {
    let (expected, found): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), found.lines().collect());
    let mut text = String::new();
    let mut add = |sign: char, line: &str| {
        let (begin, end) = match (coloured, sign) {
            (true, '-') => (RED, PLAIN),
            (true, '+') => (GREEN, PLAIN),
            _ => ("", ""),
        };
        text.push_str(&format!("{begin}{sign} {line}{end}\n"));
    };
    let (mut at, mut there) = (0, 0);
    for (same_at, same_there) in in_common(&expected, &found) {
        expected[at..same_at].iter().for_each(|line| add('-', line));
        found[there..same_there].iter().for_each(|line| add('+', line));
        if let Some(line) = expected.get(same_at) {
            add(' ', line);
        }
        (at, there) = (same_at + 1, same_there + 1);
    }
    text
}

/// The longest common subsequence, as places in both; the end of both is its last.
fn in_common(expected: &[&str], found: &[&str]) -> Vec<(usize, usize)> {
    let end = (expected.len(), found.len());
    if expected.len().saturating_mul(found.len()) > PAIRS_MAX {
        let same = expected.iter().zip(found).enumerate().filter(|(_, (expected, found))| expected == found);
        return same.map(|(at, _)| (at, at)).chain([end]).collect();
    }
    // longest[i][j]: how many lines those from i on and those from j on have in common.
    let mut longest = vec![vec![0_usize; found.len() + 1]; expected.len() + 1];
    for at in (0..expected.len()).rev() {
        for there in (0..found.len()).rev() {
            longest[at][there] = if expected[at] == found[there] {
                longest[at + 1][there + 1] + 1
            } else {
                longest[at + 1][there].max(longest[at][there + 1])
            };
        }
    }
    let (mut at, mut there, mut same) = (0, 0, Vec::new());
    while at < expected.len() && there < found.len() {
        if expected[at] == found[there] {
            same.push((at, there));
            (at, there) = (at + 1, there + 1);
        } else if longest[at + 1][there] >= longest[at][there + 1] {
            at += 1;
        } else {
            there += 1;
        }
    }
    same.push(end);
    same
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn difference_marks_missing_and_new_lines() {
        assert_eq!(of("a\nb\nc\n", "a\nx\nc\nd\n", false), "  a\n- b\n+ x\n  c\n+ d\n");
        assert_eq!(of("", "a\n", false), "+ a\n");
        assert_eq!(of("a\n", "", false), "- a\n");
        assert_eq!(of("a\n", "b\n", true), "\x1b[31m- a\x1b[0m\n\x1b[32m+ b\x1b[0m\n");
    }
}
