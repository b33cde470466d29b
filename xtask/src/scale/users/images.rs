//! The images that users request: each is part of an event, and Forebay stores it as a separate object.

use std::net::SocketAddr;

use anyhow::{Result, ensure};
use random::Random;
use testkit::swift::SwiftServer;

use crate::http::{self, Connection};
use crate::server::READY_LIMIT;
use crate::wait::until;

pub(super) const COUNT: u32 = 100;
/// The usual age at which Forebay asks whether an object has changed.
pub(super) const REVALIDATE_SECONDS: u64 = 60;
pub(super) const CONTAINER: &str = "images";
/// An image of 200,000 bytes in base64, without its last digit.
const DIGITS: usize = 266_666;
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Posts the images.
pub(super) fn post(intake: SocketAddr) -> Result<()> {
    let (mut connection, mut random) = (Connection::open(intake)?, Random::new(1));
    for number in 0..COUNT {
        let mut image: String = (0..DIGITS).map(|_| char::from(ALPHABET[random.index(ALPHABET.len())])).collect();
        // The rest of the last byte is zeros.
        image.push('A');
        let event = format!("{{\"image\": \"{image}\", \"type\": \"image/png\"}}");
        let answer = connection.send(&http::post("/ingest/event/shot", &[], event.as_bytes()))?;
        ensure!(answer.status == 200, "image {number} was answered {}", answer.status);
    }
    Ok(())
}

/// The names of the stored images, one a line.
pub(super) fn names(swift: &SwiftServer) -> Result<String> {
    let mut names = Vec::new();
    until("all images are listed", READY_LIMIT, || {
        swift.update_listings();
        names = swift.client().list(CONTAINER);
        names.retain(|name| name.starts_with("_parts/"));
        Ok(names.len() == COUNT as usize)
    })?;
    Ok(names.join("\n"))
}
