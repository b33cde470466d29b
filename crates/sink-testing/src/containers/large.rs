//! Objects that are too large for one request, so the store is asked first.

use limits::OBJECT_KEPT_BYTES_MAX;
use objects::{Codec, Manifest, NoParts, ObjectFormat, Parts, Portion};
use sink::Batch;
use testkit::swift::SwiftServer;

use super::{ContainerFixture, MakeSink, OF_LINES, rules};
use crate::events::{batch, lane};

/// Events of an object.
pub struct Events {
    batch: Batch,
    is_read: bool,
}

impl Events {
    /// The events of this batch.
    #[must_use]
    pub fn of(batch: &Batch) -> Self {
        Self { batch: batch.clone(), is_read: false }
    }
}

impl Parts for Events {
    fn next(&mut self) -> Result<Option<Batch>, NoParts> {
        let is_first = !std::mem::replace(&mut self.is_read, true);
        Ok(is_first.then(|| self.batch.clone()))
    }

    fn again(&self) -> Box<dyn Parts> {
        Box::new(Self::of(&self.batch))
    }
}

/// An object of more than 8 MiB of lines.
#[must_use]
pub fn large() -> Batch {
    let payload = format!("\"{}\"", "x".repeat(100_000));
    batch(0, 1, &vec![&*payload; 100])
}

/// The manifest of an object with these events.
#[must_use]
pub fn manifest_of(batch: &Batch, rules: &ObjectFormat) -> Manifest {
    let portion = Portion::received("access", 1_760_000_000_000_001);
    Manifest::new(lane(0), batch.first()..=batch.last(), portion, rules, None, None)
}

/// Objects whose bytes are kept while they are sent.
#[must_use]
pub fn large_rules(codec: Codec) -> ObjectFormat {
    ObjectFormat { bytes_max: u64::from(OBJECT_KEPT_BYTES_MAX), ..rules(codec, "") }
}

/// An object that is there already.
///
/// # Panics
/// If it is stored a second time, or changed.
pub async fn found_again(make_sink: MakeSink) {
    let Some(server) = SwiftServer::shared() else { return };
    for codec in OF_LINES {
        let mut fixture = ContainerFixture::with(server, make_sink, codec);
        fixture.rules = large_rules(codec);
        let store = fixture.store();
        let batch = large();
        let manifest = manifest_of(&batch, &fixture.rules);
        store.put(&manifest, Events::of(&batch)).await.map(drop).unwrap();
        let client = server.client();
        let description = client.get(&fixture.container, &manifest.description).unwrap();
        store.put(&manifest, Events::of(&batch)).await.map(drop).unwrap();
        assert_eq!(client.get(&fixture.container, &manifest.description).unwrap(), description);
        assert_eq!(fixture.count(), 100, "{codec}");
    }
}
