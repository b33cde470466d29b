//! Compresses the files of the page once, and lists them for the library. It needs nothing but Rust: no node, no network.

use std::error::Error;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use flate2::Compression;
use flate2::write::GzEncoder;

const PAGE: &str = "page";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={PAGE}");
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let mut files = Vec::new();
    gather(Path::new(PAGE), &mut files)?;
    files.sort();
    let mut table = "&[\n".to_owned();
    for (number, file) in files.iter().enumerate() {
        let bytes = without_comments(&fs::read_to_string(file)?).into_bytes();
        let packed = out.join(format!("{number}.gz"));
        fs::write(&packed, compressed(&bytes)?)?;
        let path = file.strip_prefix(PAGE)?.to_str().ok_or("the name of a file of the page is not UTF-8")?;
        let path = if path == "index.html" { "" } else { path };
        let kind = content_type(file).unwrap_or_default();
        writeln!(
            table,
            "    Asset {{ path: {:?}, content_type: {kind:?}, etag: {:?}, gzip: include_bytes!({packed:?}) }},",
            format!("/{path}"),
            etag(&bytes),
        )?;
    }
    table.push(']');
    fs::write(out.join("assets.rs"), table)?;
    Ok(())
}

/// The files of a folder that browsers get. Types, settings of tools and tests are none.
fn gather(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    const NOT_SERVED: [&str; 3] = ["node_modules", "test", "tests"];
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.starts_with('.') || name.contains(".test.") || NOT_SERVED.contains(&name) {
            continue;
        }
        if path.is_dir() {
            gather(&path, files)?;
        } else if content_type(&path).is_some() {
            files.push(path);
        }
    }
    Ok(())
}

fn content_type(path: &Path) -> Option<&'static str> {
    Some(match path.extension()?.to_str()? {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        _ => return None,
    })
}

/// The text with empty lines instead of lines that only have comments: types and reasons are for readers of the source. Numbers of lines stay,
/// so a browser's message names a line of the file.
fn without_comments(text: &str) -> String {
    let mut is_within = false;
    let mut kept = String::with_capacity(text.len());
    for line in text.lines() {
        let line_only = line.trim();
        let begins = line_only.starts_with("/*");
        let is_comment = is_within || line_only.starts_with("//") || (begins && ends_with_its_end(line_only));
        is_within = (is_within || begins) && !line_only.contains("*/");
        if !is_comment {
            kept.push_str(line);
        }
        kept.push('\n');
    }
    kept
}

/// Whether nothing follows a comment that begins the line, or its end is on a later line.
fn ends_with_its_end(line: &str) -> bool {
    line.find("*/").is_none_or(|end| end + 2 == line.len())
}

fn compressed(bytes: &[u8]) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

/// A tag of the content, with its quotes. It is weak: the compressed and the plain content have the same.
fn etag(bytes: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    format!("W/\"{:016x}\"", hasher.finish())
}
