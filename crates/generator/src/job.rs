//! The ends of jobs: 114 bytes each, like the payloads of many load tests.

use super::{Random, Writer};

const IDS: u64 = 1 << 48;
/// Odd, so the ids of 2^48 consecutive jobs differ.
const ID_STEP: u64 = 0x5851_f42d_4c95;

pub(super) fn write(out: &mut Writer<'_>, random: &mut Random, seed: u64, number: u64) {
    let id = number.wrapping_mul(ID_STEP).wrapping_add(seed);
    out.text("{\"data\":\"{'job_id':'").hex48(id);
    out.text("','container_id':'").hex48(random.below(IDS));
    out.text("','status':'Success: process exited with code 0.'}\"}");
}
