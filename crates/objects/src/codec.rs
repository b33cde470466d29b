//! How an object is encoded. The same lines, added in the same pieces, give the same bytes each time: no clock, no
//! threads. (Bytes of gzip depend on the pieces.)

use std::fmt;
use std::io::{self, Write};
use std::str::FromStr;

use flate2::Compression;
use flate2::write::GzEncoder;
use zstd::stream::write::Encoder as ZstdEncoder;

/// The default of gzip's own tool.
const GZIP_LEVEL: u32 = 6;
/// The default of zstd's own tool.
pub(super) const ZSTD_LEVEL: i32 = 3;

/// The encoding of an object: lines with a codec, or a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Codec {
    /// Plain lines.
    #[default]
    None,
    /// Lines, compressed by RFC 1952.
    Gzip,
    /// Lines, compressed by RFC 8878.
    Zstd,
    /// A table of Apache Parquet.
    Parquet,
}

/// A codec of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineCodec {
    None,
    Gzip,
    Zstd,
}

/// A text that isn't the name of a codec.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected \"none\", \"gzip\", \"zstd\" or \"parquet\"")]
pub struct UnknownCodec;

impl Codec {
    /// Each of them.
    pub const ALL: [Self; 4] = [Self::None, Self::Gzip, Self::Zstd, Self::Parquet];

    const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Parquet => "parquet",
        }
    }

    /// The suffix of objects' names.
    #[must_use]
    pub const fn ending(self) -> &'static str {
        match self {
            Self::None => ".ndjson",
            Self::Gzip => ".ndjson.gz",
            Self::Zstd => ".ndjson.zst",
            Self::Parquet => ".parquet",
        }
    }

    /// The content type in HTTP, without a content coding: a client gets the stored bytes.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::None => "application/x-ndjson",
            Self::Gzip => "application/gzip",
            Self::Zstd => "application/zstd",
            Self::Parquet => "application/vnd.apache.parquet",
        }
    }

    /// The codec of its lines, if it has lines.
    pub(super) const fn of_lines(self) -> Option<LineCodec> {
        match self {
            Self::None => Some(LineCodec::None),
            Self::Gzip => Some(LineCodec::Gzip),
            Self::Zstd => Some(LineCodec::Zstd),
            Self::Parquet => None,
        }
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

event::serde_as_text!(Codec);

impl FromStr for Codec {
    type Err = UnknownCodec;

    fn from_str(text: &str) -> Result<Self, UnknownCodec> {
        Self::ALL.into_iter().find(|codec| codec.as_str() == text).ok_or(UnknownCodec)
    }
}

/// Encodes bytes piece by piece, and writes the result to the output.
pub(super) enum Encoder<W: Write> {
    None(W),
    Gzip(Box<GzEncoder<W>>),
    Zstd(Box<ZstdEncoder<'static, W>>),
}

impl<W: Write> Encoder<W> {
    pub(super) fn new(codec: LineCodec, output: W) -> io::Result<Self> {
        Ok(match codec {
            LineCodec::None => Self::None(output),
            LineCodec::Gzip => Self::Gzip(Box::new(GzEncoder::new(output, Compression::new(GZIP_LEVEL)))),
            LineCodec::Zstd => {
                let mut encoder = ZstdEncoder::new(output, ZSTD_LEVEL)?;
                encoder.include_checksum(true)?;
                Self::Zstd(Box::new(encoder))
            }
        })
    }

    pub(super) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::None(output) => output.write_all(bytes),
            Self::Gzip(encoder) => encoder.write_all(bytes),
            Self::Zstd(encoder) => encoder.write_all(bytes),
        }
    }

    /// Writes the rest, and returns the output.
    pub(super) fn finish(self) -> io::Result<W> {
        match self {
            Self::None(output) => Ok(output),
            Self::Gzip(encoder) => encoder.finish(),
            Self::Zstd(encoder) => encoder.finish(),
        }
    }
}
