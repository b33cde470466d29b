//! Decompresses gzip and zstd, and returns every byte before the first error.
//!
//! In a call that fails, the readers of the libraries drop the bytes that they have decoded, which can be thousands of lines.

use std::io::{self, BufRead, Read};

use flate2::{Decompress, FlushDecompress, Status};
use zstd::zstd_safe::{self, DCtx, InBuffer, OutBuffer};

/// The largest window that RFC 1952 has.
const GZIP_WINDOW_BITS: u8 = 15;
/// A frame's first call gets so many bytes; each call returns how many the next one needs.
const ZSTD_FIRST_BYTES: usize = 5;

/// The decoded bytes of a compressed stream.
pub(super) struct Unpack<R> {
    input: R,
    codec: Codec,
    /// After a member of gzip or a frame of zstd: another may follow, zeros, or nothing.
    is_between: bool,
    /// Why nothing more can be decoded: returned after the bytes before it.
    failed: Option<io::Error>,
}

enum Codec {
    Gzip(Decompress),
    Zstd { context: DCtx<'static>, wanted: usize, holds_output: bool },
}

/// The result of one call.
struct Step {
    read: usize,
    written: usize,
    /// Whether a member or frame has ended, or the error that ended it.
    ended: io::Result<bool>,
}

impl<R: BufRead> Unpack<R> {
    pub(super) fn gzip(input: R) -> Self {
        Self::new(input, Codec::Gzip(new_gzip()))
    }

    /// # Errors
    /// There is no memory.
    pub(super) fn zstd(input: R) -> io::Result<Self> {
        let context = DCtx::try_create().ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self::new(input, Codec::Zstd { context, wanted: ZSTD_FIRST_BYTES, holds_output: false }))
    }

    const fn new(input: R, codec: Codec) -> Self {
        Self { input, codec, is_between: false, failed: None }
    }

    /// Decodes one piece; none at the end of the stream.
    fn step(&mut self, output: &mut [u8]) -> io::Result<Option<usize>> {
        let name = self.codec.name();
        let available = self.input.fill_buf()?;
        if self.is_between {
            // Tapes and some tools fill up the last block with zeros.
            let zeros = available.iter().take_while(|byte| **byte == 0).count();
            if zeros > 0 {
                self.input.consume(zeros);
                return Ok(Some(0));
            }
            if available.is_empty() {
                return Ok(None);
            }
            if !self.codec.may_begin_with(available) {
                return Err(invalid(format!(
                    "bytes that aren't {name} follow the end of its {name} data: remove them"
                )));
            }
            self.codec.begin();
        }
        if available.is_empty() && !self.codec.holds_output() {
            let message = format!("its {name} data ends too early: copy the complete file, then start again");
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, message));
        }
        let Step { read, written, ended } = self.codec.decode(available, output);
        self.input.consume(read);
        self.is_between = matches!(ended, Ok(true));
        self.failed = ended.err();
        Ok(Some(written))
    }
}

impl<R: BufRead> Read for Unpack<R> {
    fn read(&mut self, output: &mut [u8]) -> io::Result<usize> {
        if output.is_empty() {
            return Ok(0);
        }
        loop {
            if let Some(error) = self.failed.take() {
                return Err(error);
            }
            match self.step(output)? {
                None => return Ok(0),
                Some(0) => {}
                Some(written) => return Ok(written),
            }
        }
    }
}

impl Codec {
    const fn name(&self) -> &'static str {
        match self {
            Self::Gzip(_) => "gzip",
            Self::Zstd { .. } => "zstd",
        }
    }

    /// Whether another member or frame can begin so. A frame of zstd may be skippable or of an old format: its decoder decides.
    fn may_begin_with(&self, input: &[u8]) -> bool {
        match self {
            Self::Gzip(_) => input.first() == Some(&super::packing::GZIP[0]),
            Self::Zstd { .. } => true,
        }
    }

    fn begin(&mut self) {
        if let Self::Gzip(inflate) = self {
            *inflate = new_gzip();
        }
    }

    /// Whether decoded bytes wait for room in the output.
    const fn holds_output(&self) -> bool {
        matches!(self, Self::Zstd { holds_output: true, .. })
    }

    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Step {
        match self {
            Self::Gzip(inflate) => inflate_step(inflate, input, output),
            Self::Zstd { context, wanted, holds_output } => {
                let room = output.len();
                // One call decodes one block at most, so a damaged block takes no other with it.
                let given = if *holds_output { 0 } else { input.len().min(*wanted) };
                let (mut input, mut output) = (InBuffer::around(&input[..given]), OutBuffer::around(output));
                let hint = context.decompress_stream(&mut output, &mut input);
                let (read, written) = (input.pos(), output.pos());
                *holds_output = hint.is_ok_and(|hint| hint > 0) && written == room;
                *wanted = hint.ok().filter(|hint| *hint > 0).unwrap_or(ZSTD_FIRST_BYTES);
                let ended = hint.map(|hint| hint == 0).map_err(|code| {
                    invalid(format!(
                        "its zstd data is damaged: copy the file again ({})",
                        zstd_safe::get_error_name(code)
                    ))
                });
                Step { read, written, ended }
            }
        }
    }
}

fn new_gzip() -> Decompress {
    Decompress::new_gzip(GZIP_WINDOW_BITS)
}

fn inflate_step(inflate: &mut Decompress, input: &[u8], output: &mut [u8]) -> Step {
    let (read, written) = (inflate.total_in(), inflate.total_out());
    let status = inflate.decompress(input, output, FlushDecompress::None);
    let since = |before: u64, now: u64| usize::try_from(now - before).unwrap_or(usize::MAX);
    let (read, written) = (since(read, inflate.total_in()), since(written, inflate.total_out()));
    let ended = match status {
        Ok(Status::StreamEnd) => Ok(true),
        // A decoder that neither continues nor fails would be called forever.
        Ok(_) if read > 0 || written > 0 => Ok(false),
        Ok(_) | Err(_) => Err(invalid("its gzip data is damaged: copy the file again".to_owned())),
    };
    Step { read, written, ended }
}

fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufReader, Write};

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
        encoder.include_checksum(true).unwrap();
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    /// All that can be decoded, read in pieces of `room`, and the error after it.
    fn unpack(bytes: &[u8], room: usize) -> (Vec<u8>, Option<String>) {
        let input = BufReader::with_capacity(1000, bytes);
        let mut unpack = if bytes.starts_with(crate::loader::packing::GZIP) {
            Unpack::gzip(input)
        } else {
            Unpack::zstd(input).unwrap()
        };
        let (mut found, mut piece) = (Vec::new(), vec![0; room]);
        loop {
            match unpack.read(&mut piece) {
                Ok(0) => return (found, None),
                Ok(length) => found.extend_from_slice(&piece[..length]),
                Err(error) => return (found, Some(error.to_string())),
            }
        }
    }

    fn text(lines: u64) -> Vec<u8> {
        let number = |line: u64| line.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (0..lines).flat_map(|line| format!("{line} {:x}\n", number(line)).into_bytes()).collect()
    }

    #[test]
    fn members_frames_and_zeros_after_them_are_decoded() {
        let expected = text(20_000);
        let (one, other) = expected.split_at(100_000);
        for pack in [gzip, zstd] {
            let skippable = [0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
            let between: &[u8] = if pack(b"")[0] == 0x1f { &[] } else { &skippable };
            let zeros = [0; 5000];
            for packed in [pack(&expected), [&pack(one), between, &pack(b""), &pack(other), &zeros].concat()] {
                for room in [1, 7, 32, 4096, 1 << 20] {
                    let (found, error) = unpack(&packed, room);
                    assert!(found == expected && error.is_none(), "{room}: {error:?}");
                }
            }
        }
    }

    #[test]
    fn bytes_before_damage_are_returned_first() {
        let expected = text(40_000);
        for pack in [gzip, zstd] {
            let whole = pack(&expected);
            let junk = [&whole[..], b"junk"].concat();
            let cut = whole[..whole.len() / 2].to_vec();
            let mut flipped = whole.clone();
            flipped[whole.len() / 2..][..64].fill(0xff);
            for (name, packed, at_least) in [
                ("junk", junk, expected.len()),
                ("cut", cut, expected.len() / 4),
                ("flipped", flipped, expected.len() / 4),
            ] {
                let all: Vec<_> = [64, 4096, 1 << 20].map(|room| unpack(&packed, room)).into();
                let (found, error) = &all[0];
                assert!(error.is_some() && found.len() >= at_least, "{name}: {} {error:?}", found.len());
                assert!(name == "flipped" || expected.starts_with(found), "{name}");
                let same = |other: &(Vec<u8>, Option<String>)| other.0 == *found && other.1.is_some();
                assert!(all.iter().all(same), "{name}: the size of the reader's buffer matters");
            }
        }
    }
}
