//! MD5 (RFC 1321) of two texts side by side. Each of its steps needs the one before, so that one text leaves half of a processor's core idle:
//! two at once take little more than half of the time. It is what Swift knows bytes by, and nothing is kept secret by it.

/// Bytes of a block.
pub(super) const BLOCK_BYTES: usize = 64;

/// A block.
pub(super) type Block = [u8; BLOCK_BYTES];

type State = [u32; 4];

const BEGIN: State = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];

/// The whole part of 2³² · |sin(number)|, with numbers from 1.
#[rustfmt::skip]
const SINES: [u32; 64] = [
    0xd76a_a478, 0xe8c7_b756, 0x2420_70db, 0xc1bd_ceee, 0xf57c_0faf, 0x4787_c62a, 0xa830_4613, 0xfd46_9501,
    0x6980_98d8, 0x8b44_f7af, 0xffff_5bb1, 0x895c_d7be, 0x6b90_1122, 0xfd98_7193, 0xa679_438e, 0x49b4_0821,
    0xf61e_2562, 0xc040_b340, 0x265e_5a51, 0xe9b6_c7aa, 0xd62f_105d, 0x0244_1453, 0xd8a1_e681, 0xe7d3_fbc8,
    0x21e1_cde6, 0xc337_07d6, 0xf4d5_0d87, 0x455a_14ed, 0xa9e3_e905, 0xfcef_a3f8, 0x676f_02d9, 0x8d2a_4c8a,
    0xfffa_3942, 0x8771_f681, 0x6d9d_6122, 0xfde5_380c, 0xa4be_ea44, 0x4bde_cfa9, 0xf6bb_4b60, 0xbebf_bc70,
    0x289b_7ec6, 0xeaa1_27fa, 0xd4ef_3085, 0x0488_1d05, 0xd9d4_d039, 0xe6db_99e5, 0x1fa2_7cf8, 0xc4ac_5665,
    0xf429_2244, 0x432a_ff97, 0xab94_23a7, 0xfc93_a039, 0x655b_59c3, 0x8f0c_cc92, 0xffef_f47d, 0x8584_5dd1,
    0x6fa8_7e4f, 0xfe2c_e6e0, 0xa301_4314, 0x4e08_11a1, 0xf753_7e82, 0xbd3a_f235, 0x2ad7_d2bb, 0xeb86_d391,
];

/// Which words of a block four steps take, the first of which has this number.
type Steps = (usize, [usize; 4]);

/// The state of a text of which whole blocks were taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Md5State(State);

impl Md5State {
    pub(super) const fn begin() -> Self {
        Self(BEGIN)
    }

    /// Takes whole blocks of this text.
    pub(super) fn take(&mut self, blocks: &[Block]) {
        for block in blocks {
            [self.0] = taken([self.0], [block]);
        }
    }

    /// Takes as many blocks of both texts as the shorter slice has.
    pub(super) fn take_both(states: [&mut Self; 2], [of_one, of_other]: [&[Block]; 2]) {
        let [one, other] = states;
        let mut both = [one.0, other.0];
        for (of_one, of_other) in of_one.iter().zip(of_other) {
            both = taken(both, [of_one, of_other]);
        }
        [one.0, other.0] = both;
    }

    /// The digest of a text of so many bytes, the last of which are `rest`: less than a block.
    pub(super) fn finish(mut self, rest: &[u8], bytes: u64) -> [u8; 16] {
        let mut last = [0; 2 * BLOCK_BYTES];
        last[..rest.len()].copy_from_slice(rest);
        last[rest.len()] = 0x80;
        let end = if rest.len() + 1 + 8 <= BLOCK_BYTES { BLOCK_BYTES } else { 2 * BLOCK_BYTES };
        last[end - 8..end].copy_from_slice(&bytes.wrapping_mul(8).to_le_bytes());
        self.take(last[..end].as_chunks().0);
        let mut digest = [0; 16];
        for (four, word) in digest.chunks_exact_mut(4).zip(self.0) {
            four.copy_from_slice(&word.to_le_bytes());
        }
        digest
    }
}

/// The states behind a block of each text: four steps of one, and then four of the other, which a processor does at the same time.
#[inline(always)]
fn taken<const TEXTS: usize>(states: [State; TEXTS], blocks: [&Block; TEXTS]) -> [State; TEXTS] {
    let f = |x: u32, y: u32, z: u32| z ^ (x & (y ^ z));
    let g = |x: u32, y: u32, z: u32| (y & !z).wrapping_add(x & z);
    let h = |x: u32, y: u32, z: u32| x ^ y ^ z;
    let i = |x: u32, y: u32, z: u32| y ^ (x | !z);
    let (by_f, by_g, by_h, by_i) = ([7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]);
    let s = states;
    let s = four(f, s, blocks, (0, [0, 1, 2, 3]), by_f);
    let s = four(f, s, blocks, (4, [4, 5, 6, 7]), by_f);
    let s = four(f, s, blocks, (8, [8, 9, 10, 11]), by_f);
    let s = four(f, s, blocks, (12, [12, 13, 14, 15]), by_f);
    let s = four(g, s, blocks, (16, [1, 6, 11, 0]), by_g);
    let s = four(g, s, blocks, (20, [5, 10, 15, 4]), by_g);
    let s = four(g, s, blocks, (24, [9, 14, 3, 8]), by_g);
    let s = four(g, s, blocks, (28, [13, 2, 7, 12]), by_g);
    let s = four(h, s, blocks, (32, [5, 8, 11, 14]), by_h);
    let s = four(h, s, blocks, (36, [1, 4, 7, 10]), by_h);
    let s = four(h, s, blocks, (40, [13, 0, 3, 6]), by_h);
    let s = four(h, s, blocks, (44, [9, 12, 15, 2]), by_h);
    let s = four(i, s, blocks, (48, [0, 7, 14, 5]), by_i);
    let s = four(i, s, blocks, (52, [12, 3, 10, 1]), by_i);
    let s = four(i, s, blocks, (56, [8, 15, 6, 13]), by_i);
    let s = four(i, s, blocks, (60, [4, 11, 2, 9]), by_i);
    std::array::from_fn(|text| std::array::from_fn(|at| s[text][at].wrapping_add(states[text][at])))
}

#[inline(always)]
fn four<const TEXTS: usize>(
    mix: impl Fn(u32, u32, u32) -> u32,
    states: [State; TEXTS],
    blocks: [&Block; TEXTS],
    (number, at): Steps,
    by: [u32; 4],
) -> [State; TEXTS] {
    let step = |[w, x, y, z]: State, block: &Block, of: usize| {
        let sum = w.wrapping_add(word(block, at[of])).wrapping_add(SINES[number + of]);
        sum.wrapping_add(mix(x, y, z)).rotate_left(by[of]).wrapping_add(x)
    };
    let mut stepped = states;
    for (state, block) in stepped.iter_mut().zip(blocks) {
        let [a, b, c, d] = *state;
        let a = step([a, b, c, d], block, 0);
        let d = step([d, a, b, c], block, 1);
        let c = step([c, d, a, b], block, 2);
        let b = step([b, c, d, a], block, 3);
        *state = [a, b, c, d];
    }
    stepped
}

#[inline(always)]
fn word(block: &Block, at: usize) -> u32 {
    u32::from_le_bytes([block[4 * at], block[4 * at + 1], block[4 * at + 2], block[4 * at + 3]])
}

#[cfg(test)]
mod tests {
    use md5::{Digest, Md5};

    use super::*;

    fn text(bytes: usize) -> Vec<u8> {
        (0..bytes).map(|at| (at.wrapping_mul(167) >> 3).to_le_bytes()[0]).collect()
    }

    fn finished(state: Md5State, text: &[u8]) -> [u8; 16] {
        state.finish(text.as_chunks::<BLOCK_BYTES>().1, text.len() as u64)
    }

    #[test]
    fn the_digests_of_the_standard_come_out() {
        for (text, digest) in [
            ("", 0xd41d_8cd9_8f00_b204_e980_0998_ecf8_427e_u128),
            ("abc", 0x9001_5098_3cd2_4fb0_d696_3f7d_28e1_7f72),
            ("abcdefghijklmnopqrstuvwxyz", 0xc3fc_d3d7_6192_e400_7dfb_496c_ca67_e13b),
        ] {
            assert_eq!(finished(Md5State::begin(), text.as_bytes()), digest.to_be_bytes());
        }
    }

    /// Alone and beside another text, of each length of its last block, the same as by another implementation.
    #[test]
    fn a_text_beside_another_has_its_own_digest() {
        for bytes in (0..200).chain([4096, 65_599]) {
            let (one, other) = (text(bytes), text(bytes / 2 + 70));
            let mut alone = Md5State::begin();
            alone.take(one.as_chunks().0);
            assert_eq!(finished(alone, &one), <[u8; 16]>::from(Md5::digest(&one)), "{bytes}");
            let (of_one, of_other) = (one.as_chunks().0, other.as_chunks().0);
            let both = of_one.len().min(of_other.len());
            let [mut first, mut second] = [Md5State::begin(); 2];
            Md5State::take_both([&mut first, &mut second], [of_one, of_other]);
            first.take(&of_one[both..]);
            second.take(&of_other[both..]);
            assert_eq!(finished(first, &one), <[u8; 16]>::from(Md5::digest(&one)), "{bytes}");
            assert_eq!(finished(second, &other), <[u8; 16]>::from(Md5::digest(&other)), "{bytes}");
        }
    }
}
