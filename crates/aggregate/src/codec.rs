//! The bytes of a saved state: numbers of variable length, and texts after their lengths. The input is not trusted:
//! with any bytes, reading ends with a value or with [`Damaged`], and needs at most as much memory as the number of bytes.

/// The bytes are no saved state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the saved state of an aggregate is damaged")]
pub struct Damaged;

/// Writes a state.
#[derive(Debug, Default)]
pub(super) struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    pub(super) fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub(super) fn flag(&mut self, flag: bool) {
        self.byte(flag.into());
    }

    /// Seven bits in each byte, the lowest first.
    pub(super) fn unsigned(&mut self, mut number: u64) {
        while let 0x80.. = number {
            self.byte(number.to_le_bytes()[0] | 0x80);
            number >>= 7;
        }
        self.byte(number.to_le_bytes()[0]);
    }

    /// The sign in the lowest bit.
    pub(super) fn signed(&mut self, number: i64) {
        self.unsigned((number << 1 ^ number >> 63).cast_unsigned());
    }

    pub(super) fn count(&mut self, count: usize) {
        self.unsigned(count as u64);
    }

    pub(super) fn wide(&mut self, number: i128) {
        self.raw(&number.to_le_bytes());
    }

    pub(super) fn text(&mut self, text: &str) {
        self.count(text.len());
        self.raw(text.as_bytes());
    }

    /// Whether there is a value, and the value.
    pub(super) fn option<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        self.flag(value.is_some());
        if let Some(value) = value {
            write(self, value);
        }
    }
}

/// Reads a state.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// All bytes must be read.
    pub(super) fn end(&self) -> Result<(), Damaged> {
        if self.bytes.is_empty() { Ok(()) } else { Err(Damaged) }
    }

    pub(super) fn raw(&mut self, length: usize) -> Result<&'a [u8], Damaged> {
        let (taken, rest) = self.bytes.split_at_checked(length).ok_or(Damaged)?;
        self.bytes = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Damaged> {
        self.raw(N)?.try_into().map_err(|_| Damaged)
    }

    pub(super) fn byte(&mut self) -> Result<u8, Damaged> {
        self.array().map(|[byte]| byte)
    }

    pub(super) fn flag(&mut self) -> Result<bool, Damaged> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Damaged),
        }
    }

    pub(super) fn unsigned(&mut self) -> Result<u64, Damaged> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let part = u64::from(byte & 0x7f);
            if (part << shift) >> shift != part {
                return Err(Damaged);
            }
            number |= part << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(Damaged)
    }

    pub(super) fn signed(&mut self) -> Result<i64, Damaged> {
        let number = self.unsigned()?;
        Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }

    /// A count of items of which each needs at least one of the remaining bytes.
    pub(super) fn count(&mut self) -> Result<usize, Damaged> {
        let most = self.bytes.len();
        self.count_to(most)
    }

    pub(super) fn count_to(&mut self, most: usize) -> Result<usize, Damaged> {
        usize::try_from(self.unsigned()?).ok().filter(|count| *count <= most).ok_or(Damaged)
    }

    pub(super) fn wide(&mut self) -> Result<i128, Damaged> {
        self.array().map(i128::from_le_bytes)
    }

    pub(super) fn double(&mut self) -> Result<f64, Damaged> {
        let number = f64::from_le_bytes(self.array()?);
        if number.is_finite() { Ok(number) } else { Err(Damaged) }
    }

    pub(super) fn text(&mut self) -> Result<&'a str, Damaged> {
        let length = self.count()?;
        std::str::from_utf8(self.raw(length)?).map_err(|_| Damaged)
    }

    /// A time in the range of event times, or derived from one.
    pub(super) fn time(&mut self) -> Result<i64, Damaged> {
        self.signed().ok().filter(|time| time.unsigned_abs() >> 60 == 0).ok_or(Damaged)
    }

    pub(super) fn option<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Damaged>,
    ) -> Result<Option<T>, Damaged> {
        if self.flag()? { read(self).map(Some) } else { Ok(None) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn written_state_is_read_back(unsigned: u64, signed: i64, wide: i128, text: String, some: Option<bool>) {
            let mut out = Writer::default();
            out.unsigned(unsigned);
            out.signed(signed);
            out.wide(wide);
            out.text(&text);
            out.option(some, Writer::flag);
            let bytes = out.into_bytes();
            let mut from = Reader::new(&bytes);
            prop_assert_eq!(from.unsigned(), Ok(unsigned));
            prop_assert_eq!(from.signed(), Ok(signed));
            prop_assert_eq!(from.wide(), Ok(wide));
            prop_assert_eq!(from.text(), Ok(text.as_str()));
            prop_assert_eq!(from.option(Reader::flag), Ok(some));
            prop_assert_eq!(from.end(), Ok(()));
        }
    }

    #[test]
    fn a_number_that_is_too_long_is_damage() {
        assert_eq!(Reader::new(&[0xff; 11]).unsigned(), Err(Damaged));
        assert_eq!(Reader::new(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]).unsigned(), Err(Damaged));
        assert_eq!(Reader::new(&[5]).count(), Err(Damaged));
    }
}
