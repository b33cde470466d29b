//! Writes the few kinds of fields of a protocol buffer that a profile has.

/// A message that is being written.
#[derive(Default)]
pub(crate) struct Message(pub(crate) Vec<u8>);

const NUMBER: u64 = 0;
const BYTES: u64 = 2;

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value > 0x7f {
            self.0.push(low_bits(value) | 0x80);
            value >>= 7;
        }
        self.0.push(low_bits(value));
    }

    /// A number.
    pub(crate) fn number(&mut self, field: u64, value: u64) {
        self.varint(field << 3 | NUMBER);
        self.varint(value);
    }

    /// Text, or a message in the message.
    pub(crate) fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | BYTES);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// Several numbers.
    pub(crate) fn numbers(&mut self, field: u64, values: impl IntoIterator<Item = u64>) {
        let mut packed = Self::default();
        values.into_iter().for_each(|value| packed.varint(value));
        self.bytes(field, &packed.0);
    }
}

const fn low_bits(value: u64) -> u8 {
    (value & 0x7f) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_encoded_as_the_format_says() {
        let mut message = Message::default();
        message.number(1, 150);
        message.bytes(2, b"testing");
        message.numbers(4, [3, 270, 86942]);
        let wanted = [&[0x08, 0x96, 0x01, 0x12, 0x07][..], b"testing", &[0x22, 6, 3, 0x8e, 2, 0x9e, 0xa7, 5]].concat();
        assert_eq!(message.0, wanted);
    }
}
