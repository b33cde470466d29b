//! The texts of `docs/reference/errors.md`: cause and retry of each code. They are not in the program; the remedies are.

use eventlog::DeadLetterReason;
use testkit::generated::generated_block;

use super::ErrorCode;

const PAGE: &str = "docs/reference/errors.md";

/// What a sender does with the unchanged request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Retry {
    /// It gets the same answer.
    No,
    /// It may succeed at another time, with the same key.
    Yes,
    /// The answer says when: it has `Retry-After`, and the rejection of a record has `"retry": "later"`.
    Later,
}

impl Retry {
    const fn text(self) -> &'static str {
        match self {
            Self::No => "no",
            Self::Yes => "yes",
            Self::Later => "yes, after `Retry-After`",
        }
    }
}

/// The cause, and whether a retry helps.
#[expect(clippy::too_many_lines, reason = "a table")]
const fn cause(code: ErrorCode) -> (&'static str, Retry) {
    use ErrorCode as Code;
    use Retry::{Later, No, Yes};
    match code {
        Code::Json => (
            "The text is not [valid JSON](json.md). `offset` is the first wrong byte. `detail` names the format if Forebay recognises it, for instance a form, MessagePack or gzip.",
            No,
        ),
        Code::Utf8 => (
            "The text is not UTF-8. It has another encoding, or is compressed without the header `Content-Encoding`. `detail` says which.",
            No,
        ),
        Code::Depth => ("The payload has more than 128 nested arrays and objects.", No),
        Code::Surrogate => (
            "A string has an escape from `\\uD800` to `\\uDFFF` without its other half. It is no character, and stores reject it.",
            No,
        ),
        Code::TooLarge => (
            "An event has more than 1 MiB, or a batch more than 32 MiB, encoded or decoded. A server with little memory has a lower limit for batches, which `detail` shows.",
            No,
        ),
        Code::TooManyRecords => ("A batch has more than 100,000 records, or its type's steps split it into more.", No),
        Code::Record => (
            "The request or the record isn't what the protocol of its [intake](configuration/intakes.md) describes. `detail` says what is wrong.",
            No,
        ),
        Code::UnknownType => (
            "The configuration has neither this type nor `[types.\"*\"]`, or the text is no valid name of a type. Types with results of aggregates accept no posts.",
            No,
        ),
        Code::TooManyTypes => (
            "The server has accepted 1,000 types under `[types.\"*\"]`, and this is another one. Often an id or a date is part of the type's name.",
            No,
        ),
        Code::Schema => (
            "The payload violates the [schema](json-schema.md) of its type. `errors` lists up to 20 violations, each with the place in the payload and in the schema.",
            No,
        ),
        Code::Transform => (
            "A step of its type's [transform](transforms.md) failed on the payload. `step` and `operation` name the step, and `pointer` the place.",
            No,
        ),
        Code::Unstorable => (
            "The payload has `\\u0000`, or two members of one name, and its type rejects such [text](json.md#unstorable-text). `pointer` and `offset` show the place.",
            No,
        ),
        Code::Time => (
            "The event's time cannot be read, and the type has `time_unreadable = \"refuse\"`. `pointer` shows the place.",
            No,
        ),
        Code::Key => (
            "The `Idempotency-Key`, or the id in the payload, is empty or longer than 256 bytes, or the id is no string or number.",
            No,
        ),
        Code::IdReused => {
            ("The `Idempotency-Key`, or the id in the payload, was already used for another payload.", No)
        }
        Code::AckMemory => ("The request has `Forebay-Ack: memory`, and its type does not allow it.", No),
        Code::DeadLetter => (
            "A sink rejected the event permanently: with `Forebay-Ack: stored`, or when the event is [read back](http-read.md#one-event). It is durable, as a [dead letter](../concepts/glossary.md#dead-letter). `dead` lists the sinks with a [reason](#dead-letter-reasons).",
            No,
        ),
        Code::ContentEncoding => (
            "`Content-Encoding` is none of `gzip`, `x-gzip`, `deflate`, `zstd` and `identity`, or there are several.",
            No,
        ),
        Code::Encoding => (
            "The body does not match its `Content-Encoding`: it is damaged or truncated, has bytes after its end, or needs a zstd window above 8 MiB.",
            No,
        ),
        Code::BodyIncomplete => (
            "The body ended before its `Content-Length` or its last chunk: the client or a proxy closed the connection.",
            Yes,
        ),
        Code::Timeout => {
            ("The request line and headers took longer than 10 s, or the body arrived with less than 1 KiB/s.", Yes)
        }
        Code::BadRequest => (
            "The request is malformed HTTP, has an unencoded byte in its [target](http-ingest.md#targets), an invalid query or header value, or several credentials. `title` and `detail` say which.",
            No,
        ),
        Code::Expectation => ("The header `Expect` has another value than `100-continue`.", No),
        Code::TargetTooLong => ("The request line has more than 16 KiB.", No),
        Code::HeaderTooLarge => ("The headers have more than 16 KiB, or more than 100 lines.", No),
        Code::Unauthorized => {
            ("The request needs a token. It has none, or one that is unknown, revoked or expired.", No)
        }
        Code::Forbidden => ("The token lacks the scope that `detail` names: `ingest` to post, `read` to read.", No),
        Code::Signature => (
            "The request of a [webhook](../guides/intakes/webhooks.md) has no valid signature, or one that is too old. Nothing of it is stored.",
            No,
        ),
        Code::CrossOrigin => {
            ("The request needs no token and has none, and a web page of another origin may have sent it.", No)
        }
        Code::NotFound => ("The server has nothing at this path.", No),
        Code::MethodNotAllowed => ("The path accepts other methods.", No),
        Code::Overload => (
            "Too many bytes are in flight, or this sender uses more than its share, or too many reads are in progress: see [overload](http-ingest.md#overload).",
            Later,
        ),
        Code::BacklogFull => (
            "A sink of this type has reached its `max_backlog`: its store is down or too slow. It accepts events again when a quarter of the limit has been stored.",
            Later,
        ),
        Code::DiskFull => (
            "The disk of the data directory has less free space than `keep_free`. Delivery continues, and frees space in the journal.",
            Yes,
        ),
        Code::JournalFailed => (
            "The disk failed while the journal was written. Forebay ends, and recovers at the next start. The events may be durable or not.",
            Yes,
        ),
        Code::NotReady => {
            ("Forebay is stopping, or the rules of this type are being reloaded. Nothing was accepted.", Later)
        }
        Code::Cursor => {
            ("The cursor is invalid, or belongs to another query or sink: see [pages](http-read.md#pages).", No)
        }
        Code::UnknownEvent => (
            "No readable store has the event, and it is not known to wait for one. If it was accepted, `detail` has the reason.",
            No,
        ),
        Code::NotReadable => {
            ("The events go to no store that Forebay can read: see [read sinks](http-read.md#read-sinks).", No)
        }
        Code::StoreUnavailable => ("The store does not answer. The server's log has its message.", Later),
        Code::UnknownObject => ("No sink that serves its objects has one of this name.", No),
        Code::Range => ("The object does not have the requested bytes. `Content-Range` has its length.", No),
        Code::NoWorker => (
            "No service listens to the subject of [the bridge](../guides/bridge.md). The request was not carried out.",
            Later,
        ),
        Code::BusUnavailable => ("The gateway has no connection to the servers of the bus. Nothing was sent.", Later),
        Code::BridgeBusy => {
            ("As many requests of the bridge wait for answers as `max_waiting` allows. Nothing was sent.", Later)
        }
        Code::BridgeTimeout => {
            ("The service gave no answer within the `timeout` of the bridge. It may still carry the request out.", No)
        }
        Code::BusLost => {
            ("The connection to the bus was lost after the request was sent. The service may have carried it out.", No)
        }
        Code::BadReply => {
            ("The answer of the service has a status or headers that can't be read. `detail` says which.", No)
        }
        Code::BusRefused => {
            ("The servers of the bus don't allow the gateway to publish to the subject of the bridge.", No)
        }
        Code::ReplyDropped => (
            "The service has answered. The answers that clients have not received yet leave no memory for this one. See [memory](../guides/bridge.md#memory).",
            No,
        ),
    }
}

#[test]
fn errors_page_lists_every_code() {
    let rows = ErrorCode::ALL.into_iter().map(|code| {
        let (name, status) = (code.as_str(), code.status().as_u16());
        format!("| {status} | [`{name}`](#{name}) | {} | {} |\n", code.title(), cause(code).1.text())
    });
    let mut rows: Vec<String> = rows.collect();
    rows.sort();
    generated_block(
        PAGE,
        "error codes",
        &format!("| status | code | title | retry |\n|---|---|---|---|\n{}", rows.concat()),
    );
}

#[test]
fn errors_page_explains_every_code() {
    let section = |code: ErrorCode| {
        let ((cause, retry), remedy) = (cause(code), code.remedy());
        let (name, status, title, retry) = (code.as_str(), code.status().as_u16(), code.title(), retry.text());
        format!(
            "### {name}\n\n**{status}**, *{title}*. Retry: {retry}.\n\n* **Cause.** {cause}\n* **Remedy.** {remedy}\n\n"
        )
    };
    generated_block(PAGE, "errors", &ErrorCode::ALL.map(section).concat());
}

const fn reason(reason: DeadLetterReason) -> &'static str {
    match reason {
        DeadLetterReason::RejectedByStore => "the store rejected the event",
        DeadLetterReason::NotStoredInTime => {
            "the store didn't accept the event in time, but accepted others of its batch"
        }
        DeadLetterReason::ConditionFailed => "the condition of the route can't be evaluated on the event",
        DeadLetterReason::SinkChanged => "the event was deferred, and its sink now has a store of another kind",
        DeadLetterReason::Dropped => "the operator dropped the dead letter",
    }
}

#[test]
fn errors_page_lists_every_reason() {
    let row = |of: DeadLetterReason| format!("| `{}` | {} |\n", of.as_str(), reason(of));
    let rows = DeadLetterReason::ALL.map(row).concat();
    generated_block(PAGE, "dead-letter reasons", &format!("| `reason` | meaning |\n|---|---|\n{rows}"));
}

#[test]
fn retries_match_the_responses() {
    for code in ErrorCode::ALL {
        assert_eq!(code.is_transient(), cause(code).1 == Retry::Later, "{code:?}");
    }
}
