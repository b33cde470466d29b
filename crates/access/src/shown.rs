//! How a request shows its token: as a bearer token, as the password or the user of HTTP Basic, as an API key, or by the schemes of Splunk
//! and Elasticsearch.

use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use base64::engine::{DecodePaddingMode, Engine};

use crate::secret::{PREFIX, TEXT_BYTES};

/// Some senders leave the padding out.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);
/// Bytes of a decoded `user:password` or `id:key`. A longer one shows no token.
const PAIR_BYTES_MAX: usize = 512 + 1 + TEXT_BYTES;

/// A token as a request shows it. It may be any text.
pub struct ShownToken<'h> {
    text: Text<'h>,
}

enum Text<'h> {
    Bearer(&'h [u8]),
    ApiKey(&'h [u8]),
    /// `None` if the password, or the user, is too short or too long for a token.
    Basic(Option<[u8; TEXT_BYTES]>),
    /// The same of a key with an id.
    KeyWithId(Option<[u8; TEXT_BYTES]>),
}

/// A request shows a credential in `Authorization`, and another one in `X-Api-Key`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the request has both Authorization and X-Api-Key: send the token in one of them")]
pub struct SeveralCredentials;

impl<'h> ShownToken<'h> {
    /// The token in the value of `Authorization`, if its scheme is Bearer (RFC 6750 §2.1).
    #[must_use]
    pub fn bearer(authorization: &'h [u8]) -> Option<Self> {
        Some(Self { text: Text::Bearer(after_scheme(authorization, b"Bearer ")?) })
    }

    /// The token of a request with these values of `Authorization` and `X-Api-Key`. It is a bearer token, the password of Basic (RFC 7617)
    /// with any user, or the user of Basic with an empty password. It can also be the token of the scheme `Splunk`, the key of the scheme
    /// `ApiKey`, or the API key. A user, a password or a key without the prefix of tokens is for another reader, such as a proxy before the
    /// server. It shows no token, and neither does another scheme.
    ///
    /// # Errors
    /// The request has both headers: two parsers might use different ones.
    pub fn of(authorization: Option<&'h [u8]>, api_key: Option<&'h [u8]>) -> Result<Option<Self>, SeveralCredentials> {
        match (authorization, api_key) {
            (Some(_), Some(_)) => Err(SeveralCredentials),
            (Some(authorization), None) => Ok(Self::bearer(authorization)
                .or_else(|| Self::basic(authorization))
                .or_else(|| Self::splunk(authorization))
                .or_else(|| Self::key_with_id(authorization))),
            (None, api_key) => {
                Ok(api_key.filter(|key| begins_as_token(key)).map(|key| Self { text: Text::ApiKey(key) }))
            }
        }
    }

    fn basic(authorization: &[u8]) -> Option<Self> {
        let encoded = after_scheme(authorization, b"Basic ")?;
        let mut buffer = [0; PAIR_BYTES_MAX + 2];
        let (user, password) = decoded_pair(encoded, &mut buffer)?;
        // Senders with one field for a key send it as the user.
        let shown = if password.is_empty() { user } else { password };
        begins_as_token(shown).then(|| Self { text: Text::Basic(shown.try_into().ok()) })
    }

    /// Senders to Splunk name their token so. Some need one in any case: a foreign one is ignored.
    fn splunk(authorization: &'h [u8]) -> Option<Self> {
        let token = after_scheme(authorization, b"Splunk ")?;
        begins_as_token(token).then_some(Self { text: Text::ApiKey(token) })
    }

    /// Senders to Elasticsearch encode the id of a key and the key. Clients with one text for both send it unchanged, so it may be the token.
    fn key_with_id(authorization: &'h [u8]) -> Option<Self> {
        let encoded = after_scheme(authorization, b"ApiKey ")?;
        if begins_as_token(encoded) {
            return Some(Self { text: Text::ApiKey(encoded) });
        }
        let mut buffer = [0; PAIR_BYTES_MAX + 2];
        let (_, key) = decoded_pair(encoded, &mut buffer)?;
        begins_as_token(key).then(|| Self { text: Text::KeyWithId(key.try_into().ok()) })
    }

    /// Whether a browser may have added it automatically: browsers remember a user and a password for a host, and send both with requests of
    /// other hosts' pages.
    #[must_use]
    pub const fn is_basic(&self) -> bool {
        matches!(self.text, Text::Basic(_))
    }

    pub(crate) const fn bytes(&self) -> &[u8] {
        match &self.text {
            Text::Bearer(text) | Text::ApiKey(text) => text,
            Text::Basic(Some(text)) | Text::KeyWithId(Some(text)) => text,
            Text::Basic(None) | Text::KeyWithId(None) => b"",
        }
    }
}

/// The two parts of an encoded pair, before and after its first colon. The decoder needs room for its estimate, which is up to two bytes
/// more than the longest pair has.
fn decoded_pair<'b>(encoded: &[u8], buffer: &'b mut [u8; PAIR_BYTES_MAX + 2]) -> Option<(&'b [u8], &'b [u8])> {
    let length = BASE64.decode_slice(encoded, buffer).ok()?;
    let pair = &buffer[..length];
    let colon = pair.iter().position(|byte| *byte == b':')?;
    Some((&pair[..colon], &pair[colon + 1..]))
}

/// What follows the name of a scheme, which may be written in any case.
fn after_scheme<'h>(authorization: &'h [u8], scheme: &[u8]) -> Option<&'h [u8]> {
    let (named, rest) = authorization.split_at_checked(scheme.len())?;
    named.eq_ignore_ascii_case(scheme).then(|| rest.trim_ascii_start())
}

fn begins_as_token(text: &[u8]) -> bool {
    text.starts_with(PREFIX.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "fb_0123456789abcdefghjkmnpqrstvwxyz0123456789abcdefghjk";

    fn shown<'h>(authorization: Option<&'h str>, key: Option<&'h str>) -> Result<Option<Vec<u8>>, SeveralCredentials> {
        let shown = ShownToken::of(authorization.map(str::as_bytes), key.map(str::as_bytes))?;
        Ok(shown.map(|shown| shown.bytes().to_vec()))
    }

    fn basic(pair: &str) -> String {
        format!("Basic {}", BASE64.encode(pair))
    }

    #[test]
    fn token_is_found_in_every_header() {
        assert_eq!(TOKEN.len(), TEXT_BYTES);
        let longest = basic(&format!("{}:{TOKEN}", "u".repeat(512)));
        for authorization in [
            format!("Bearer {TOKEN}"),
            format!("bEARER   {TOKEN}"),
            basic(&format!("anybody:{TOKEN}")),
            basic(&format!(":{TOKEN}")),
            basic(&format!("{TOKEN}:")),
            basic(&format!("anybody:{TOKEN}")).replace("Basic ", "bASIC  "),
            basic(&format!("a:{TOKEN}")).trim_end_matches('=').to_owned(),
            longest,
            format!("Splunk {TOKEN}"),
            format!("sPLUNK  {TOKEN}"),
            basic(&format!("id:{TOKEN}")).replace("Basic ", "ApiKey "),
            basic(&format!(":{TOKEN}")).replace("Basic ", "aPIkEY  "),
            format!("ApiKey {TOKEN}"),
        ] {
            assert_eq!(shown(Some(&authorization), None), Ok(Some(TOKEN.into())), "{authorization}");
        }
        assert_eq!(shown(None, Some(TOKEN)), Ok(Some(TOKEN.into())));
        assert_eq!(shown(None, None), Ok(None));
    }

    #[test]
    fn malformed_token_counts_as_shown() {
        for pair in ["x:fb_", "fb_:", &format!("x:{TOKEN}0"), &format!("{TOKEN}0:"), &format!("x:{}", &TOKEN[..50])] {
            assert_eq!(shown(Some(&basic(pair)), None), Ok(Some(Vec::new())), "{pair}");
        }
        let key = basic(&format!("id:{TOKEN}0")).replace("Basic ", "ApiKey ");
        assert_eq!(shown(Some(&key), None), Ok(Some(Vec::new())));
        assert_eq!(shown(Some("Splunk fb_x"), None), Ok(Some("fb_x".into())));
        assert_eq!(shown(None, Some("fb_x")), Ok(Some("fb_x".into())));
        assert_eq!(shown(Some("Bearer x"), None), Ok(Some("x".into())));
    }

    #[test]
    fn foreign_credentials_show_no_token() {
        let too_long = basic(&format!("{}:{TOKEN}", "u".repeat(516)));
        let passwords = [TOKEN, "a:", &format!("a:b:{TOKEN}"), "x:y", &format!("{TOKEN}:x")].map(basic);
        let schemes = ["", "Bearer", "Basic", "Basic ", "Basic !!!", "Digest x", TOKEN, "Negotiate YII=", &too_long];
        let foreign_key = basic("id:key").replace("Basic ", "ApiKey ");
        // The token is the key, not its id.
        let id = basic(&format!("{TOKEN}:")).replace("Basic ", "ApiKey ");
        let keys = ["Splunk 0-1", "Splunk", "ApiKey", "ApiKey !!!", "ApiKey bm9jb2xvbg==", &foreign_key, &id];
        for authorization in keys {
            assert_eq!(shown(Some(authorization), None), Ok(None), "{authorization}");
        }
        for authorization in schemes.into_iter().chain(passwords.iter().map(String::as_str)) {
            assert_eq!(shown(Some(authorization), None), Ok(None), "{authorization}");
        }
        assert_eq!([shown(None, Some("")), shown(None, Some("key"))], [Ok(None), Ok(None)]);
    }

    #[test]
    fn several_credentials_are_rejected() {
        let bearer = format!("Bearer {TOKEN}");
        assert_eq!(shown(Some(&bearer), Some(TOKEN)), Err(SeveralCredentials));
        assert_eq!(shown(Some("Digest x"), Some("")), Err(SeveralCredentials));
    }

    #[test]
    fn only_basic_credentials_come_from_browsers() {
        let of = |authorization: &str, key: Option<&[u8]>| {
            ShownToken::of(Some(authorization.as_bytes()).filter(|text| !text.is_empty()), key)
                .unwrap()
                .unwrap()
                .is_basic()
        };
        let basic = basic(&format!("x:{TOKEN}"));
        assert_eq!([of("Bearer x", None), of(&basic, None), of("", Some(TOKEN.as_bytes()))], [false, true, false]);
        let key = basic.replace("Basic ", "ApiKey ");
        assert_eq!([of(&key, None), of(&format!("Splunk {TOKEN}"), None)], [false, false]);
    }
}
