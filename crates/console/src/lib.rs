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

    #[test]
    fn assets_have_the_files_and_no_others() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("page");
        for asset in ASSETS {
            let name = asset.path.strip_prefix('/').filter(|name| !name.is_empty()).unwrap_or("index.html");
            let (source, served) = (std::fs::read_to_string(page.join(name)).unwrap(), asset.plain());
            let served = String::from_utf8(served).unwrap();
            assert_eq!(served.lines().count(), source.lines().count(), "{name}");
            // What isn't served is a comment.
            let left_out = served.lines().zip(source.lines()).filter(|(served, source)| served != source);
            let mut is_within = false;
            for (served, source) in left_out {
                let source = source.trim();
                let is_comment = is_within || source.starts_with("//") || source.starts_with("/*");
                assert!(served.is_empty() && is_comment, "{name}: {source}");
                is_within = (is_within || source.starts_with("/*")) && !source.ends_with("*/");
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
