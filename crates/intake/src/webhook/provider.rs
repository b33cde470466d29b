//! The table of providers: how each signs its requests.

use std::borrow::Cow;

use super::algorithm::{Algorithm, Encoding};
use super::scheme::{Id, Part, Scheme, Time};

/// A provider.
#[derive(Debug)]
pub(super) struct Provider {
    /// The word of the setting.
    pub(super) name: &'static str,
    /// Its forms of signatures: the header of a request decides. None if settings describe it.
    pub(super) schemes: fn() -> Vec<Scheme>,
    /// What secrets are.
    pub(super) secrets: SecretForm,
    /// What it asks when an intake is entered there.
    pub(super) handshake: Handshake,
}

/// What secrets are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SecretForm {
    /// The bytes of the text.
    Text,
    /// Base64 after `whsec_`.
    Standard,
}

/// What a provider asks when an intake is entered there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Handshake {
    /// Nothing.
    None,
    /// A signed request with a challenge, which the response returns.
    Signed,
    /// A GET with a challenge and a token.
    Query,
}

const fn text(text: &'static str) -> Part {
    Part::Text(Cow::Borrowed(text))
}

const BODY: Cow<'static, [Part]> = Cow::Borrowed(&[Part::Body]);
const STRIPE: Cow<'static, [Part]> = Cow::Borrowed(&[Part::Time, text("."), Part::Body]);
const SLACK: Cow<'static, [Part]> = Cow::Borrowed(&[text("v0:"), Part::Time, text(":"), Part::Body]);
const STANDARD: Cow<'static, [Part]> = Cow::Borrowed(&[Part::Id, text("."), Part::Time, text("."), Part::Body]);
const TWILIO: Cow<'static, [Part]> = Cow::Borrowed(&[Part::Url, Part::Form]);

/// A signature of the body, in hexadecimal digits.
const PLAIN: Scheme = Scheme {
    header: Cow::Borrowed(""),
    algorithms: &[Algorithm::Sha256],
    encoding: Encoding::Hex,
    separators: &[],
    prefix: Cow::Borrowed(""),
    signed: BODY,
    time: Time::None,
    id: Id::Signed,
};

fn standard(signature: &'static str, time: &'static str, id: &'static str) -> Scheme {
    Scheme {
        header: Cow::Borrowed(signature),
        encoding: Encoding::Base64,
        separators: &[' '],
        prefix: Cow::Borrowed("v1,"),
        signed: STANDARD,
        time: Time::Header(Cow::Borrowed(time)),
        id: Id::Header(Cow::Borrowed(id)),
        ..PLAIN
    }
}

fn hub() -> Scheme {
    Scheme { header: Cow::Borrowed("x-hub-signature-256"), prefix: Cow::Borrowed("sha256="), ..PLAIN }
}

const fn provider(name: &'static str, schemes: fn() -> Vec<Scheme>) -> Provider {
    Provider { name, schemes, secrets: SecretForm::Text, handshake: Handshake::None }
}

/// The provider whose scheme settings describe.
pub(super) const CUSTOM: &str = "hmac";

/// All providers.
pub(super) static PROVIDERS: &[Provider] = &[
    provider("github", || vec![hub()]),
    provider("gitlab", || {
        vec![Scheme { header: Cow::Borrowed("x-gitlab-token"), algorithms: &[Algorithm::Token], ..PLAIN }]
    }),
    provider("stripe", || {
        vec![Scheme {
            header: Cow::Borrowed("stripe-signature"),
            separators: &[','],
            prefix: Cow::Borrowed("v1="),
            signed: STRIPE,
            time: Time::Element(Cow::Borrowed("t=")),
            id: Id::Member(Cow::Borrowed("/id")),
            ..PLAIN
        }]
    }),
    Provider {
        handshake: Handshake::Signed,
        ..provider("slack", || {
            vec![Scheme {
                header: Cow::Borrowed("x-slack-signature"),
                prefix: Cow::Borrowed("v0="),
                signed: SLACK,
                time: Time::Header(Cow::Borrowed("x-slack-request-timestamp")),
                id: Id::Member(Cow::Borrowed("/event_id")),
                ..PLAIN
            }]
        })
    },
    provider("shopify", || {
        vec![Scheme { header: Cow::Borrowed("x-shopify-hmac-sha256"), encoding: Encoding::Base64, ..PLAIN }]
    }),
    provider("twilio", || {
        vec![Scheme {
            header: Cow::Borrowed("x-twilio-signature"),
            // SHA-256 with a shared key instead of the account's token.
            algorithms: &[Algorithm::Sha1, Algorithm::Sha256],
            encoding: Encoding::Base64,
            signed: TWILIO,
            ..PLAIN
        }]
    }),
    Provider { handshake: Handshake::Query, ..provider("meta", || vec![hub()]) },
    Provider {
        secrets: SecretForm::Standard,
        ..provider("standard", || {
            vec![
                standard("webhook-signature", "webhook-timestamp", "webhook-id"),
                standard("svix-signature", "svix-timestamp", "svix-id"),
            ]
        })
    },
    provider(CUSTOM, Vec::new),
];

/// The names of all providers.
pub(super) const NAMES: &[&str] =
    &["github", "gitlab", "stripe", "slack", "shopify", "twilio", "meta", "standard", CUSTOM];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_table() {
        assert!(PROVIDERS.iter().map(|provider| &provider.name).eq(NAMES));
    }
}
