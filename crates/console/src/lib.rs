//! The console: a page that shows and operates a fleet in a browser. This crate has the page's files, compressed; the admin port serves them.

use std::io::Read;

use flate2::read::GzDecoder;

/// A file of the page.
#[derive(Debug)]
pub struct Asset {
    /// Its path on the server, as `/app.js`. The page itself is `/`.
    path: &'static str,
    /// The value of `Content-Type`.
    pub content_type: &'static str,
    /// The value of `ETag`, with its quotes. It changes with the content.
    pub etag: &'static str,
    /// The content, compressed with gzip.
    pub gzip: &'static [u8],
}

const ASSETS: &[Asset] = include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// The file at this path.
#[must_use]
pub fn find(path: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.path == path)
}

impl Asset {
    /// The content without compression, for clients that don't accept gzip.
    #[must_use]
    pub fn plain(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        // The build script has compressed it.
        let _ = GzDecoder::new(self.gzip).read_to_end(&mut bytes);
        bytes
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails loudly")]
mod tests {
    use super::*;
    use std::path::Path;

    /// The compressed size of the whole page at most: it opens quickly on a slow line.
    const BYTES_MAX: usize = 100_000;

    /// Whether a line of a module may be empty in the asset.
    fn is_comment(line: &str) -> bool {
        let text = line.trim();
        ["//", "/**", "*"].iter().any(|start| text.starts_with(start))
    }

    #[test]
    fn assets_have_the_files_without_comments() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("page");
        for asset in ASSETS {
            let name = asset.path.strip_prefix('/').filter(|name| !name.is_empty()).unwrap_or("index.html");
            let (file, served) =
                (std::fs::read_to_string(page.join(name)).unwrap(), String::from_utf8(asset.plain()).unwrap());
            assert_eq!(file.lines().count(), served.lines().count(), "{name}");
            for (line, kept) in file.lines().zip(served.lines()) {
                assert!(
                    line == kept || (kept.is_empty() && name.ends_with(".js") && is_comment(line)),
                    "{name}: {line}"
                );
            }
        }
        let index = find("/").unwrap();
        assert_eq!((index.content_type, index.etag.len()), ("text/html; charset=utf-8", 20));
        for path in ["/index.html", "/api.d.ts", "/tsconfig.json", "", "/../Cargo.toml"] {
            assert!(find(path).is_none(), "{path}");
        }
    }

    #[test]
    fn page_is_small() {
        let bytes: usize = ASSETS.iter().map(|asset| asset.gzip.len()).sum();
        assert!(bytes <= BYTES_MAX, "{bytes}");
    }
}
