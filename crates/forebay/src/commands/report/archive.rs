//! A `.tar.gz` with a few files in memory. Format: POSIX.1-1988 ustar, each number in octal digits.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;

/// The unit of the archive.
const BLOCK: usize = 512;
/// Names of files are short: the format has room for 100 bytes.
const NAME_BYTES: usize = 100;
/// The owner may read and write the unpacked files: figures of a system are for its operator.
const MODE: u64 = 0o600;
const REGULAR_FILE: u8 = b'0';

/// Writes the files, each with its name and content, below the folder `folder`. `now` is in seconds since 1970.
///
/// # Errors
/// Those of `output`.
pub(super) fn write(output: impl Write, folder: &str, files: &[(String, Vec<u8>)], now: u64) -> io::Result<()> {
    let mut packed = GzEncoder::new(output, Compression::default());
    for (name, content) in files {
        packed.write_all(&header(&format!("{folder}/{name}"), content.len() as u64, now))?;
        packed.write_all(content)?;
        packed.write_all(&[0; BLOCK][..content.len().next_multiple_of(BLOCK) - content.len()])?;
    }
    // Two empty blocks are the end.
    packed.write_all(&[0; 2 * BLOCK])?;
    packed.finish()?.flush()
}

fn header(name: &str, bytes: u64, now: u64) -> [u8; BLOCK] {
    let mut header = [0; BLOCK];
    let mut at = 0;
    let mut field = |length: usize, text: &[u8]| {
        let text = &text[..text.len().min(length)];
        header[at..at + text.len()].copy_from_slice(text);
        at += length;
    };
    let octal = |value: u64, digits: usize| format!("{value:0digits$o}").into_bytes();
    field(NAME_BYTES, name.as_bytes());
    field(8, &octal(MODE, 7));
    field(8, &octal(0, 7));
    field(8, &octal(0, 7));
    field(12, &octal(bytes, 11));
    field(12, &octal(now, 11));
    // While the sum is computed, its field has blanks.
    field(8, b"        ");
    field(1, &[REGULAR_FILE]);
    field(NAME_BYTES, b"");
    field(8, b"ustar\x0000");
    let sum: u64 = header.iter().map(|byte| u64::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    header
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn tar_unpacks_the_files() {
        let folder = tempfile::tempdir().unwrap();
        let files = [
            ("empty.txt".to_owned(), Vec::new()),
            ("block.txt".to_owned(), vec![b'x'; BLOCK]),
            ("odd.json".to_owned(), b"{}\n".to_vec()),
        ];
        let path = folder.path().join("a.tar.gz");
        write(std::fs::File::create(&path).unwrap(), "report", &files, 1_760_000_000).unwrap();
        let tar = Command::new("tar").arg("-xzf").arg(&path).arg("-C").arg(folder.path()).output().unwrap();
        assert!(tar.status.success() && tar.stderr.is_empty(), "{tar:?}");
        for (name, content) in files {
            assert_eq!(std::fs::read(folder.path().join("report").join(&name)).unwrap(), content, "{name}");
        }
    }
}
