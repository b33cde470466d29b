//! The signatures of messages: HMAC-SHA256, the symmetric signature of Standard Webhooks.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The prefix of secrets.
const PREFIX: &str = "whsec_";
/// Bytes of a secret by the standard.
const BYTES_MIN: usize = 24;
/// See [`BYTES_MIN`].
const BYTES_MAX: usize = 64;
/// The version of the signature.
const VERSION: &str = "v1";

/// A key that a receiver has too. It is never displayed.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningSecret(Arc<[u8]>);

/// Why a text isn't a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected whsec_ and the base64 of {BYTES_MIN} to {BYTES_MAX} random bytes, as from `openssl rand -base64 32`")]
pub struct InvalidSigningSecret;

impl FromStr for SigningSecret {
    type Err = InvalidSigningSecret;

    fn from_str(text: &str) -> Result<Self, InvalidSigningSecret> {
        let bytes = STANDARD
            .decode(text.strip_prefix(PREFIX).ok_or(InvalidSigningSecret)?)
            .map_err(|_| InvalidSigningSecret)?;
        let is_good = (BYTES_MIN..=BYTES_MAX).contains(&bytes.len());
        if is_good { Ok(Self(bytes.into())) } else { Err(InvalidSigningSecret) }
    }
}

impl SigningSecret {
    /// The signature of a message with this id, sent at this time in seconds since 1970.
    pub(super) fn sign(&self, id: &str, timestamp: u64, body: &[u8]) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("a key may have any length");
        mac.update(format!("{id}.{timestamp}.").as_bytes());
        mac.update(body);
        format!("{VERSION},{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

impl fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An example from the tests of the standard's reference libraries.
    #[test]
    fn signature_equals_the_reference_libraries() {
        let secret: SigningSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".parse().unwrap();
        let signature = secret.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert_eq!(format!("{secret:?}"), "***");
    }

    #[test]
    fn short_secret_is_rejected() {
        let of = |bytes: usize| format!("{PREFIX}{}", STANDARD.encode(vec![7; bytes])).parse::<SigningSecret>();
        assert!(of(24).is_ok() && of(64).is_ok());
        for wrong in [of(0), of(23), of(65), "x".parse(), "whsec_???".parse(), STANDARD.encode([7; 32]).parse()] {
            assert_eq!(wrong, Err(InvalidSigningSecret));
        }
    }
}
