//! The bytes of an object, encoded part by part: memory holds one part, regardless of the object's size.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use sha2::{Digest, Sha256};

use super::Manifest;
use super::parts::{NoParts, Parts};
use super::sealed::{BUFFER_BYTES, Sealed};
use super::writer::Writer;
use sink::Record;

/// Why an object couldn't be encoded.
pub enum EncodeError {
    /// Its events can't be read.
    Parts(NoParts),
    /// They can't be written.
    Output(io::Error),
    /// The caller no longer waits for it.
    Abandoned,
}

impl From<io::Error> for EncodeError {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// The text that replaces a record's payload in its line, if there is one.
pub type Replacing<'a> = &'a dyn Fn(&Record<'_>) -> Option<Vec<u8>>;

/// Writes the object of `manifest` to `output`, and returns its sizes and digests.
///
/// # Errors
/// [`EncodeError`]
pub fn write(
    manifest: &Manifest,
    parts: &mut dyn Parts,
    output: &mut dyn Write,
    abandoned: &AtomicBool,
    replacement: Replacing<'_>,
) -> Result<Sealed, EncodeError> {
    let (mut sealed, mut digested) = (Sealed::default(), Digested { output, sha256: Sha256::new(), bytes: 0 });
    encode(manifest, parts, &mut digested, (abandoned, replacement), |record, bytes| sealed.count(record, bytes))?;
    Ok(digested.seal(sealed))
}

/// Writes the object of `manifest` once more, when its sizes and digests are known.
pub(crate) fn write_again(
    manifest: &Manifest,
    parts: &mut dyn Parts,
    output: &mut dyn Write,
    abandoned: &AtomicBool,
    replacement: Replacing<'_>,
) -> Result<(), EncodeError> {
    encode(manifest, parts, output, (abandoned, replacement), |_, _| {})
}

fn encode(
    manifest: &Manifest,
    parts: &mut dyn Parts,
    output: &mut dyn Write,
    (abandoned, replacement): (&AtomicBool, Replacing<'_>),
    mut written: impl FnMut(&Record<'_>, usize),
) -> Result<(), EncodeError> {
    let mut writer = Writer::new(manifest, io::BufWriter::with_capacity(BUFFER_BYTES, output))?;
    while let Some(part) = parts.next().map_err(EncodeError::Parts)? {
        for record in part.records() {
            if abandoned.load(Ordering::Relaxed) {
                return Err(EncodeError::Abandoned);
            }
            let replaced = replacement(&record);
            let shown = Record { payload: replaced.as_deref().unwrap_or(record.payload), ..record };
            written(&record, writer.add(&shown)?);
        }
    }
    writer.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?;
    Ok(())
}

/// Computes the digest of the bytes that pass through.
struct Digested<'a> {
    output: &'a mut dyn Write,
    sha256: Sha256,
    bytes: u64,
}

impl Digested<'_> {
    fn seal(self, sealed: Sealed) -> Sealed {
        Sealed { bytes: self.bytes, sha256: self.sha256.finalize().into(), ..sealed }
    }
}

impl Write for Digested<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.output.write(bytes)?;
        self.sha256.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use event::{EventId, Lane, Origin};

    use sink::Batch;

    use super::*;
    use crate::codec::Encoder;
    use crate::{Codec, Line, ObjectFormat, Portion, Prefix, SideFolder, line};
    use sink::Write as Kind;

    const COUNT: u64 = 3_000;

    fn rules(line: Line, codec: Codec) -> ObjectFormat {
        let (prefix, age_max) = (Prefix::NONE, Duration::from_secs(1));
        let manifests = SideFolder::NONE;
        ObjectFormat { line, codec, bytes_max: 1 << 20, records_max: 1, age_max, prefix, apart: None, manifests }
    }

    fn manifest(line: Line, codec: Codec) -> Manifest {
        let lane = Lane { origin: Origin([0xab; 16]), shard: 3, sink: "archive".into() };
        Manifest::new(lane, 1..=COUNT, Portion::received("access", 0), &rules(line, codec), None, None)
    }

    fn record(sequence: u64, payload: &[u8]) -> Record<'_> {
        let (id, write) = (EventId(u128::from(sequence).to_be_bytes()), Kind::Insert);
        Record { sequence, id, type_name: "", source: "", received_at: 0, event_time: None, write, payload }
    }

    fn payload(number: u64) -> String {
        format!("{{\"n\":{number},\"hash\":{}}}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// The same events, with this many in each part.
    struct Parted(u64, u64);

    impl Parts for Parted {
        fn next(&mut self) -> Result<Option<Batch>, NoParts> {
            let Self(next, count) = *self;
            let mut batch = Batch::new(manifest(Line::Payload, Codec::None).lane, next);
            for number in (next..=COUNT).take(usize::try_from(count).unwrap()) {
                let block = bytes::Bytes::from(payload(number));
                let nothing = std::str::from_utf8(&block[..0]).unwrap();
                batch.push(&block, &Record { type_name: nothing, source: nothing, ..record(number, &block) });
            }
            self.0 += count;
            Ok(Some(batch).filter(|batch| !batch.is_empty()))
        }

        fn again(&self) -> Box<dyn Parts> {
            Box::new(Self(1, self.1))
        }
    }

    /// An object that an older version has begun must be the same again, and so must one that is read in other parts.
    #[test]
    fn object_bytes_do_not_depend_on_parts() {
        for (line, codec) in
            [Line::Payload, Line::Envelope].into_iter().flat_map(|line| Codec::ALL.map(|codec| (line, codec)))
        {
            let Some(coding) = codec.of_lines() else { continue };
            let manifest = manifest(line, codec);
            let mut by_lines = Encoder::new(coding, Vec::new()).unwrap();
            for number in 1..=COUNT {
                let mut output = Vec::new();
                line::write(&mut output, line, 3, &record(number, payload(number).as_bytes()));
                by_lines.write_all(&output).unwrap();
            }
            let by_lines = by_lines.finish().unwrap();
            for count in [1, 7, COUNT] {
                let (mut object, kept) = (Vec::new(), AtomicBool::new(false));
                let written = write(&manifest, &mut Parted(1, count), &mut object, &kept, &|_| None);
                let Ok(sealed) = written else { panic!("writes to memory don't fail") };
                assert_eq!((sealed.records, sealed.bytes), (COUNT, object.len() as u64));
                assert!(object == by_lines, "{codec} in parts of {count}");
            }
        }
    }
}
