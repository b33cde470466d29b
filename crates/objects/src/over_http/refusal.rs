//! A store's rejection: its status, its message, and the code by which S3 names the cause, with advice for the
//! operator.

use http::header::DATE;
use http::{HeaderMap, StatusCode};

use net::http_client::HttpResponse;

/// The maximum of bytes that are read from a rejection.
pub(super) const REFUSAL_BYTES_MAX: usize = 16 * 1024;
/// The maximum of characters of its message that are shown.
const SAID_MAX: usize = 200;
const BUCKET_REGION: &str = "x-amz-bucket-region";

/// A rejection.
#[derive(Debug)]
pub struct ServiceRefusal {
    pub(super) status: StatusCode,
    /// The store's message, shortened.
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

/// The consequence of a rejection.
pub(super) struct Consequence {
    pub(super) advice: String,
    /// Whether the operator must fix it. Forebay retries in any case.
    pub(super) is_final: bool,
}

impl ServiceRefusal {
    pub(super) async fn of(answer: HttpResponse) -> Self {
        let (status, headers) = (answer.status(), answer.headers().clone());
        // Without a message the status is used.
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
        let fix = |advice: String| Some(Consequence { advice, is_final: true });
        let wait = |advice: &str| Some(Consequence { advice: advice.to_owned(), is_final: false });
        match self.code.as_deref()? {
            "SignatureDoesNotMatch" => {
                fix("`secret_key` doesn't belong to `access_key`: set the right one. If it is right, a proxy changes \
                    the requests"
                    .into())
            }
            "InvalidAccessKeyId" => fix("the store doesn't know `access_key`: set an existing one".into()),
            "ExpiredToken" | "InvalidToken" => {
                fix("the key is no longer valid: set a new `access_key` and `secret_key`".into())
            }
            "RequestTimeTooSkewed" | "RequestExpired" => {
                let clock =
                    self.date.as_ref().map_or_else(String::new, |date| format!(" (the store's clock says {date})"));
                fix(format!("the clock of this machine is wrong{clock}: correct it"))
            }
            "AuthorizationHeaderMalformed"
            | "AuthorizationQueryParametersError"
            | "PermanentRedirect"
            | "TemporaryRedirect"
            | "Redirect"
            | "IllegalLocationConstraintException"
            | "InvalidLocationConstraint"
            | "InvalidRegion" => fix(self.region_advice()),
            "AccessDenied" | "AllAccessDisabled" | "AccountProblem" => {
                fix("the key lacks a permission: grant those in docs/guides/stores/objects.md, or set another key"
                    .into())
            }
            "InvalidBucketName" => fix("the store rejects this bucket name: set another `bucket`".into()),
            "NoSuchBucket" => wait("the bucket is missing: create it, or permit Forebay to create it"),
            "BadDigest" | "XAmzContentSHA256Mismatch" | "IncompleteBody" => {
                wait("the store received other bytes than Forebay sent. Forebay retries")
            }
            "EntityTooLarge" => wait("the object is too large for the store: set a lower `max_bytes`. Forebay retries"),
            "SlowDown"
            | "RequestTimeout"
            | "ServiceUnavailable"
            | "InternalError"
            | "OperationAborted"
            | "ConditionalRequestConflict"
            | "Busy" => wait("Forebay retries"),
            _ => None,
        }
    }

    fn region_advice(&self) -> String {
        let region = self.region.as_ref().map_or_else(
            || "set `region` to the bucket's region".to_owned(),
            |region| format!("set region = \"{region}\""),
        );
        let endpoint = self.endpoint.as_ref().map_or_else(
            || ", and `url` to that region's endpoint".to_owned(),
            |endpoint| format!(", and `url` to that region's endpoint (the store names {endpoint})"),
        );
        format!("requests are signed for another region than the bucket's: {region}{endpoint}")
    }

    fn by_status(&self) -> Consequence {
        let advice = match self.status.as_u16() {
            403 => "the user lacks a permission: grant it, or configure another user",
            404 => "the bucket or container is missing: create it, or permit Forebay to create it",
            301 | 302 | 307 | 308 => "the store redirects the request: set `url` to its target, and the right region",
            408 | 409 | 422 | 425 | 429 | 498 | 499 | 503 => "Forebay retries",
            413 => {
                "the object is too large for the store, or over a quota: raise the limit, or set a lower `max_bytes`. \
                 Forebay retries"
            }
            507 => "the store is full: free space",
            500..=599 => "check the store's log. Forebay retries",
            _ => "check that the URL is the one of this service",
        };
        Consequence { advice: advice.to_owned(), is_final: !self.may_be_temporary() }
    }

    /// Whether the error may be temporary by its status, without the operator.
    pub(super) fn may_be_temporary(&self) -> bool {
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

/// The text without tags.
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
    fn rejection_is_shown_without_tags() {
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
    fn each_s3_code_has_its_own_advice() {
        let mut sentences = Vec::new();
        for (status, code, advice, is_final) in [
            (403, "SignatureDoesNotMatch", "`secret_key` doesn't belong", true),
            (403, "InvalidAccessKeyId", "doesn't know `access_key`", true),
            (403, "RequestTimeTooSkewed", "(the store's clock says Wed, 21 Oct 2015 07:28:00 GMT): correct it", true),
            (400, "AuthorizationHeaderMalformed", "set region = \"eu-x\"", true),
            (403, "AccessDenied", "lacks a permission", true),
            (400, "RequestTimeout", "retries", false),
            (503, "SlowDown", "retries", false),
            (400, "BadDigest", "received other bytes", false),
            (404, "NoSuchBucket", "create it", false),
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
        assert_eq!(sentences.len(), 8, "only the two temporary causes share one");
        let moved =
            "<Error><Code>PermanentRedirect</Code><Message>m</Message><Endpoint>b.s3.eu-x.example</Endpoint></Error>";
        assert!(refusal(301, moved).consequence().advice.contains("the store names b.s3.eu-x.example"));
        assert!(refusal(403, "").consequence().advice.contains("user lacks"), "without a code the status counts");
        assert!(refusal(500, "<Error><Code>New</Code></Error>").consequence().advice.contains("check the store's log"));
    }
}
