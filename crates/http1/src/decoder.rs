//! Decodes gzip (RFC 1952), deflate (RFC 1950) and zstd (RFC 8878), a bounded piece of output at a time. Several members of gzip or frames of zstd may follow
//! each other.

use flate2::{Decompress, FlushDecompress, Status};
use limits::ZSTD_WINDOW_LOG_MAX;
use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer};

/// The largest window that RFC 1952 has.
const GZIP_WINDOW_BITS: u8 = 15;
/// The compression method in the first byte of the zlib format (RFC 1950 §2.2). Data without the header begins with a block of another type.
const ZLIB_METHOD: u8 = 8;

/// How a body is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// gzip (RFC 1952).
    Gzip,
    /// deflate: the zlib format (RFC 1950), or the data without its header (RFC 1951), which some senders mean.
    Deflate,
    /// zstd (RFC 8878).
    Zstd,
}

/// Why bytes can't be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Broken(pub(crate) String);

/// The progress of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DecodeProgress {
    /// Bytes of the input that were consumed.
    pub(crate) read: usize,
    /// Bytes of the output that were filled.
    pub(crate) written: usize,
}

/// Decodes a coding.
pub(crate) struct Decoder {
    kind: Kind,
    at: At,
}

enum Kind {
    Gzip(Decompress),
    /// `None` before the first byte, which says whether there is a header.
    Deflate(Option<Decompress>),
    Zstd(DCtx<'static>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// No byte has arrived: no encoded body is empty.
    Start,
    /// Within a member or frame.
    Within,
    /// After the end of one: another may follow, or nothing.
    End,
}

impl Decoder {
    pub(crate) fn new(coding: Coding) -> Result<Self, Broken> {
        let kind = match coding {
            Coding::Gzip => Kind::Gzip(Decompress::new_gzip(GZIP_WINDOW_BITS)),
            Coding::Deflate => Kind::Deflate(None),
            Coding::Zstd => {
                let mut context = DCtx::try_create()
                    .ok_or_else(|| Broken("the server has no memory for the decoder; retry later".into()))?;
                context.set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW_LOG_MAX)).map_err(of_zstd)?;
                Kind::Zstd(context)
            }
        };
        Ok(Self { kind, at: At::Start })
    }

    /// Decodes some or all of `input` into `output`, at most up to the end of a member or frame. If that fills the output, more may come out
    /// with the next input; there always is one, because no coding ends with bytes of content.
    ///
    /// # Errors
    /// The input is invalid; nothing after it can be decoded.
    pub(crate) fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<DecodeProgress, Broken> {
        let (step, at) = match &mut self.kind {
            Kind::Gzip(inflate) => {
                if self.at == At::End {
                    // Its `reset` makes a new one too, when it is gzip's.
                    *inflate = Decompress::new_gzip(GZIP_WINDOW_BITS);
                }
                step_inflate(inflate, input, output)?
            }
            Kind::Deflate(inflate) => {
                let Some(first) = input.first() else { return Ok(DecodeProgress { read: 0, written: 0 }) };
                if self.at == At::End {
                    return Err(Broken("bytes follow the end of the data".into()));
                }
                let has_header = first & 0x0f == ZLIB_METHOD;
                step_inflate(inflate.get_or_insert_with(|| Decompress::new(has_header)), input, output)?
            }
            Kind::Zstd(context) => step_zstd(context, input, output)?,
        };
        self.at = at;
        if step.read == 0 && step.written == 0 && !input.is_empty() {
            // Decoders make progress or fail. One that did neither would be called in an endless loop.
            return Err(Broken("the data is invalid".into()));
        }
        Ok(step)
    }

    /// Whether every member or frame is complete.
    pub(crate) fn is_complete(&self) -> bool {
        self.at == At::End
    }
}

fn step_inflate(inflate: &mut Decompress, input: &[u8], output: &mut [u8]) -> Result<(DecodeProgress, At), Broken> {
    let (read, written) = (inflate.total_in(), inflate.total_out());
    let status = inflate.decompress(input, output, FlushDecompress::None).map_err(|error| Broken(error.to_string()))?;
    let since = |before: u64, now: u64| usize::try_from(now - before).unwrap_or(usize::MAX);
    let step = DecodeProgress { read: since(read, inflate.total_in()), written: since(written, inflate.total_out()) };
    Ok((step, if status == Status::StreamEnd { At::End } else { At::Within }))
}

fn step_zstd(context: &mut DCtx<'_>, input: &[u8], output: &mut [u8]) -> Result<(DecodeProgress, At), Broken> {
    let mut input = InBuffer::around(input);
    let mut output = OutBuffer::around(output);
    let wanted = context.decompress_stream(&mut output, &mut input).map_err(of_zstd)?;
    let step = DecodeProgress { read: input.pos(), written: output.pos() };
    Ok((step, if wanted == 0 { At::End } else { At::Within }))
}

fn of_zstd(code: usize) -> Broken {
    let window = 1_usize << (ZSTD_WINDOW_LOG_MAX - 20);
    Broken(format!(
        "{}; compress with a window of at most {window} MiB (without --long or --ultra)",
        zstd_safe::get_error_name(code)
    ))
}

#[cfg(test)]
#[path = "decoder/tests.rs"]
mod tests;
