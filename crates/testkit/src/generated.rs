//! Blocks of pages with what the code declares, between `<!-- generated: NAME -->` and `<!-- end -->`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Tests of one program that write the same page do so one after the other.
static WRITING: Mutex<()> = Mutex::new(());

/// Fails if the block `name` of the page isn't `expected`. The page is a path within the repository, as `docs/reference/limits.md`.
/// With `FOREBAY_TEST_BLESS` set, it writes the block instead.
pub fn generated_block(page: &str, name: &str, expected: &str) {
    let file = page_file(page);
    let _writing = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("cannot read {page}: {error}"));
    let blessed = with_block(&text, name, expected).unwrap_or_else(|problem| panic!("{page}: {problem}"));
    if blessed == text {
        return;
    }
    if std::env::var_os("FOREBAY_TEST_BLESS").is_some() {
        fs::write(&file, blessed).unwrap();
        return;
    }
    let (number, line, new) = first_difference(&text, &blessed);
    panic!(
        "{page}:{number}: the block `{name}` isn't what the code declares.\n  page: {line}\n  code: {new}\n\
         Run this test with FOREBAY_TEST_BLESS=1 to write the block."
    );
}

/// The path of a page that is named by its path within the repository.
#[must_use]
pub fn page_file(page: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page)
}

/// The page with another content of the block.
fn with_block(page: &str, name: &str, content: &str) -> Result<String, String> {
    let begin = format!("<!-- generated: {name} -->\n");
    let (before, rest) = page.split_once(&begin).ok_or_else(|| format!("no line `{}`", begin.trim_end()))?;
    if rest.contains(&begin) {
        return Err(format!("two blocks `{name}`"));
    }
    let end = rest.find("<!-- end -->").ok_or_else(|| format!("no line `<!-- end -->` after the block `{name}`"))?;
    if rest[..end].contains("<!-- generated: ") {
        return Err(format!("no line `<!-- end -->` after the block `{name}`"));
    }
    Ok(format!("{before}{begin}\n{}\n\n{}", content.trim_matches('\n'), &rest[end..]))
}

/// The number of the first line that differs, and that line in both texts.
fn first_difference<'a>(old: &'a str, new: &'a str) -> (usize, &'a str, &'a str) {
    let same = old.lines().zip(new.lines()).take_while(|(old, new)| old == new).count();
    let line = |text: &'a str| text.lines().nth(same).unwrap_or_default();
    (same + 1, line(old), line(new))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# A\n<!-- generated: a -->\n\none\n\n<!-- end -->\n<!-- generated: b -->\n<!-- end -->\nrest\n";

    #[test]
    fn block_is_replaced_alone() {
        assert_eq!(with_block(PAGE, "a", "one\n").unwrap(), PAGE);
        let changed = with_block(PAGE, "b", "two\n").unwrap();
        assert_eq!(changed, PAGE.replace("b -->\n", "b -->\n\ntwo\n\n"));
        assert_eq!(first_difference(PAGE, &changed), (8, "<!-- end -->", ""));
    }

    #[test]
    fn missing_and_repeated_blocks_are_reported() {
        assert!(with_block(PAGE, "c", "").unwrap_err().contains("generated: c"));
        assert!(with_block(&PAGE.repeat(2), "a", "").unwrap_err().contains("two blocks"));
        assert!(with_block(&PAGE.replacen("<!-- end -->", "", 1), "a", "").unwrap_err().contains("end"));
    }
}
