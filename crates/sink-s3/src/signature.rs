//! Signatures of version 4, as AWS describes them in "Authenticating Requests: Using the Authorization Header".

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use text::hex;

use objects::over_http::Secret;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
const SERVICE: &str = "s3";
const END: &str = "aws4_request";

/// The key that signs.
pub(super) struct Signer<'a> {
    pub(super) access_key: &'a str,
    pub(super) secret_key: &'a Secret,
    pub(super) region: &'a str,
}

/// The signed parts of a request. It has no query.
pub(super) struct Signed<'a> {
    pub(super) method: &'a str,
    /// With its escapes.
    pub(super) path: &'a str,
    /// Names in lower case, in order.
    pub(super) headers: &'a [(&'a str, &'a str)],
    /// The digest of the body, in hexadecimal digits.
    pub(super) sha256: &'a str,
}

/// `20130524T000000Z` for `2013-05-24T00:00:00.000000Z`.
pub(super) fn date(rfc3339: &str) -> String {
    let (seconds, _) = rfc3339.split_once('.').unwrap_or((rfc3339, ""));
    seconds.replace(['-', ':'], "") + "Z"
}

impl Signer<'_> {
    /// The value of `Authorization`.
    pub(super) fn authorization(&self, date: &str, signed: &Signed<'_>) -> String {
        debug_assert!(signed.headers.is_sorted(), "the server sorts them");
        let names: Vec<&str> = signed.headers.iter().map(|(name, _)| *name).collect();
        let names = names.join(";");
        let headers: String =
            signed.headers.iter().map(|(name, value)| format!("{name}:{}\n", single_spaced(value))).collect();
        let canonical = format!("{}\n{}\n\n{headers}\n{names}\n{}", signed.method, signed.path, signed.sha256);
        let day = date.get(..8).unwrap_or_default();
        let scope = format!("{day}/{}/{SERVICE}/{END}", self.region);
        let text = format!("{ALGORITHM}\n{date}\n{scope}\n{}", hex::encode(&Sha256::digest(canonical)));
        let first = format!("AWS4{}", self.secret_key.expose());
        let key = [day, self.region, SERVICE, END].iter().fold(first.into_bytes(), |key, part| mac(&key, part));
        let signature = hex::encode(&mac(&key, &text));
        format!("{ALGORITHM} Credential={}/{scope},SignedHeaders={names},Signature={signature}", self.access_key)
    }
}

/// Normalises a value as servers do: without blanks around it, and with single blanks.
fn single_spaced(value: &str) -> String {
    value.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key may have any length");
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of AWS's own page.
    #[test]
    fn published_examples_have_their_signatures() {
        let signer = Signer {
            access_key: "AKIAIOSFODNN7EXAMPLE",
            secret_key: &"wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".into(),
            region: "us-east-1",
        };
        let time = date("2013-05-24T00:00:00.000000Z");
        assert_eq!(time, "20130524T000000Z");
        let (host, nothing) = ("examplebucket.s3.amazonaws.com", hex::encode(&Sha256::digest("")));
        let body = hex::encode(&Sha256::digest("Welcome to Amazon S3."));
        let get = Signed {
            method: "GET",
            path: "/test.txt",
            headers: &[
                ("host", host),
                ("range", "bytes=0-9"),
                ("x-amz-content-sha256", &nothing),
                ("x-amz-date", &time),
            ],
            sha256: &nothing,
        };
        let put = Signed {
            method: "PUT",
            path: "/test%24file.text",
            headers: &[
                ("date", "Fri, 24 May 2013 00:00:00 GMT"),
                ("host", host),
                ("x-amz-content-sha256", &body),
                ("x-amz-date", &time),
                ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
            ],
            sha256: &body,
        };
        for (signed, signature) in [
            (get, "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
            (put, "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"),
        ] {
            let authorization = signer.authorization(&time, &signed);
            let scope = "Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,SignedHeaders=";
            assert!(authorization.starts_with(&format!("AWS4-HMAC-SHA256 {scope}")), "{authorization}");
            assert!(authorization.ends_with(&format!(",Signature={signature}")), "{authorization}");
        }
    }
}
