//! What responses have in common: the media type, the header by which clients recognise the server, and `HEAD`.

use crate::{IntakeHead, IntakeRoute, JSON, Reply};

/// Clients of version 8 and newer ask for JSON of their version.
const VERSIONED: &[(&str, &str)] = &[
    ("compatible-with=9", "application/vnd.elasticsearch+json;compatible-with=9"),
    ("compatible-with=8", "application/vnd.elasticsearch+json;compatible-with=8"),
    ("compatible-with=7", "application/vnd.elasticsearch+json;compatible-with=7"),
];

/// The media type of JSON for a request: clients reject another than they accept.
pub(super) fn of(head: &IntakeHead<'_>) -> &'static str {
    let accepted = head.header("accept").unwrap_or_default().to_ascii_lowercase().replace(' ', "");
    if !accepted.contains("application/vnd.elasticsearch+json") {
        return JSON;
    }
    VERSIONED.iter().find(|(parameter, _)| accepted.contains(parameter)).map_or(JSON, |(_, media)| media)
}

/// A response in JSON.
pub(super) fn json(status: u16, media: &'static str, body: impl Into<Vec<u8>>) -> Reply {
    product(Reply { status, content_type: Some(media), body: body.into(), ..Reply::default() })
}

/// The response with the header that clients check.
pub(super) fn product(reply: Reply) -> Reply {
    reply.with_header("X-Elastic-Product", "Elasticsearch")
}

/// A response to `GET`, and its head to `HEAD`.
pub(super) fn read_only(head: &IntakeHead<'_>, reply: impl FnOnce() -> Reply) -> IntakeRoute {
    match head.method {
        "GET" => IntakeRoute::Fixed(reply()),
        "HEAD" => IntakeRoute::Fixed(product(Reply::empty(200))),
        _ => IntakeRoute::Methods("GET, HEAD"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{head, lines};

    #[test]
    fn media_type_follows_accept() {
        for (accepted, expected) in [
            ("*/*", JSON),
            ("application/json", JSON),
            ("application/vnd.elasticsearch+json", JSON),
            ("application/vnd.elasticsearch+json; compatible-with=9", VERSIONED[0].1),
            ("application/vnd.elasticsearch+json; compatible-with=8,text/plain", VERSIONED[1].1),
            ("Application/vnd.Elasticsearch+json;compatible-with=7", VERSIONED[2].1),
            ("application/vnd.elasticsearch+json;compatible-with=10", JSON),
        ] {
            let lines = lines(&[("accept", accepted)]);
            assert_eq!(of(&head("GET", "/", &lines)), expected, "{accepted}");
        }
        assert_eq!(of(&head("GET", "/", &lines(&[]))), JSON);
    }
}
