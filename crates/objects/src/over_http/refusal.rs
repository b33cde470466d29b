//! A store's refusal: its status, its words, and the code by which S3 names the cause, with what the operator must do.

use http::header::DATE;
use http::{HeaderMap, StatusCode};

use net::http_client::HttpResponse;

/// Bytes that are read of a refusal.
pub(super) const REFUSAL_BYTES_MAX: usize = 16 * 1024;
/// Characters of its words that are shown.
const SAID_MAX: usize = 200;
const BUCKET_REGION: &str = "x-amz-bucket-region";

/// A refusal.
#[derive(Debug)]
pub struct ServiceRefusal {
    pub(super) status: StatusCode,
    /// The store's own words, cut short.
    pub(super) said: String,
    /// The cause, as S3 names it.
    code: Option<String>,
    /// The region that the bucket is in, if the store says so.
    region: Option<String>,
    /// The host that has the bucket, if the store says so.
    endpoint: Option<String>,
    /// The store's clock.
    date: Option<String>,
}

/// What follows from a refusal.
pub(super) struct Consequence {
    pub(super) advice: String,
    /// Whether the operator must act. It is tried again all the same.
    pub(super) is_final: bool,
}

impl ServiceRefusal {
    pub(super) async fn of(answer: HttpResponse) -> Self {
        let (status, headers) = (answer.status(), answer.headers().clone());
        // Without its words the status must do.
        let text = answer.bytes(REFUSAL_BYTES_MAX).await.unwrap_or_default();
        Self::read(status, &headers, &String::from_utf8_lossy(&text))
    }

    fn read(status: StatusCode, headers: &HeaderMap, text: &str) -> Self {
        let header = |name| Some(headers.get(name)?.to_str().ok()?.to_owned());
        let code = element(text, "Code");
        let said = match (&code, element(text, "Message")) {
            (Some(code), Some(message)) => plain(&format!("{code}: {message}")),
            _ => plain(text),
        };
        let region = header(BUCKET_REGION).or_else(|| element(text, "Region"));
        Self { status, said, code, region, endpoint: element(text, "Endpoint"), date: header(DATE.as_str()) }
    }

    /// By the code if there is a known one, or else by the status.
    pub(super) fn consequence(&self) -> Consequence {
        self.by_code().unwrap_or_else(|| self.by_status())
    }

    /// The causes that S3 names (its "Error responses").
    fn by_code(&self) -> Option<Consequence> {
        let act = |advice: String| Some(Consequence { advice, is_final: true });
        let wait = |advice: &str| Some(Consequence { advice: advice.to_owned(), is_final: false });
        match self.code.as_deref()? {
            "SignatureDoesNotMatch" => {
                act("`secret_key` isn't the secret of `access_key`: set the right one. If it is right, a proxy on the way changes requests".into())
            }
            "InvalidAccessKeyId" => act("the store doesn't know `access_key`: set one that it has".into()),
            "ExpiredToken" | "InvalidToken" => act("the key is no longer valid: set a new `access_key` and `secret_key`".into()),
            "RequestTimeTooSkewed" | "RequestExpired" => {
                let clock = self.date.as_ref().map_or_else(String::new, |date| format!(" (the store's says {date})"));
                act(format!("the clock of this machine is wrong{clock}: set it"))
            }
            "AuthorizationHeaderMalformed" | "AuthorizationQueryParametersError" | "PermanentRedirect"
            | "TemporaryRedirect" | "Redirect" | "IllegalLocationConstraintException" | "InvalidLocationConstraint"
            | "InvalidRegion" => act(self.region_advice()),
            "AccessDenied" | "AllAccessDisabled" | "AccountProblem" => {
                act("its key may not do that: grant what the manual names, or set another key".into())
            }
            "InvalidBucketName" => act("the store takes no bucket of this name: set another `bucket`".into()),
            "NoSuchBucket" => wait("the bucket is gone: it is made again if that is allowed"),
            "BadDigest" | "XAmzContentSHA256Mismatch" | "IncompleteBody" => {
                wait("other bytes arrived than were sent. It is tried again")
            }
            "EntityTooLarge" => wait("it is larger than the store takes: set a lower max_bytes. It is tried again"),
            "SlowDown" | "RequestTimeout" | "ServiceUnavailable" | "InternalError" | "OperationAborted"
            | "ConditionalRequestConflict" | "Busy" => wait("it is tried again"),
            _ => None,
        }
    }

    fn region_advice(&self) -> String {
        let region = self.region.as_ref().map_or_else(
            || "set `region` to the one that the bucket is in".to_owned(),
            |region| format!("set region = \"{region}\""),
        );
        let endpoint = self.endpoint.as_ref().map_or_else(
            || ", and `url` to that region's own endpoint".to_owned(),
            |endpoint| format!(", and `url` to that region's own endpoint (the store names {endpoint})"),
        );
        format!("the bucket is in another region than requests are signed for: {region}{endpoint}")
    }

    fn by_status(&self) -> Consequence {
        let advice = match self.status.as_u16() {
            403 => "its user may not do that: grant it, or configure another one",
            404 => "what objects are kept in is gone: it is made again if that is allowed",
            301 | 302 | 307 | 308 => "it is in another place: configure the URL and region that the store has",
            408 | 409 | 422 | 425 | 429 | 498 | 499 | 503 => "it is tried again",
            413 => {
                "it is larger than the store takes, or over a quota: raise that, or set a lower max_bytes. It is tried again"
            }
            507 => "the store is full: make room",
            500..=599 => "look at its log. It is tried again",
            _ => "look whether the URL is that of such a store",
        };
        Consequence { advice: advice.to_owned(), is_final: !self.may_pass() }
    }

    /// Whether the status is one that passes without the operator.
    pub(super) fn may_pass(&self) -> bool {
        matches!(self.status.as_u16(), 408 | 404 | 409 | 412 | 413 | 422 | 425 | 429 | 498 | 499 | 500..=599)
    }
}

/// The text of an element without attributes, as S3 writes its errors.
fn element(text: &str, name: &str) -> Option<String> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    let (inner, _) = rest.split_once(&format!("</{name}>"))?;
    let unescaped = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&#39;", "'"), ("&amp;", "&")]
        .into_iter()
        .fold(inner.to_owned(), |text, (escape, character)| text.replace(escape, character));
    Some(unescaped).filter(|inner| !inner.is_empty())
}

/// Words without the tags that they stand between.
fn plain(text: &str) -> String {
    let (mut words, mut is_tag) = (String::new(), false);
    for character in text.chars() {
        match character {
            '<' => is_tag = true,
            '>' => {
                is_tag = false;
                words.push(' ');
            }
            _ if is_tag => {}
            _ => words.push(character),
        }
    }
    let words: Vec<&str> = words.split_whitespace().collect();
    words.join(" ").chars().take(SAID_MAX).collect()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn refusals_are_shown_without_tags() {
        for (text, shown) in [
            ("<html><h1>Forbidden</h1><p>Access was denied.</p></html>", "Forbidden Access was denied."),
            ("<?xml version='1.0'?>\n<Error><Code>NoSuchBucket</Code></Error>", "NoSuchBucket"),
            ("plain\r\ntext", "plain text"),
            ("", ""),
        ] {
            assert_eq!(plain(text), shown);
        }
        assert_eq!(plain(&"é".repeat(300)).chars().count(), SAID_MAX);
    }

    fn refusal(status: u16, text: &str) -> ServiceRefusal {
        let mut headers = HeaderMap::new();
        headers.insert(DATE, HeaderValue::from_static("Wed, 21 Oct 2015 07:28:00 GMT"));
        ServiceRefusal::read(StatusCode::from_u16(status).unwrap(), &headers, text)
    }

    #[test]
    fn each_cause_that_s3_names_has_its_own_sentence() {
        let mut sentences = Vec::new();
        for (status, code, advice, is_final) in [
            (403, "SignatureDoesNotMatch", "`secret_key` isn't the secret", true),
            (403, "InvalidAccessKeyId", "doesn't know `access_key`", true),
            (403, "RequestTimeTooSkewed", "(the store's says Wed, 21 Oct 2015 07:28:00 GMT): set it", true),
            (400, "AuthorizationHeaderMalformed", "set region = \"eu-x\"", true),
            (403, "AccessDenied", "may not do that", true),
            (400, "RequestTimeout", "tried again", false),
            (503, "SlowDown", "tried again", false),
            (400, "BadDigest", "other bytes arrived", false),
            (404, "NoSuchBucket", "made again", false),
        ] {
            let text = format!(
                "<?xml version=\"1.0\"?>\n<Error><Code>{code}</Code><Message>it&apos;s so</Message><Region>eu-x</Region></Error>"
            );
            let refusal = refusal(status, &text);
            assert_eq!(refusal.said, format!("{code}: it's so"));
            let consequence = refusal.consequence();
            assert!(consequence.advice.contains(advice), "{code}: {}", consequence.advice);
            assert_eq!(consequence.is_final, is_final, "{code}");
            sentences.push(consequence.advice);
        }
        sentences.dedup();
        assert_eq!(sentences.len(), 8, "only the two that pass by themselves share one");
        let moved =
            "<Error><Code>PermanentRedirect</Code><Message>m</Message><Endpoint>b.s3.eu-x.example</Endpoint></Error>";
        assert!(refusal(301, moved).consequence().advice.contains("the store names b.s3.eu-x.example"));
        assert!(refusal(403, "").consequence().advice.contains("user may not"), "without a code the status counts");
        assert!(refusal(500, "<Error><Code>New</Code></Error>").consequence().advice.contains("look at its log"));
    }
}
