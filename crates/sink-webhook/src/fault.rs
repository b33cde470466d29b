//! What is at fault for each status of a receiver: the message, the receiver, or either.

use std::ops::RangeInclusive;

use sink::Fault;

/// Statuses and what is at fault. For statuses that aren't listed, the other responses decide when all have arrived:
/// the message is at fault if the receiver accepts others, or else the receiver.
const FAULTS: [(RangeInclusive<u16>, Fault); 9] = [
    (400..=400, Fault::Unclear),
    (413..=415, Fault::Unclear),
    (422..=422, Fault::Unclear),
    (431..=431, Fault::Unclear),
    // One message alone may make its receiver fail: it must not delay the others forever.
    (408..=409, Fault::Passing),
    (425..=425, Fault::Passing),
    (500..=500, Fault::Passing),
    (429..=429, Fault::Store),
    (502..=504, Fault::Store),
];

/// What is at fault, if the status alone shows it.
pub(super) fn fault(status: u16) -> Option<Fault> {
    FAULTS.iter().find(|(statuses, _)| statuses.contains(&status)).map(|(_, fault)| *fault)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_has_its_fault() {
        for (statuses, expected) in FAULTS {
            assert!(statuses.clone().all(|status| fault(status) == Some(expected)), "{statuses:?}");
        }
        let listed: usize = FAULTS.iter().map(|(statuses, _)| statuses.clone().count()).sum();
        assert_eq!((300..600).filter(|status| fault(*status).is_some()).count(), listed, "none is listed twice");
        assert!([301, 401, 403, 404, 410, 501, 505].into_iter().all(|status| fault(status).is_none()));
    }
}
