//! The texts of `docs/reference/errors.md`: cause, remedy and retry of each code. They are not in the program.

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

/// Cause, what to do, and whether a retry helps.
#[expect(clippy::too_many_lines, reason = "a table")]
const fn texts(code: ErrorCode) -> (&'static str, &'static str, Retry) {
    use ErrorCode as Code;
    use Retry::{Later, No, Yes};
    match code {
        Code::Json => (
            "The text is not [valid JSON](json.md). `offset` is the first wrong byte. `detail` names the format if Forebay recognises it, for instance a form, MessagePack or gzip.",
            "Correct the text at `offset`, or set the sender's format to JSON: see [senders](../guides/senders.md).",
            No,
        ),
        Code::Utf8 => (
            "The text is not UTF-8. It has another encoding, or is compressed without the header `Content-Encoding`. `detail` says which.",
            "Send UTF-8. If the body is compressed, set `Content-Encoding`.",
            No,
        ),
        Code::Depth => (
            "The payload has more than 128 nested arrays and objects.",
            "Send a flatter payload, or the inner part as a string.",
            No,
        ),
        Code::Surrogate => (
            "A string has an escape from `\\uD800` to `\\uDFFF` without its other half. It is no character, and stores reject it.",
            "Correct the program that writes the text: it cuts strings in the middle of a character.",
            No,
        ),
        Code::TooLarge => (
            "An event has more than 1 MiB, or a batch more than 32 MiB, encoded or decoded. A server with little memory has a lower limit for batches, which `detail` shows.",
            "Split a batch. Keep large content in an object store, and send its address in the event.",
            No,
        ),
        Code::TooManyRecords => (
            "A batch has more than 100,000 records, or its type's steps split it into more.",
            "Send smaller batches.",
            No,
        ),
        Code::Record => (
            "The request or the record isn't what the protocol of its [intake](configuration/intakes.md) describes. `detail` says what is wrong.",
            "Correct the sender, or its configuration: the guide of the protocol shows it.",
            No,
        ),
        Code::UnknownType => (
            "The configuration has neither this type nor `[types.\"*\"]`, or the text is no valid name of a type. Types with results of aggregates accept no posts.",
            "Correct the type in the path or header, or add `[types.NAME]` to the configuration.",
            No,
        ),
        Code::TooManyTypes => (
            "The server has accepted 1,000 types under `[types.\"*\"]`, and this is another one. Often an id or a date is part of the type's name.",
            "Use a fixed set of types, or add `[types.NAME]` for this one.",
            No,
        ),
        Code::Schema => (
            "The payload violates the [schema](json-schema.md) of its type. `errors` lists up to 20 violations, each with the place in the payload and in the schema.",
            "Correct the payload at `pointer`, or the schema. `forebay try` shows the errors of one payload.",
            No,
        ),
        Code::Transform => (
            "A step of its type's [transform](transforms.md) failed on the payload. `step` and `operation` name the step, and `pointer` the place.",
            "Correct the payload, or set the step's `on_error`. `forebay try` shows each step.",
            No,
        ),
        Code::Unstorable => (
            "The payload has `\\u0000`, or two members of one name, and its type rejects such [text](json.md#unstorable-text). `pointer` and `offset` show the place.",
            "Remove it, or set `unstorable = \"repair\"` for the type.",
            No,
        ),
        Code::Time => (
            "The event's time cannot be read, and the type has `time_unreadable = \"refuse\"`. `pointer` shows the place.",
            "Send a valid time, or change `time_unreadable`: Forebay then uses the receipt time.",
            No,
        ),
        Code::Key => (
            "The `Idempotency-Key`, or the id in the payload, is empty or longer than 256 bytes, or the id is no string or number.",
            "Send a key of 1 to 256 bytes.",
            No,
        ),
        Code::IdReused => (
            "The `Idempotency-Key`, or the id in the payload, was already used for another payload.",
            "Use a new key for each event or batch. Repeat a request with the same bytes.",
            No,
        ),
        Code::AckMemory => (
            "The request has `Forebay-Ack: memory`, and its type does not allow it.",
            "Remove the header, or set `ack_memory = true` for the type.",
            No,
        ),
        Code::DeadLetter => (
            "A sink rejected the event permanently: with `Forebay-Ack: stored`, or when the event is [read back](http-read.md#one-event). It is durable, as a [dead letter](../concepts/glossary.md#dead-letter). `dead` lists the sinks with a [reason](#dead-letter-reasons).",
            "Do not resend the event. The operator corrects the cause and [replays](../guides/dead-letters.md#replaying) it.",
            No,
        ),
        Code::ContentEncoding => (
            "`Content-Encoding` is none of `gzip`, `x-gzip`, `deflate`, `zstd` and `identity`, or there are several.",
            "Compress the body once, with gzip, deflate or zstd, or not at all.",
            No,
        ),
        Code::Encoding => (
            "The body does not match its `Content-Encoding`: it is damaged or truncated, has bytes after its end, or needs a zstd window above 8 MiB.",
            "Compress the body again. For zstd, use no `--ultra` and no `--long`.",
            No,
        ),
        Code::BodyIncomplete => (
            "The body ended before its `Content-Length` or its last chunk: the client or a proxy closed the connection.",
            "Send the request again, with the same key. Check the timeouts of proxies.",
            Yes,
        ),
        Code::Timeout => (
            "The request line and headers took longer than 10 s, or the body arrived with less than 1 KiB/s.",
            "Send the request again, with the same key, in smaller parts if the network is slow.",
            Yes,
        ),
        Code::BadRequest => (
            "The request is malformed HTTP, has an unencoded byte in its [target](http-ingest.md#targets), an invalid query or header value, or several credentials. `title` and `detail` say which.",
            "Correct the request as `detail` says.",
            No,
        ),
        Code::Expectation => ("The header `Expect` has another value than `100-continue`.", "Remove the header.", No),
        Code::TargetTooLong => {
            ("The request line has more than 16 KiB.", "Send data in the body, not in the query.", No)
        }
        Code::HeaderTooLarge => (
            "The headers have more than 16 KiB, or more than 100 lines.",
            "Remove headers. Often cookies are the reason.",
            No,
        ),
        Code::Unauthorized => (
            "The request needs a token. It has none, or one that is unknown, revoked or expired.",
            "Send `Authorization: Bearer TOKEN`. The operator creates tokens: see [authentication](../guides/authenticate.md).",
            No,
        ),
        Code::Forbidden => (
            "The token lacks the scope that `detail` names: `ingest` to post, `read` to read.",
            "Use a token with this scope.",
            No,
        ),
        Code::Signature => (
            "The request of a [webhook](../guides/intakes/webhooks.md) has no valid signature, or one that is too old. Nothing of it is stored.",
            "Compare the secret in `secrets` with the provider's. Set `url` behind a proxy, if the provider signs the URL. Check the clock.",
            No,
        ),
        Code::CrossOrigin => (
            "The request needs no token and has none, and a web page of another origin may have sent it.",
            "List the page's origin in `cors_origins`, or the name in `Host` in `allowed_hosts`: see [web pages](../guides/browsers.md#rules).",
            No,
        ),
        Code::NotFound => ("The server has nothing at this path.", "Correct the path: `detail` lists the paths.", No),
        Code::MethodNotAllowed => {
            ("The path accepts other methods.", "Use a method that the header `Allow` lists.", No)
        }
        Code::Overload => (
            "Too many bytes are in flight, or this sender uses more than its share, or too many reads are in progress: see [overload](http-ingest.md#overload).",
            "Send the request again later, with the same key. If it persists, send fewer requests at a time, or check the disk.",
            Later,
        ),
        Code::BacklogFull => (
            "A sink of this type has reached its `max_backlog`: its store is down or too slow. It accepts events again when a quarter of the limit has been stored.",
            "Send the request again later, with the same key. The operator checks the sink with `forebay status`.",
            Later,
        ),
        Code::DiskFull => (
            "The disk of the data directory has less free space than `keep_free`. Delivery continues, and frees space in the journal.",
            "Send the request again later, with the same key. The operator frees space, or removes the reason of the backlog.",
            Yes,
        ),
        Code::JournalFailed => (
            "The disk failed while the journal was written. Forebay ends, and recovers at the next start. The events may be durable or not.",
            "Send the request again with the same key, so the event is stored once. The operator checks the disk.",
            Yes,
        ),
        Code::NotReady => (
            "Forebay is stopping, or the rules of this type are being reloaded. Nothing was accepted.",
            "Send the request again later, with the same key, or to another gateway.",
            Later,
        ),
        Code::Cursor => (
            "The cursor is invalid, or belongs to another query or sink: see [pages](http-read.md#pages).",
            "Repeat the query of the cursor. Only `limit` may change. Or begin without a cursor.",
            No,
        ),
        Code::UnknownEvent => (
            "No readable store has the event, and it is not known to wait for one. If it was accepted, `detail` has the reason.",
            "Check id and type. With `position`, a new event is found before it is stored: see [one event](http-read.md#one-event).",
            No,
        ),
        Code::NotReadable => (
            "The events go to no store that Forebay can read: see [read sinks](http-read.md#read-sinks).",
            "Route the type to a sink that can be read, or query the store itself.",
            No,
        ),
        Code::StoreUnavailable => (
            "The store does not answer. The server's log has its message.",
            "Send the request again later. The operator checks the store.",
            Later,
        ),
        Code::UnknownObject => (
            "No sink that serves its objects has one of this name.",
            "Check the name, and that the sink [serves its objects](../guides/stores/objects.md#reading-objects-back).",
            No,
        ),
        Code::Range => (
            "The object does not have the requested bytes. `Content-Range` has its length.",
            "Request a range within the object.",
            No,
        ),
        Code::NoWorker => (
            "No service listens to the subject of [the bridge](../guides/bridge.md). The request was not carried out.",
            "Retry, and start the service: `detail` names the subject.",
            Later,
        ),
        Code::BusUnavailable => (
            "The gateway has no connection to the servers of the bus. Nothing was sent.",
            "Retry. Check the servers of `[bus]`, and the log of the gateway.",
            Later,
        ),
        Code::BridgeBusy => (
            "As many requests of the bridge wait for answers as `max_waiting` allows. Nothing was sent.",
            "Retry. Start more services, or raise `max_waiting`.",
            Later,
        ),
        Code::BridgeTimeout => (
            "The service gave no answer within the `timeout` of the bridge. It may still carry the request out.",
            "Retry what may be carried out twice. Check the service, or raise `timeout`.",
            No,
        ),
        Code::BusLost => (
            "The connection to the bus was lost after the request was sent. The service may have carried it out.",
            "Retry what may be carried out twice.",
            No,
        ),
        Code::BadReply => (
            "The answer of the service has a status or headers that can't be read. `detail` says which.",
            "Correct the service: see [answers](../guides/bridge.md).",
            No,
        ),
        Code::BusRefused => (
            "The servers of the bus don't allow the gateway to publish to the subject of the bridge.",
            "Allow the account of `[bus]` to publish to the subject.",
            No,
        ),
        Code::ReplyDropped => (
            "The service has answered. The answers that clients have not received yet leave no memory for this one. See [memory](../guides/bridge.md#memory).",
            "Retry what may be carried out twice. Let the service send smaller answers, or give Forebay more memory.",
            No,
        ),
    }
}

#[test]
fn errors_page_lists_every_code() {
    let rows = ErrorCode::ALL.into_iter().map(|code| {
        let (name, status) = (code.as_str(), code.status().as_u16());
        format!("| {status} | [`{name}`](#{name}) | {} | {} |\n", code.title(), texts(code).2.text())
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
        let (cause, remedy, retry) = texts(code);
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
        assert_eq!(code.is_transient(), texts(code).2 == Retry::Later, "{code:?}");
    }
}
