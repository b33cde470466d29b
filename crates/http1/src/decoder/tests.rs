//! Both codings, cut anywhere, and what is none.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use zstd_safe::{CCtx, CParameter};

use super::*;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    let mut context = CCtx::create();
    context.set_parameter(CParameter::ContentSizeFlag(false)).unwrap();
    context.set_parameter(CParameter::ChecksumFlag(true)).unwrap();
    let mut encoded = Vec::with_capacity(zstd_safe::compress_bound(bytes.len()));
    context.compress2(&mut encoded, bytes).unwrap();
    encoded
}

/// A frame that decoders skip.
fn skippable(bytes: &[u8]) -> Vec<u8> {
    [&0x184D_2A50_u32.to_le_bytes(), &u32::try_from(bytes.len()).unwrap().to_le_bytes(), bytes].concat()
}

/// Decodes `pieces` with so many bytes of output at a time.
fn decode_pieces(coding: Coding, pieces: &[&[u8]], room: usize) -> Result<Vec<u8>, Broken> {
    let mut decoder = Decoder::new(coding)?;
    let mut output = vec![0; room];
    let mut decoded = Vec::new();
    for piece in pieces {
        let mut at = 0;
        while at < piece.len() {
            let DecodeProgress { read, written } = decoder.step(&piece[at..], &mut output)?;
            at += read;
            decoded.extend_from_slice(&output[..written]);
        }
    }
    if decoder.is_complete() { Ok(decoded) } else { Err(Broken("too early".into())) }
}

fn decode(coding: Coding, bytes: &[u8]) -> Result<Vec<u8>, Broken> {
    decode_pieces(coding, &[bytes], 64)
}

type Encode = fn(&[u8]) -> Vec<u8>;
const ENCODERS: [(Coding, Encode); 2] = [(Coding::Gzip, gzip), (Coding::Zstd, zstd)];

proptest! {
    #[test]
    fn decoder_restores_bytes_in_any_split(
        parts in prop::collection::vec(prop::collection::vec(0_u8..4, 0..300), 1..4),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..5),
        room in 1_usize..200,
    ) {
        for (coding, encode) in ENCODERS {
            let encoded: Vec<u8> = parts.iter().flat_map(|part| encode(part)).collect();
            let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(encoded.len())).collect();
            cuts.sort_unstable();
            cuts.push(encoded.len());
            let pieces: Vec<_> = cuts.iter().scan(0, |from, to| Some(&encoded[std::mem::replace(from, *to)..*to])).collect();
            prop_assert_eq!(decode_pieces(coding, &pieces, room), Ok(parts.concat()));
        }
    }

    #[test]
    fn no_bytes_panic(bytes: Vec<u8>, start in 0_usize..12) {
        for (coding, encode) in ENCODERS {
            let _ = decode(coding, &bytes);
            let encoded = encode(&bytes);
            let _ = decode(coding, &[&encoded[..start], &bytes].concat());
        }
    }
}

#[test]
fn decoder_detects_truncation_and_changed_bytes() {
    let text = br#"{"path": "/", "path": "/", "status": 200}"#.repeat(20);
    for (coding, encode) in ENCODERS {
        let encoded = encode(&text);
        for end in 0..encoded.len() {
            assert!(decode(coding, &encoded[..end]).is_err(), "{coding:?} cut at {end}");
        }
        // After the header: some bytes of gzip's header are ignored (time, system).
        for at in 10..encoded.len() {
            let mut changed = encoded.clone();
            changed[at] ^= 0x10;
            assert_ne!(decode(coding, &changed), Ok(text.clone()), "{coding:?} changed at {at}");
        }
    }
}

#[test]
fn decoder_rejects_bytes_after_the_end() {
    for (coding, encode) in ENCODERS {
        let encoded = encode(b"text");
        for rest in [&b"\0"[..], b"\n", b"\x1f\x8b", b"{}", &[0; 512], &encoded[..5]] {
            assert!(decode(coding, &[&encoded, rest].concat()).is_err(), "{coding:?} {rest:?}");
        }
    }
    assert!(decode(Coding::Gzip, &zstd(b"text")).is_err());
    assert!(decode(Coding::Zstd, &gzip(b"text")).is_err());
}

#[test]
fn decoder_skips_skippable_frames() {
    let whole = [skippable(b"1234"), zstd(b"a"), skippable(b""), skippable(&[7; 1000]), zstd(b"b")].concat();
    assert_eq!(decode(Coding::Zstd, &whole), Ok(b"ab".to_vec()));
    assert_eq!(decode(Coding::Zstd, &skippable(b"1234")), Ok(Vec::new()));
    assert!(decode(Coding::Zstd, &skippable(b"1234")[..9]).is_err());
}

/// A frame with one block as it is, by hand: encoders choose no larger window than they need.
fn frame_with_window(descriptor: u8, bytes: &[u8]) -> Vec<u8> {
    let block = u32::try_from(bytes.len()).unwrap() << 3 | 1;
    [&[0x28, 0xB5, 0x2F, 0xFD, 0, descriptor], &block.to_le_bytes()[..3], bytes].concat()
}

#[test]
fn zstd_window_is_limited_to_8_mib() {
    let log = |log: u32| u8::try_from((log - 10) << 3).unwrap();
    assert_eq!(decode(Coding::Zstd, &frame_with_window(log(ZSTD_WINDOW_LOG_MAX), b"text")), Ok(b"text".to_vec()));
    // The low bits are eighths more.
    for descriptor in [log(ZSTD_WINDOW_LOG_MAX) + 1, log(ZSTD_WINDOW_LOG_MAX + 1), 0xff] {
        let Broken(why) = decode(Coding::Zstd, &frame_with_window(descriptor, b"text")).unwrap_err();
        assert!(why.contains("a window of at most 8 MiB"), "{why}");
    }
}
