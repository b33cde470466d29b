//! Compresses the files of the page once, and lists them for the library. It needs nothing but Rust: no node, no network.
//! Lines of comments in modules become empty: they are a fifth of the compressed size, and all others keep their number.

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
        let mut bytes = fs::read(file)?;
        if file.extension().is_some_and(|extension| extension == "js") {
            bytes = without_comments(&String::from_utf8(bytes)?).into_bytes();
        }
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

/// A module with empty lines instead of comments that have whole lines. Comments in lines of code stay.
fn without_comments(module: &str) -> String {
    let mut kept = String::with_capacity(module.len());
    let mut inside = false;
    for line in module.lines() {
        let text = line.trim();
        let begins = !inside && text.starts_with("/**");
        let ends = text.find("*/").map(|at| at + 2);
        let is_comment = text.starts_with("//") || ((inside || begins) && ends.is_none_or(|end| end == text.len()));
        if !is_comment {
            kept.push_str(line);
        }
        kept.push('\n');
        inside = (inside || begins) && ends.is_none();
    }
    kept
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
