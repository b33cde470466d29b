//! The pages for users, which tests compare with the code.

use std::fs;
use std::path::Path;

use crate::generated::page_file;

/// README and all pages below `docs` and `examples`, sorted: each with its path within the repository, and its text.
#[must_use]
pub fn of_users() -> Vec<(String, String)> {
    let mut pages = vec!["README.md".to_owned()];
    ["docs", "examples"].into_iter().for_each(|folder| add(folder, &mut pages));
    pages.sort();
    pages
        .into_iter()
        .map(|page| {
            let text = fs::read_to_string(page_file(&page)).unwrap();
            (page, text)
        })
        .collect()
}

/// Adds all pages below a folder.
fn add(folder: &str, pages: &mut Vec<String>) {
    for entry in fs::read_dir(page_file(folder)).unwrap().map(Result::unwrap) {
        let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            add(&path, pages);
        } else if Path::new(&path).extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
}
