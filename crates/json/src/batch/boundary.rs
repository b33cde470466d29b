//! The end of an element of an array, found without parsing its content.

/// The state of the search for an element's end. Bytes between brackets or quotes are skipped; their syntax is checked
/// elsewhere.
#[derive(Debug, Default)]
pub(super) struct Boundary {
    /// Arrays and objects that are open.
    depth: usize,
    in_string: bool,
    /// The next byte is escaped.
    escaped: bool,
}

impl Boundary {
    /// The offset in the element's next bytes of the comma or bracket that ends it.
    pub(super) fn find(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        loop {
            let rest = bytes.get(at..).filter(|rest| !rest.is_empty())?;
            if std::mem::take(&mut self.escaped) {
                at += 1;
            } else if self.in_string {
                let found = memchr::memchr2(b'"', b'\\', rest)?;
                self.in_string = rest[found] == b'\\';
                self.escaped = self.in_string;
                at += found + 1;
            } else {
                let found = rest.iter().position(|byte| is_structure(*byte))?;
                if self.depth == 0 && matches!(rest[found], b',' | b']') {
                    return Some(at + found);
                }
                self.pass(rest[found]);
                at += found + 1;
            }
        }
    }

    fn pass(&mut self, structure: u8) {
        match structure {
            b'"' => self.in_string = true,
            b'[' | b'{' => self.depth += 1,
            b']' | b'}' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
    }
}

const fn is_structure(byte: u8) -> bool {
    matches!(byte, b'"' | b',' | b'[' | b']' | b'{' | b'}')
}
