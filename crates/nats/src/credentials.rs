//! Authentication by a key: a `.creds` file with a user's JWT and the seed of its key, or a file with the seed alone.
//!
//! A seed is 32 bytes after two that identify its kind, with a checksum after them, in base 32. The server's challenge
//! is signed with it (Ed25519), so the seed never leaves the machine.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{Ed25519KeyPair, KeyPair};

const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
/// The first byte of a seed, and the first byte of a user's public key.
const SEED: u8 = 18 << 3;
const USER: u8 = 20 << 3;
/// The beginnings of the two parts of a file.
const JWT: &str = "-----BEGIN NATS USER JWT-----";
const KEY: &str = "-----BEGIN USER NKEY SEED-----";

/// A user's key, and its proof.
pub(crate) struct Credentials {
    /// The JWT, if an operator has issued one.
    pub(crate) jwt: Option<String>,
    /// The public key, which a server's own configuration may contain.
    pub(crate) public_key: String,
    pair: Ed25519KeyPair,
}

impl Credentials {
    /// Reads a file.
    ///
    /// # Errors
    /// The error, without any content of the file.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Self::parse(&text).map_err(|why| format!("{}: {why}", path.display()))
    }

    fn parse(text: &str) -> Result<Self, &'static str> {
        let seed = match text.split_once(KEY) {
            Some((_, rest)) => first_line(rest),
            None => first_line(text),
        };
        let wrong = "it has no seed of a user: use the file from `nsc generate creds`, or one with a seed (SU…)";
        let seed = seed.and_then(decoded_seed).ok_or(wrong)?;
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).map_err(|_| wrong)?;
        let jwt = text.split_once(JWT).and_then(|(_, rest)| first_line(rest)).map(str::to_owned);
        let public_key = encoded(USER, pair.public_key().as_ref());
        Ok(Self { jwt, public_key, pair })
    }

    /// Signs the server's challenge.
    pub(crate) fn sign(&self, nonce: &str) -> String {
        URL_SAFE_NO_PAD.encode(self.pair.sign(nonce.as_bytes()))
    }
}

fn first_line(text: &str) -> Option<&str> {
    text.lines().map(str::trim).find(|line| !line.is_empty())
}

fn decoded_seed(text: &str) -> Option<[u8; 32]> {
    let (mut bits, mut count, mut bytes) = (0_u32, 0_u32, Vec::new());
    for symbol in text.bytes() {
        let digit = ALPHABET.iter().position(|known| *known == symbol)?;
        bits = (bits << 5 | u32::try_from(digit).ok()?) & 0xfff;
        count += 5;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 0xff).ok()?);
        }
    }
    let (body, sum) = bytes.split_at_checked(34)?;
    let is_of_user = body[0] & 0xf8 == SEED && body[0] << 5 | body[1] >> 3 == USER;
    (is_of_user && sum == checksum(body).to_le_bytes()).then(|| body[2..].try_into().ok())?
}

/// A key in base 32, with its kind before it and a checksum after it.
fn encoded(kind: u8, key: &[u8]) -> String {
    let mut bytes = vec![kind];
    bytes.extend_from_slice(key);
    bytes.extend_from_slice(&checksum(&bytes).to_le_bytes());
    let (mut bits, mut count, mut text) = (0_u32, 0_u32, String::new());
    for byte in bytes {
        bits = (bits << 8 | u32::from(byte)) & 0xfff;
        count += 8;
        while count >= 5 {
            count -= 5;
            text.push(char::from(ALPHABET[(bits >> count & 31) as usize]));
        }
    }
    if count > 0 {
        text.push(char::from(ALPHABET[(bits << (5 - count) & 31) as usize]));
    }
    text
}

/// CRC-16 with the polynomial 0x1021, from 0 (XMODEM).
fn checksum(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |sum, byte| {
        (0..8).fold(sum ^ u16::from(*byte) << 8, |sum, _| if sum & 0x8000 == 0 { sum << 1 } else { sum << 1 ^ 0x1021 })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pair of keys in NATS' own documentation.
    const SEED_TEXT: &str = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY";
    const PUBLIC: &str = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4";

    #[test]
    fn seed_is_read_with_and_without_a_jwt() {
        let alone = Credentials::parse(&format!("\n {SEED_TEXT}\n")).unwrap_or_else(|why| panic!("{why}"));
        assert_eq!((alone.jwt.as_deref(), alone.public_key.as_str()), (None, PUBLIC));
        let file = format!(
            "{JWT}\neyJ0.e30.c2ln\n------END NATS USER JWT------\n\n*** IMPORTANT\n\n{KEY}\n{SEED_TEXT}\n------END"
        );
        let both = Credentials::parse(&file).unwrap_or_else(|why| panic!("{why}"));
        assert_eq!((both.jwt.as_deref(), both.public_key.as_str()), (Some("eyJ0.e30.c2ln"), PUBLIC));
        assert_eq!(both.sign("nonce").len(), 86);
    }

    #[test]
    fn other_text_than_a_users_seed_is_rejected() {
        let changed = SEED_TEXT.replace("HUDX", "HUDY");
        for wrong in ["", PUBLIC, &SEED_TEXT[..50], &changed, "SUACSSL1", &SEED_TEXT.replacen("SU", "SA", 1)] {
            assert!(Credentials::parse(wrong).is_err(), "{wrong}");
        }
    }
}
