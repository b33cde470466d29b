//! What to do about each code: for the answers of the admin port, and for `docs/reference/errors.md`.

use super::ErrorCode;

impl ErrorCode {
    /// What the sender or the operator does, in one to three sentences of Markdown, with links relative to `docs/reference/`.
    #[expect(clippy::too_many_lines, reason = "a table")]
    pub(super) const fn remedy(self) -> &'static str {
        match self {
            Self::Json => {
                "Correct the text at `offset`, or set the sender's format to JSON: see [senders](../guides/senders.md)."
            }
            Self::Utf8 => "Send UTF-8. If the body is compressed, set `Content-Encoding`.",
            Self::Depth => "Send a flatter payload, or the inner part as a string.",
            Self::Surrogate => {
                "Correct the program that writes the text: it cuts strings in the middle of a character."
            }
            Self::TooLarge => {
                "Split a batch. Keep large content in an object store, and send its address in the event."
            }
            Self::TooManyRecords => "Send smaller batches.",
            Self::Record => "Correct the sender, or its configuration: the guide of the protocol shows it.",
            Self::UnknownType => "Correct the type in the path or header, or add `[types.NAME]` to the configuration.",
            Self::TooManyTypes => "Use a fixed set of types, or add `[types.NAME]` for this one.",
            Self::Schema => {
                "Correct the payload at `pointer`, or the schema. `forebay try` shows the errors of one payload."
            }
            Self::Transform => "Correct the payload, or set the step's `on_error`. `forebay try` shows each step.",
            Self::Unstorable => "Remove it, or set `unstorable = \"repair\"` for the type.",
            Self::Time => "Send a valid time, or change `time_unreadable`: Forebay then uses the receipt time.",
            Self::Key => "Send a key of 1 to 256 bytes.",
            Self::IdReused => "Use a new key for each event or batch. Repeat a request with the same bytes.",
            Self::AckMemory => "Remove the header, or set `ack_memory = true` for the type.",
            Self::DeadLetter => {
                "Do not resend the event. The operator corrects the cause and [replays](../guides/dead-letters.md#replaying) it."
            }
            Self::ContentEncoding => "Compress the body once, with gzip, deflate or zstd, or not at all.",
            Self::Encoding => "Compress the body again. For zstd, use no `--ultra` and no `--long`.",
            Self::BodyIncomplete => "Send the request again, with the same key. Check the timeouts of proxies.",
            Self::Timeout => "Send the request again, with the same key, in smaller parts if the network is slow.",
            Self::BadRequest => "Correct the request as `detail` says.",
            Self::Expectation => "Remove the header.",
            Self::TargetTooLong => "Send data in the body, not in the query.",
            Self::HeaderTooLarge => "Remove headers. Often cookies are the reason.",
            Self::Unauthorized => {
                "Send `Authorization: Bearer TOKEN`. The operator creates tokens: see [authentication](../guides/authenticate.md)."
            }
            Self::Forbidden => "Use a token with this scope.",
            Self::Signature => {
                "Compare the secret in `secrets` with the provider's. Set `url` behind a proxy, if the provider signs the URL. Check the clock."
            }
            Self::CrossOrigin => {
                "List the page's origin in `cors_origins`, or the name in `Host` in `allowed_hosts`: see [web pages](../guides/browsers.md#rules)."
            }
            Self::NotFound => "Correct the path: `detail` lists the paths.",
            Self::MethodNotAllowed => "Use a method that the header `Allow` lists.",
            Self::Overload => {
                "Send the request again later, with the same key. If it persists, send fewer requests at a time, or check the disk."
            }
            Self::BacklogFull => {
                "Send the request again later, with the same key. The operator checks the sink with `forebay status`."
            }
            Self::DiskFull => {
                "Send the request again later, with the same key. The operator frees space, or removes the reason of the backlog."
            }
            Self::JournalFailed => {
                "Send the request again with the same key, so the event is stored once. The operator checks the disk."
            }
            Self::NotReady => "Send the request again later, with the same key, or to another gateway.",
            Self::Cursor => "Repeat the query of the cursor. Only `limit` may change. Or begin without a cursor.",
            Self::UnknownEvent => {
                "Check id and type. With `position`, a new event is found before it is stored: see [one event](http-read.md#one-event)."
            }
            Self::NotReadable => "Route the type to a sink that can be read, or query the store itself.",
            Self::StoreUnavailable => "Send the request again later. The operator checks the store.",
            Self::UnknownObject => {
                "Check the name, and that the sink [serves its objects](../guides/stores/objects.md#reading-objects-back)."
            }
            Self::Range => "Request a range within the object.",
            Self::NoWorker => "Retry, and start the service: `detail` names the subject.",
            Self::BusUnavailable => "Retry. Check the servers of `[bus]`, and the log of the gateway.",
            Self::BridgeBusy => "Retry. Start more services, or raise `max_waiting`.",
            Self::BridgeTimeout => {
                "Retry only if the request may be carried out twice. Check the service, or raise `timeout`."
            }
            Self::BusLost => "Retry only if the request may be carried out twice.",
            Self::BadReply => "Correct the service: see [answers](../guides/bridge.md).",
            Self::BusRefused => "Allow the account of `[bus]` to publish to the subject.",
            Self::ReplyDropped => {
                "Retry only if the request may be carried out twice. Let the service send smaller answers, or give Forebay more memory."
            }
        }
    }

    /// The remedy as plain text, without links.
    #[must_use]
    pub fn help(self) -> String {
        let mut text = self.remedy().to_owned();
        while let Some((before, (label, after))) = link(&text) {
            text = [before, label, after].concat();
        }
        text
    }
}

/// The first link of a Markdown text: what is before it, its label, and what is after it.
fn link(text: &str) -> Option<(&str, (&str, &str))> {
    let (label, after) = text.split_once("](")?;
    let (before, label) = label.rsplit_once('[')?;
    let (_, after) = after.split_once(')')?;
    Some((before, (label, after)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_has_labels_instead_of_links() {
        let expected = "Do not resend the event. The operator corrects the cause and replays it.";
        assert_eq!(ErrorCode::DeadLetter.help(), expected);
        for code in ErrorCode::ALL {
            assert!(!code.help().contains("]("), "{code:?}");
        }
    }
}
