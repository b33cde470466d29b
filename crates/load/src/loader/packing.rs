//! Recognises compressed files and archives by their first bytes.

use anyhow::bail;

/// How a stream is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packing {
    Plain,
    Gzip,
    Zstd,
}

pub(super) const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// The second to fourth byte of a skippable frame, with which pzstd begins each file; the first is 0x50 to 0x5f.
const SKIPPABLE: &[u8] = &[0x2a, 0x4d, 0x18];
/// A skippable frame's magic number and length.
const SKIPPABLE_HEADER_BYTES: usize = 8;
/// A tar header has these bytes at this place.
const TAR: (usize, &[u8]) = (257, b"ustar");

/// Formats that the loader doesn't read: first bytes, name, and a command that writes the content to its standard output.
const OTHERS: &[(&[u8], &str, &str)] = &[
    (b"BZh", "bzip2", "bzip2 -dc FILE"),
    (b"\xfd7zXZ\0", "xz", "xz -dc FILE"),
    (b"\x5d\0\0", "lzma", "xz -dc FILE"),
    (b"\x04\x22\x4d\x18", "lz4", "lz4 -dc FILE"),
    (b"\x02\x21\x4c\x18", "lz4 (legacy)", "lz4 -dc FILE"),
    (b"\xff\x06\0\0sNaPpY", "snappy (framed)", "snzip -dc FILE"),
    (b"LZIP", "lzip", "lzip -dc FILE"),
    (b"\x89LZO\0\r\n\x1a\n", "lzop", "lzop -dc FILE"),
    (b"\x1f\x9d", "compress (.Z)", "gzip -dc FILE"),
    (b"\x1f\xa0", "compress (LZH)", "gzip -dc FILE"),
    (b"\x1f\x1e", "pack (.z)", "gzip -dc FILE"),
    (b"PK\x03\x04", "zip", "unzip -p FILE"),
    (b"PK\x05\x06", "zip", "unzip -p FILE"),
    (b"PK\x07\x08", "zip", "unzip -p FILE"),
    (b"7z\xbc\xaf\x27\x1c", "7z", "7z x -so FILE"),
    (b"Rar!\x1a\x07", "rar", "unrar p -inul FILE"),
];

impl Packing {
    /// Recognises the packing by the first bytes of a stream.
    ///
    /// # Errors
    /// It is a format that the loader doesn't read.
    pub(super) fn of(head: &[u8]) -> anyhow::Result<Self> {
        if head.starts_with(GZIP) {
            return Ok(Self::Gzip);
        }
        let frame = after_skippable_frames(head);
        if frame.starts_with(ZSTD) || frame.len() < head.len() && frame.is_empty() {
            return Ok(Self::Zstd);
        }
        refuse_other(frame)?;
        Ok(if frame.len() < head.len() { Self::Zstd } else { Self::Plain })
    }
}

/// Checks that decoded bytes are not packed once more.
///
/// # Errors
/// They are, as in a compressed archive.
pub(super) fn check_content(head: &[u8]) -> anyhow::Result<()> {
    match Packing::of(head)? {
        Packing::Plain => Ok(()),
        Packing::Gzip => bail!(
            "its decompressed content is gzip again: decompress it first, as `gzip -dc FILE | forebay load -` does"
        ),
        Packing::Zstd => bail!(
            "its decompressed content is zstd again: decompress it first, as `zstd -dc FILE | forebay load -` does"
        ),
    }
}

fn refuse_other(head: &[u8]) -> anyhow::Result<()> {
    let named = OTHERS.iter().find(|(magic, ..)| head.starts_with(magic));
    if let Some((_, name, command)) = named {
        bail!("it is {name}, which load doesn't read. Decompress it: `{command} | forebay load - --id NAME`");
    }
    let (at, magic) = TAR;
    // Text has no NUL bytes; the name at the beginning of a tar header is filled up with them.
    if head.get(at..).is_some_and(|rest| rest.starts_with(magic)) && head[..at].contains(&0) {
        bail!("it is a tar archive, which load doesn't read. Extract it: `tar -xOf FILE | forebay load - --id NAME`");
    }
    Ok(())
}

/// The bytes after the skippable frames at the beginning; nothing if they reach beyond `head`.
fn after_skippable_frames(mut head: &[u8]) -> &[u8] {
    while let [0x50..=0x5f, rest @ ..] = head
        && rest.starts_with(SKIPPABLE)
    {
        let length = head.get(4..SKIPPABLE_HEADER_BYTES).and_then(|length| <[u8; 4]>::try_from(length).ok());
        let length = length.and_then(|length| usize::try_from(u32::from_le_bytes(length)).ok());
        let end = length.and_then(|length| length.checked_add(SKIPPABLE_HEADER_BYTES));
        head = end.and_then(|end| head.get(end..)).unwrap_or_default();
    }
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skippable(content: &[u8]) -> Vec<u8> {
        let length = u32::try_from(content.len()).unwrap();
        [b"\x50\x2a\x4d\x18", &length.to_le_bytes()[..], content].concat()
    }

    #[test]
    fn packing_is_recognised_by_first_bytes() {
        let frame = |rest: &[u8]| [&skippable(b"size")[..], rest].concat();
        for (head, expected) in [
            (b"{\"a\":1}\n".to_vec(), Packing::Plain),
            (Vec::new(), Packing::Plain),
            (b"PK".to_vec(), Packing::Plain),
            (b"\x1f\x8b\x08".to_vec(), Packing::Gzip),
            (ZSTD.to_vec(), Packing::Zstd),
            (frame(ZSTD), Packing::Zstd),
            (frame(&frame(ZSTD)), Packing::Zstd),
            (skippable(b"size")[..10].to_vec(), Packing::Zstd),
            ([&b"{\"text\":\""[..], &[b'x'; 248], b"ustar\"}\n"].concat(), Packing::Plain),
        ] {
            assert_eq!(Packing::of(&head).unwrap(), expected, "{head:?}");
        }
    }

    #[test]
    fn other_formats_are_named() {
        for (magic, name, _) in OTHERS {
            let error = Packing::of(&[magic, &b"rest"[..]].concat()).unwrap_err().to_string();
            assert!(error.starts_with(&format!("it is {name},")), "{error}");
        }
        let tar = [&b"a.log"[..], &[0; 252], b"ustar\0rest"].concat();
        let lz4 = [&skippable(b"x")[..], b"\x04\x22\x4d\x18"].concat();
        for (head, name) in [(&tar, "a tar archive"), (&lz4, "lz4")] {
            for error in [Packing::of(head).map(|_| ()), check_content(head)] {
                assert!(error.unwrap_err().to_string().contains(name), "{name}");
            }
        }
        assert!(check_content(GZIP).unwrap_err().to_string().contains("gzip again"));
        assert!(check_content(ZSTD).is_err() && check_content(b"{}\n").is_ok());
    }
}
