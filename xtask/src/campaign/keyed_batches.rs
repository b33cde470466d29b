//! Batches with keys whose records are named after client, batch and place, and whether each is stored once.

use std::collections::HashSet;
use std::io::BufRead;

use anyhow::{Context, Result, bail};

use crate::http;

/// A batch: its client, its number among those, and its records.
pub(super) type SentBatch = (u32, u32, u32);

/// The request of a batch. Each record has a filler of so many bytes.
pub(super) fn request((client, number, records): SentBatch, filler_bytes: usize) -> Vec<u8> {
    let filler = "x".repeat(filler_bytes);
    let line = |record| format!("{{\"n\":\"{client}-{number}-{record}\",\"filler\":\"{filler}\"}}\n");
    let body: String = (0..records).map(line).collect();
    let key = format!("Idempotency-Key: {client}-{number}");
    http::post("/ingest/batch", &["Content-Type: application/x-ndjson", &key], body.as_bytes())
}

/// The number of records in these batches.
pub(super) fn events(batches: &[SentBatch]) -> usize {
    batches.iter().map(|(.., records)| *records as usize).sum()
}

/// Compares payloads, a line each, with the acknowledged records: each of those is stored once, and no other twice.
pub(super) fn judge(mut payloads: impl BufRead, acknowledged: &[SentBatch]) -> Result<()> {
    let (mut stored, mut line) = (HashSet::new(), Vec::new());
    while payloads.read_until(b'\n', &mut line).context("reading what is stored")? > 0 {
        let text = String::from_utf8_lossy(&line);
        let name = text.split('"').nth(3).with_context(|| format!("stored but never sent: {text}"))?.to_owned();
        if stored.contains(&name) {
            bail!("{name} is stored twice");
        }
        stored.insert(name);
        line.clear();
    }
    let records = |(client, number, records): &SentBatch| {
        let (client, number) = (*client, *number);
        (0..*records).map(move |record| format!("{client}-{number}-{record}"))
    };
    let lost: Vec<String> = acknowledged.iter().flat_map(records).filter(|name| !stored.contains(name)).collect();
    match lost.first() {
        Some(name) => bail!("{} records were acknowledged and aren't stored, {name} among them", lost.len()),
        None if acknowledged.is_empty() => bail!("nothing was acknowledged: nothing was checked"),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_record_must_be_stored_once() {
        let acknowledged = [(0, 0, 2), (1, 0, 1)];
        let line = |name: &str| format!("{{\"n\":\"{name}\",\"filler\":\"x\"}}\n");
        let judge = |names: &[&str]| {
            let text: String = names.iter().map(|name| line(name)).collect();
            judge(text.as_bytes(), &acknowledged).map_err(|error| error.to_string())
        };
        assert_eq!(judge(&["0-0-1", "1-0-0", "0-0-0"]), Ok(()));
        assert_eq!(judge(&["0-0-1", "0-0-1"]), Err("0-0-1 is stored twice".to_owned()));
        let lost = "1 records were acknowledged and aren't stored, 1-0-0 among them";
        assert_eq!(judge(&["0-0-1", "0-0-0"]), Err(lost.to_owned()));
    }
}
