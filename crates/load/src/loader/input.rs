//! Opens the inputs of a load: a file or the standard input, plain or compressed.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::packing::{self, Packing};
use super::unpack::Unpack;
use super::unreadable;
use anyhow::anyhow;
use text::hex;

/// An input of a load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A file.
    File(PathBuf),
    /// The standard input, `-` on the command line.
    Stdin,
}

impl Input {
    /// The one that is named so on the command line.
    pub(super) fn of(path: PathBuf) -> Self {
        if path.as_path() == Path::new("-") { Self::Stdin } else { Self::File(path) }
    }

    /// The name as on the command line.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Stdin => "-".to_owned(),
        }
    }
}

/// Whether a stream is lines or an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Lines,
    Array,
    /// It begins with a value over several lines, as pretty printers write it.
    OverLines,
}

/// Identifies a file regardless of its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct FileId {
    pub(super) device: u64,
    pub(super) inode: u64,
}

impl FileId {
    pub(super) fn of(metadata: &std::fs::Metadata) -> Self {
        Self { device: metadata.dev(), inode: metadata.ino() }
    }
}

/// A stream at its beginning.
pub(super) struct Opened {
    pub(super) stream: Stream,
    pub(super) form: Form,
    pub(super) file: FileId,
    /// Bytes that the file has; 0 for the standard input.
    pub(super) size: u64,
}

impl Opened {
    /// The first bytes of a file that is read as it is, as hexadecimal digits; nothing of others.
    pub(super) fn head(&self) -> io::Result<String> {
        let Some(file) = self.stream.file() else { return Ok(String::new()) };
        let mut head = [0; KNOWN_HEAD_BYTES];
        let mut length = 0;
        while length < head.len() {
            match file.read_at(&mut head[length..], length as u64) {
                Ok(0) => break,
                Ok(read) => length += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A pipe has no places.
                Err(error) if error.kind() == io::ErrorKind::NotSeekable => return Ok(String::new()),
                Err(error) => return Err(error),
            }
        }
        Ok(hex::encode(&head[..length]))
    }

    /// Whether it is this file, begins as that did, and has lost bytes before `offset`.
    pub(super) fn is_shorter_than(&self, file: FileId, file_head: &str, offset: u64) -> io::Result<bool> {
        let head = self.head()?;
        let begins_alike = !head.is_empty() && (head.starts_with(file_head) || file_head.starts_with(&head));
        Ok(begins_alike && !file_head.is_empty() && self.file == file && self.size < offset)
    }
}

/// Decoded bytes.
pub(super) enum Stream {
    /// A file that is read as it is: it can be gone on with anywhere.
    Plain(Counted<File>),
    /// A stream that can only be read from its beginning.
    Decoded(Box<dyn Read + Send>),
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(file) => file.read(buffer),
            Self::Decoded(stream) => stream.read(buffer),
        }
    }
}

impl Stream {
    /// A file from its current position on.
    pub(super) const fn plain(file: File, count: Arc<AtomicU64>) -> Self {
        Self::Plain(Counted { inner: file, count })
    }

    /// The file that is read as it is.
    pub(super) const fn file(&self) -> Option<&File> {
        match self {
            Self::Plain(file) => Some(&file.inner),
            Self::Decoded(_) => None,
        }
    }

    /// Appends at most `bytes`: fewer only at the end.
    pub(super) fn append(&mut self, into: &mut Vec<u8>, bytes: u64) -> io::Result<()> {
        match self {
            // Straight from the file: it alone reads into memory that wasn't cleared before.
            Self::Plain(file) => {
                let length = file.inner.by_ref().take(bytes).read_to_end(into)?;
                file.count.fetch_add(length as u64, Ordering::Relaxed);
            }
            Self::Decoded(stream) => {
                stream.take(bytes).read_to_end(into)?;
            }
        }
        Ok(())
    }

    /// Moves from the beginning to `offset`.
    pub(super) fn skip_to(&mut self, offset: u64) -> io::Result<()> {
        match self {
            Self::Plain(file) => file.inner.seek(SeekFrom::Start(offset)).map(|_| ()),
            Self::Decoded(stream) => {
                let skipped = io::copy(&mut stream.take(offset), &mut io::sink())?;
                if skipped < offset { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
            }
        }
    }
}

/// Counts the bytes read, for the progress: of a compressed file the decoded size isn't known.
pub(super) struct Counted<R> {
    inner: R,
    count: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(buffer)?;
        self.count.fetch_add(length as u64, Ordering::Relaxed);
        Ok(length)
    }
}

/// So many first bytes of a file are remembered.
const KNOWN_HEAD_BYTES: usize = 64;
/// So many bytes decide whether an array is lines of arrays.
const HEAD_BYTES: usize = 64 * 1024;

/// Opens an input; `count` counts the bytes of it that are read.
pub(super) fn open(input: &Input, count: &Arc<AtomicU64>) -> anyhow::Result<Opened> {
    match input {
        Input::File(path) => open_file(path, File::open(path).map_err(|error| failed(path, error))?, count),
        Input::Stdin => {
            let (stream, form) = decode(Counted { inner: io::stdin(), count: count.clone() })?;
            Ok(Opened { stream: Stream::Decoded(stream), form, file: FileId::default(), size: 0 })
        }
    }
}

pub(super) fn open_file(path: &Path, mut file: File, count: &Arc<AtomicU64>) -> anyhow::Result<Opened> {
    let metadata = file.metadata().map_err(|error| failed(path, error))?;
    let (id, size) = (FileId::of(&metadata), metadata.len());
    let counted = |inner| Counted { inner, count: count.clone() };
    if !metadata.is_file() {
        // A pipe with a name: nothing that was read can be read again.
        let (stream, form) = decode(counted(file))?;
        return Ok(Opened { stream: Stream::Decoded(stream), form, file: id, size: 0 });
    }
    let head = Head::read(&mut file)?.bytes;
    file.seek(SeekFrom::Start(0)).map_err(unreadable)?;
    if Packing::of(&head)? == Packing::Plain {
        return Ok(Opened { stream: Stream::plain(file, count.clone()), form: form(&head), file: id, size });
    }
    let (stream, form) = decode(counted(file))?;
    Ok(Opened { stream: Stream::Decoded(stream), form, file: id, size })
}

fn failed(path: &Path, error: io::Error) -> anyhow::Error {
    anyhow!("can't open {}: {error}", path.display())
}

/// Decodes compressed input, and recognises the form by the first decoded bytes.
fn decode(mut raw: impl Read + Send + 'static) -> anyhow::Result<(Box<dyn Read + Send>, Form)> {
    let head = Head::read(&mut raw)?;
    let packing = Packing::of(&head.bytes)?;
    if packing == Packing::Plain {
        let form = form(&head.bytes);
        return Ok((Box::new(head.before(raw)), form));
    }
    let whole = BufReader::with_capacity(HEAD_BYTES, head.before(raw));
    let mut decoded: Box<dyn Read + Send> = if packing == Packing::Gzip {
        Box::new(Unpack::gzip(whole))
    } else {
        Box::new(Unpack::zstd(whole).map_err(unreadable)?)
    };
    let head = Head::read(&mut decoded)?;
    packing::check_content(&head.bytes)?;
    let form = form(&head.bytes);
    Ok((Box::new(head.before(decoded)), form))
}

/// The first bytes of a stream, and why the stream ends after them.
struct Head {
    bytes: Vec<u8>,
    failed: Option<io::Error>,
}

impl Head {
    /// # Errors
    /// Nothing can be read.
    fn read(stream: &mut impl Read) -> anyhow::Result<Self> {
        let mut bytes = Vec::with_capacity(HEAD_BYTES);
        let failed = stream.by_ref().take(HEAD_BYTES as u64).read_to_end(&mut bytes).err();
        match failed {
            Some(error) if bytes.is_empty() => Err(unreadable(error)),
            failed => Ok(Self { bytes, failed }),
        }
    }

    /// The stream from its beginning: the head, then its error if there was one, then the rest.
    fn before<R: Read>(self, rest: R) -> impl Read {
        Cursor::new(self.bytes).chain(Failing(self.failed)).chain(rest)
    }
}

/// Fails once with an error, if there is one, and is empty otherwise.
struct Failing(Option<io::Error>);

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

/// A file that begins with `[` is an array, unless its first line is a complete value and others follow.
fn form(head: &[u8]) -> Form {
    let text = head.strip_prefix(json::BYTE_ORDER_MARK).unwrap_or(head).trim_ascii_start();
    if text.first() != Some(&b'[') {
        return if json::batch::begins_over_lines(text) { Form::OverLines } else { Form::Lines };
    }
    match memchr::memchr(b'\n', text) {
        Some(end) if json::check(&text[..end]).is_ok() && !text[end..].trim_ascii().is_empty() => Form::Lines,
        _ => Form::Array,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn read(bytes: Vec<u8>) -> (String, Form) {
        let (mut stream, form) = decode(Cursor::new(bytes)).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        (text, form)
    }

    fn gzip(text: &str) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn first_bytes_determine_the_compression() {
        let zstd = |text: &str| zstd::encode_all(text.as_bytes(), 1).unwrap();
        for bytes in [b"{}\n[]\n".to_vec(), gzip("{}\n[]\n"), [gzip("{}\n"), gzip("[]\n")].concat(), zstd("{}\n[]\n")] {
            assert_eq!(read(bytes), ("{}\n[]\n".to_owned(), Form::Lines));
        }
        assert_eq!(read([zstd("[1"), zstd("]")].concat()), ("[1]".to_owned(), Form::Array));
        assert_eq!(read(Vec::new()), (String::new(), Form::Lines));
        assert_eq!(read(vec![0x1f]).1, Form::Lines);
        let pzstd = [&[0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 1, 2, 3, 4], &zstd("1\n")[..]].concat();
        assert_eq!(read(pzstd), ("1\n".to_owned(), Form::Lines));
    }

    #[test]
    fn damaged_stream_gives_its_bytes_then_its_error() {
        let mut cut = gzip(&"x\n".repeat(100));
        cut.truncate(cut.len() - 1);
        let (mut stream, form) = decode(Cursor::new(cut)).unwrap();
        let mut text = String::new();
        let error = stream.read_to_string(&mut text).unwrap_err();
        assert_eq!((text, form), ("x\n".repeat(100), Form::Lines));
        assert!(error.to_string().contains("ends too early"), "{error}");
        assert!(decode(Cursor::new(&b"\x1f\x8bjunk"[..])).is_err(), "nothing can be decoded");
    }

    #[test]
    fn lines_of_arrays_are_lines() {
        for (head, expected) in [
            ("[1]\n[2]\n", Form::Lines),
            ("[1]\n", Form::Array),
            ("[1]", Form::Array),
            (" \n[\n1\n]", Form::Array),
            ("[1,\n2]\n", Form::Array),
            ("{}\n", Form::Lines),
            ("no", Form::Lines),
            ("\u{feff}[1,\n2]\n", Form::Array),
            ("\u{feff}{}\n[1]\n", Form::Lines),
            ("{\n  \"a\": [\n    1\n  ]\n}\n", Form::OverLines),
            ("{\"a\":\n{}\n{}\n", Form::Lines),
        ] {
            assert_eq!(form(head.as_bytes()), expected, "{head:?}");
        }
    }
}
