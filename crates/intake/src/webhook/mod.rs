//! Webhooks of providers that sign their requests: GitHub, Stripe, Slack and others.
//!
//! Only what is signed counts. The signature is verified over the bytes that were received, before anything is parsed. The id of an
//! event is a signed member or header, or the digest of the signed text. A replayed request is a duplicate then, even if its other headers
//! are changed.
//!
//! | file | content |
//! |---|---|
//! | `provider.rs` | the table of providers |
//! | `scheme.rs` | a form of signatures: a row of the table |
//! | `settings.rs` | the settings, with the form that they can describe |
//! | `verifier.rs`, `algorithm.rs` | verifies a request |
//! | `form.rs`, `port.rs` | forms as JSON, and forms of URLs |
//! | `call.rs` | one request, and its response |

mod algorithm;
mod call;
mod form;
mod port;
mod provider;
mod scheme;
mod settings;
#[cfg(test)]
mod tests;
mod verifier;

use std::sync::Arc;

use crate::{Intake, IntakeHead, IntakeKind, IntakePath, IntakeRoute, Problem, Reply};

use provider::Handshake;
use verifier::Verifier;

/// The kind of intake.
pub static KIND: IntakeKind = IntakeKind {
    name: "webhook",
    path: IntakePath::Named("/hooks"),
    sender: "{URL}",
    settings: settings::SETTINGS,
    secrets: &["secrets", "verify_token"],
    may_lack_ids: true,
    read: |reader, section| Some(Arc::new(settings::read(reader, section)?)),
};

/// The intake.
#[derive(Debug)]
pub struct WebhookIntake {
    /// Without one, tokens decide which requests are accepted.
    verifier: Option<Arc<Verifier>>,
    handshake: Handshake,
    /// The token of [`Handshake::Query`].
    verify_token: Option<VerifyToken>,
}

/// A token that is never displayed.
struct VerifyToken(String);

impl std::fmt::Debug for VerifyToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

impl Intake for WebhookIntake {
    fn route(&self, head: &IntakeHead<'_>) -> IntakeRoute {
        let has_query = self.handshake == Handshake::Query;
        let methods = if has_query { "GET, POST, OPTIONS" } else { "POST, OPTIONS" };
        match (head.path, head.method) {
            ("" | "/", "POST") => {
                IntakeRoute::Ingest(Box::new(call::Delivery::new(self.verifier.as_ref(), self.handshake, head)))
            }
            ("" | "/", "GET") if has_query => IntakeRoute::Free(self.handshake(head)),
            ("" | "/", "OPTIONS") => IntakeRoute::Free(Reply::empty(204).with_header("allow", methods)),
            ("" | "/", _) => IntakeRoute::Methods(methods),
            _ => IntakeRoute::Unknown,
        }
    }

    fn refusal(&self, problem: &Problem) -> Reply {
        call::refusal(problem)
    }

    fn is_signed(&self) -> bool {
        self.verifier.is_some()
    }
}

impl WebhookIntake {
    /// The response to `hub.mode=subscribe`.
    fn handshake(&self, head: &IntakeHead<'_>) -> Reply {
        let [mode, token, challenge] =
            ["hub.mode", "hub.verify_token", "hub.challenge"].map(|name| head.parameter(name));
        let is_valid = self
            .verify_token
            .as_ref()
            .zip(token)
            .is_some_and(|(VerifyToken(known), sent)| algorithm::is_equal(known.as_bytes(), sent.as_bytes()));
        match challenge {
            Some(challenge) if is_valid && mode.as_deref() == Some("subscribe") => {
                Reply::text(200, challenge).with_header("x-content-type-options", "nosniff")
            }
            _ => call::error(
                403,
                "forbidden",
                "the token isn't the intake's `verify_token`: enter the same one at the sender",
            ),
        }
    }
}
