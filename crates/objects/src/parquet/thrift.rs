//! Thrift's compact protocol, the part that Parquet's metadata needs
//! (<https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>).

const TRUE: u8 = 1;
const FALSE: u8 = 2;
const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;
/// Shorter lists have their length in the byte of the element type.
const SHORT: usize = 15;

/// The fields of a struct: their numbers grow, by at most 15 from one to the next.
pub(super) struct Fields<'a> {
    output: &'a mut Vec<u8>,
    before: u8,
}

/// Writes a struct that isn't a field of another.
pub(super) fn structure(output: &mut Vec<u8>, fill: impl FnOnce(&mut Fields<'_>)) {
    fill(&mut Fields { output, before: 0 });
    output.push(0);
}

impl Fields<'_> {
    fn field(&mut self, number: u8, kind: u8) {
        debug_assert!((1..=15).contains(&number.wrapping_sub(self.before)), "field {number}");
        self.output.push((number - self.before) << 4 | kind);
        self.before = number;
    }

    pub(super) fn bool(&mut self, number: u8, value: bool) -> &mut Self {
        self.field(number, if value { TRUE } else { FALSE });
        self
    }

    pub(super) fn i32(&mut self, number: u8, value: i32) -> &mut Self {
        self.integer(number, I32, i64::from(value))
    }

    pub(super) fn i64(&mut self, number: u8, value: i64) -> &mut Self {
        self.integer(number, I64, value)
    }

    fn integer(&mut self, number: u8, kind: u8, value: i64) -> &mut Self {
        self.field(number, kind);
        write_integer(self.output, value);
        self
    }

    pub(super) fn binary(&mut self, number: u8, value: &[u8]) -> &mut Self {
        self.field(number, BINARY);
        write_binary(self.output, value);
        self
    }

    pub(super) fn structure(&mut self, number: u8, fill: impl FnOnce(&mut Fields<'_>)) -> &mut Self {
        self.field(number, STRUCT);
        structure(self.output, fill);
        self
    }

    pub(super) fn structures<T>(&mut self, number: u8, of: &[T], fill: impl Fn(&mut Fields<'_>, &T)) -> &mut Self {
        self.list(number, STRUCT, of.len());
        of.iter().for_each(|item| structure(self.output, |fields| fill(fields, item)));
        self
    }

    pub(super) fn integers(&mut self, number: u8, of: &[i32]) -> &mut Self {
        self.list(number, I32, of.len());
        of.iter().for_each(|value| write_integer(self.output, i64::from(*value)));
        self
    }

    pub(super) fn binaries(&mut self, number: u8, of: &[&[u8]]) -> &mut Self {
        self.list(number, BINARY, of.len());
        of.iter().for_each(|value| write_binary(self.output, value));
        self
    }

    fn list(&mut self, number: u8, of: u8, length: usize) {
        self.field(number, LIST);
        match u8::try_from(length) {
            Ok(short) if length < SHORT => self.output.push(short << 4 | of),
            _ => {
                self.output.push(0xf0 | of);
                write_unsigned(self.output, length as u64);
            }
        }
    }
}

fn write_binary(output: &mut Vec<u8>, value: &[u8]) {
    write_unsigned(output, value.len() as u64);
    output.extend_from_slice(value);
}

/// Zigzag: small negative numbers are short too.
fn write_integer(output: &mut Vec<u8>, value: i64) {
    write_unsigned(output, (value.cast_unsigned() << 1) ^ (value >> 63).cast_unsigned());
}

/// Seven bits a byte, the lowest first; all but the last have their highest bit set (ULEB128).
pub(super) fn write_unsigned(output: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        output.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    output.push(value.to_le_bytes()[0]);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Examples from the protocol's description.
    #[test]
    fn small_numbers_are_short() {
        for (value, expected) in [
            (0, &[0][..]),
            (-1, &[1]),
            (1, &[2]),
            (-64, &[0x7f]),
            (64, &[0x80, 1]),
            (i64::MIN, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]),
        ] {
            let mut output = Vec::new();
            write_integer(&mut output, value);
            assert_eq!(output, expected, "{value}");
        }
    }

    #[test]
    fn fields_have_the_distance_to_the_previous_field() {
        let mut output = Vec::new();
        structure(&mut output, |fields| {
            fields.bool(1, true).bool(3, false).binary(4, b"ab").integers(8, &[1; 15]);
            fields.structure(9, |inner| {
                inner.i32(3, 3).i64(15, 1);
            });
        });
        let (list, inner) = ([&[0x49, 0xf5, 15][..], &[2; 15]].concat(), [0x1c, 0x35, 6, 0xc6, 2, 0]);
        assert_eq!(output, [&[0x11, 0x22, 0x18, 2, b'a', b'b'][..], &list, &inner, &[0]].concat());
    }
}
