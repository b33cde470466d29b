//! Walks a message in the wire format of protocol buffers without decoding it as a whole: the tree of a hostile message takes many times its
//! bytes. <https://protobuf.dev/programming-guides/encoding/>

/// One field of a message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Field<'a> {
    /// Its number.
    pub number: u32,
    /// Its value.
    pub value: WireValue<'a>,
}

/// The value of a field, by its wire type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WireValue<'a> {
    /// Wire type 0.
    Varint(u64),
    /// Wire type 1.
    Fixed64(u64),
    /// Wire type 2: text, bytes, or a message.
    Bytes(&'a [u8]),
    /// Wire type 5.
    Fixed32(u32),
}

/// The bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidMessage;

/// The fields of a message, in the order of its bytes.
#[derive(Clone, Debug)]
pub struct WireFields<'a> {
    rest: &'a [u8],
}

/// Walks a message.
#[must_use]
pub const fn fields(message: &[u8]) -> WireFields<'_> {
    WireFields { rest: message }
}

impl<'a> Iterator for WireFields<'a> {
    type Item = Result<Field<'a>, InvalidMessage>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.read().ok_or(InvalidMessage);
        if field.is_err() {
            // After an error nothing can be trusted.
            self.rest = &[];
        }
        Some(field)
    }
}

impl<'a> WireFields<'a> {
    fn read(&mut self) -> Option<Field<'a>> {
        let key = self.varint()?;
        let number = u32::try_from(key >> 3).ok().filter(|number| *number > 0)?;
        let value = match key & 7 {
            0 => WireValue::Varint(self.varint()?),
            1 => WireValue::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                WireValue::Bytes(self.bytes(length)?)
            }
            5 => WireValue::Fixed32(u32::from_le_bytes(self.array()?)),
            // Groups are deprecated, and no protocol here has one.
            _ => return None,
        };
        Some(Field { number, value })
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if *byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(bytes)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }
}

/// The numbers of a packed field of varints.
pub fn varints(packed: &[u8]) -> impl Iterator<Item = Result<u64, InvalidMessage>> {
    let mut fields = fields(packed);
    std::iter::from_fn(move || {
        if fields.rest.is_empty() {
            return None;
        }
        let number = fields.varint().ok_or(InvalidMessage);
        if number.is_err() {
            fields.rest = &[];
        }
        Some(number)
    })
}

impl<'a> WireValue<'a> {
    /// The bytes of a field that has some.
    #[must_use]
    pub const fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_walked() {
        let message = [0x08, 0x96, 0x01, 0x12, 2, b'h', b'i', 0x1d, 1, 0, 0, 0, 0x21, 2, 0, 0, 0, 0, 0, 0, 0];
        let found: Vec<_> = fields(&message).map(|field| field.map(|field| (field.number, field.value))).collect();
        let expected = [
            Ok((1, WireValue::Varint(150))),
            Ok((2, WireValue::Bytes(b"hi"))),
            Ok((3, WireValue::Fixed32(1))),
            Ok((4, WireValue::Fixed64(2))),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn packed_varints_are_walked() {
        let found: Vec<_> = varints(&[1, 0x96, 0x01, 0x80]).collect();
        assert_eq!(found, [Ok(1), Ok(150), Err(InvalidMessage)]);
    }

    #[test]
    fn bytes_that_are_no_message_are_an_error() {
        for bad in [&[0x12, 3, b'x'][..], &[0x0b], &[0x08], &[0x00, 0], &[0xff; 11]] {
            assert_eq!(fields(bad).last(), Some(Err(InvalidMessage)), "{bad:?}");
        }
    }
}
