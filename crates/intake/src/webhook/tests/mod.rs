//! Webhooks of each provider. Signatures are published ones, or were computed by another program.

mod custom;
mod fuzz;
mod handshakes;
mod providers;
mod replays;
mod settings;

use std::sync::Arc;

use crate::testing::{NOW, Taken, lines, post};
use crate::{Intake, IntakeHead, IntakeRoute, Reply};

use super::KIND;

/// An intake with these settings.
fn configured(settings: &str) -> Result<Arc<dyn Intake>, String> {
    crate::testing::configured(&KIND, settings)
}

fn intake(settings: &str) -> Arc<dyn Intake> {
    configured(settings).unwrap()
}

/// A request that is received at a time in seconds.
struct Request<'r> {
    target: &'r str,
    headers: &'r [(&'r str, &'r str)],
    body: &'r [u8],
    at: i64,
}

impl<'r> Request<'r> {
    fn new(headers: &'r [(&'r str, &'r str)], body: &'r str) -> Self {
        Self { target: "", headers, body: body.as_bytes(), at: NOW / 1_000_000 }
    }

    /// The route of the request.
    fn route(&self, intake: &Arc<dyn Intake>, method: &str) -> IntakeRoute {
        let lines = lines(self.headers);
        let query = self.target.split_once('?').map_or("", |(_, query)| query);
        let received_at = self.at * 1_000_000;
        let (target, lines) = (self.target, lines.as_bytes());
        intake.route(&IntakeHead { method, path: "", query, target, lines, has_tls: true, received_at })
    }

    /// The records and the response if those at `rejected` are rejected.
    fn post_to(&self, intake: &Arc<dyn Intake>, rejected: &[usize]) -> Result<(Vec<Taken>, Reply), Reply> {
        let IntakeRoute::Ingest(mut call) = self.route(intake, "POST") else { unreachable!("not posted") };
        post(&mut *call, self.body, rejected)
    }

    /// The id and the payload of its only record.
    fn stored_by(&self, intake: &Arc<dyn Intake>) -> Result<(String, String), u16> {
        let (mut taken, reply) = self.post_to(intake, &[]).map_err(|reply| reply.status)?;
        assert_eq!((taken.len(), &reply), (1, &Reply::empty(204)));
        let Taken { type_name, id, payload } = taken.remove(0);
        assert_eq!(type_name, "");
        Ok((String::from_utf8(id.unwrap()).unwrap(), payload.unwrap()))
    }
}

/// The SHA-256 of a text.
fn digest(text: &str) -> String {
    text::hex::encode(ring::digest::digest(&ring::digest::SHA256, text.as_bytes()).as_ref())
}
