//! A JSON text as a flat list of its values: one pass makes it, and any part can be looked at again. Nothing is converted: strings
//! keep their escapes and numbers their digits until somebody looks at them.

use std::borrow::Cow;
use std::iter;

/// Memory for the values of one payload after the other.
#[derive(Debug, Default)]
pub struct Values {
    nodes: Vec<Node>,
}

/// Values for which a usual payload leaves room behind; more is given back.
const KEPT_VALUES: usize = 1024;

impl Values {
    /// Reads a payload, which must have passed [`crate::json::check`], once for all that look at its values.
    pub fn read<'d>(&'d mut self, payload: &'d str) -> View<'d> {
        self.nodes.clear();
        read_into(payload, &mut self.nodes);
        View { text: payload, nodes: &self.nodes }
    }

    /// Nobody looks at them any more: the memory of very many is given back.
    pub fn forget(&mut self) {
        self.nodes.clear();
        self.nodes.shrink_to(KEPT_VALUES);
    }
}

/// The kinds of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Null,
    Boolean,
    Number,
    Text,
    Array,
    Object,
}

/// One value. Those within it follow it; of an object each value follows its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    kind: Kind,
    has_escape: bool,
    start: u32,
    end: u32,
    /// The first value that isn't within this one. While an array or an object is being read, the one that it stands in.
    next: u32,
}

/// Bytes of JSON for each value, about: a guess that spares most growing.
const BYTES_PER_VALUE: usize = 12;

/// The values of a text that has passed [`crate::json::check`]. Of another text some may be missing or wrong.
pub(crate) fn read(text: &str) -> Vec<Node> {
    let mut nodes = Vec::new();
    read_into(text, &mut nodes);
    nodes
}

fn read_into(text: &str, nodes: &mut Vec<Node>) {
    let bytes = text.as_bytes();
    nodes.reserve(bytes.len() / BYTES_PER_VALUE + 4);
    let (mut open, mut at) = (u32::MAX, 0);
    while let Some(byte) = bytes.get(at) {
        let start = at;
        at += 1;
        match byte {
            b'{' | b'[' => {
                let kind = if *byte == b'{' { Kind::Object } else { Kind::Array };
                let node = Node { next: open, ..Node::new(kind, start, at, 0) };
                open = offset(nodes.len());
                nodes.push(node);
            }
            b'}' | b']' => {
                let next = offset(nodes.len());
                if let Some(node) = nodes.get_mut(open as usize) {
                    open = node.next;
                    (node.end, node.next) = (offset(at), next);
                }
            }
            b'"' => {
                let has_escape = skip_text(bytes, &mut at);
                nodes.push(Node { has_escape, ..Node::new(Kind::Text, start, at, nodes.len()) });
            }
            b' ' | b'\t' | b'\n' | b'\r' | b',' | b':' => {}
            first => {
                while bytes
                    .get(at)
                    .is_some_and(|byte| !matches!(byte, b',' | b']' | b'}' | b' ' | b'\t' | b'\n' | b'\r'))
                {
                    at += 1;
                }
                let kind = match first {
                    b'n' => Kind::Null,
                    b't' | b'f' => Kind::Boolean,
                    _ => Kind::Number,
                };
                nodes.push(Node::new(kind, start, at, nodes.len()));
            }
        }
    }
    // In a text that ends too early, which nobody should have given, some were never closed.
    let end = offset(nodes.len());
    while let Some(node) = nodes.get_mut(open as usize) {
        open = node.next;
        node.next = end;
    }
}

/// Goes behind the string whose quote was passed, and says whether it has an escape.
fn skip_text(bytes: &[u8], at: &mut usize) -> bool {
    let mut has_escape = false;
    // Most names and many values end within the first bytes: to call the search for them would cost more than it does.
    for _ in 0..2 {
        let Some(word) = bytes.get(*at..*at + 8).and_then(|word| <[u8; 8]>::try_from(word).ok()) else { break };
        match first_mark(u64::from_le_bytes(word)) {
            None => *at += 8,
            Some(found) if word[found] == b'"' => {
                *at += found + 1;
                return false;
            }
            Some(found) => {
                *at += found;
                break;
            }
        }
    }
    loop {
        let rest = bytes.get(*at..).unwrap_or_default();
        match memchr::memchr2(b'"', b'\\', rest) {
            Some(found) if rest[found] == b'"' => {
                *at += found + 1;
                return has_escape;
            }
            Some(found) => {
                *at += found + 2;
                has_escape = true;
            }
            None => {
                *at = bytes.len();
                return has_escape;
            }
        }
    }
}

/// Which of eight bytes, the lowest first, is the first quote or backslash.
const fn first_mark(word: u64) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    // A byte is zero where it is the one that is looked for; the lowest that borrows is the first.
    let (quote, backslash) = (word ^ (ONES * b'"' as u64), word ^ (ONES * b'\\' as u64));
    let found = ((quote.wrapping_sub(ONES) & !quote) | (backslash.wrapping_sub(ONES) & !backslash)) & HIGH;
    if found == 0 { None } else { Some(found.trailing_zeros() as usize / 8) }
}

/// Places are small: an event has a megabyte at most. What is beyond becomes a place that holds nothing.
fn offset(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

impl Node {
    fn new(kind: Kind, start: usize, end: usize, index: usize) -> Self {
        Self { kind, has_escape: false, start: offset(start), end: offset(end), next: offset(index + 1) }
    }
}

/// The values of a text, to be looked at.
#[derive(Clone, Copy, Debug)]
pub struct View<'d> {
    pub(crate) text: &'d str,
    pub(crate) nodes: &'d [Node],
}

impl<'d> View<'d> {
    /// A payload whose values nobody has read yet.
    #[must_use]
    pub const fn unread(payload: &'d str) -> Self {
        Self { text: payload, nodes: &[] }
    }

    /// The payload.
    #[must_use]
    pub const fn payload(self) -> &'d str {
        self.text
    }

    pub(crate) fn kind(&self, at: usize) -> Kind {
        self.nodes.get(at).map_or(Kind::Null, |node| node.kind)
    }

    /// The value as it was written.
    pub(crate) fn raw(&self, at: usize) -> &'d str {
        let node = self.nodes.get(at);
        node.and_then(|node| self.text.get(node.start as usize..node.end as usize)).unwrap_or_default()
    }

    /// Where the value stands in the text, in bytes.
    pub(crate) fn span(&self, at: usize) -> std::ops::Range<usize> {
        self.nodes.get(at).map_or(0..0, |node| node.start as usize..node.end as usize)
    }

    /// Whether a string has escapes.
    pub(crate) fn has_escape(&self, at: usize) -> bool {
        self.nodes.get(at).is_some_and(|node| node.has_escape)
    }

    /// What a string says.
    pub(crate) fn text(&self, at: usize) -> Cow<'d, str> {
        let Some(node) = self.nodes.get(at) else { return Cow::Borrowed("") };
        let inner = self.text.get(node.start as usize + 1..(node.end as usize).saturating_sub(1)).unwrap_or_default();
        if node.has_escape {
            return serde_json::from_str(self.raw(at)).map_or(Cow::Borrowed(inner), Cow::Owned);
        }
        Cow::Borrowed(inner)
    }

    /// Whether that is this.
    fn is_text(&self, at: usize, text: &str) -> bool {
        let Some(node) = self.nodes.get(at) else { return false };
        if node.has_escape {
            return self.text(at) == text;
        }
        let length = (node.end - node.start) as usize;
        length == text.len() + 2
            && self.text.as_bytes().get(node.start as usize + 1..).is_some_and(|rest| rest.starts_with(text.as_bytes()))
    }

    /// The first value behind this one that isn't within it.
    pub(crate) fn next(&self, at: usize) -> usize {
        self.nodes.get(at).map_or(usize::MAX, |node| node.next as usize)
    }

    /// The elements of an array, and the names and values of an object in turn.
    pub(crate) fn children(self, at: usize) -> impl Iterator<Item = usize> + use<'d> {
        let end = self.next(at).min(self.nodes.len());
        let first = Some(at + 1).filter(|first| *first < end);
        iter::successors(first, move |child| Some(self.next(*child)).filter(|next| *next < end))
    }

    /// The members of an object: where the name stands, and where the value does.
    pub(crate) fn members(self, at: usize) -> impl Iterator<Item = (usize, usize)> + use<'d> {
        let end = if self.kind(at) == Kind::Object { self.next(at).min(self.nodes.len()) } else { 0 };
        // A name is one value, and its value stands behind it.
        let first = Some(at + 1).filter(|first| *first < end);
        let names = iter::successors(first, move |name| Some(self.next(*name + 1)).filter(|next| *next < end));
        names.map(|name| (name, name + 1))
    }

    /// The value of a member; of several with its name the last.
    pub(crate) fn member(self, at: usize, name: &str) -> Option<usize> {
        self.members(at).filter(|(key, _)| self.is_text(*key, name)).last().map(|(_, value)| value)
    }

    /// The JSON pointer to a value.
    pub(crate) fn pointer(self, to: usize) -> String {
        let (mut pointer, mut at) = (String::new(), 0);
        while at < to {
            let holds = |child: usize| (child..self.next(child)).contains(&to);
            let step = match self.kind(at) {
                // A name stands for its member.
                Kind::Object => {
                    let found = self.members(at).find(|(name, value)| *name == to || holds(*value));
                    found.map(|(name, value)| (escape(&self.text(name)), if name == to { to } else { value }))
                }
                Kind::Array => self
                    .children(at)
                    .enumerate()
                    .find(|(_, child)| holds(*child))
                    .map(|(i, child)| (i.to_string(), child)),
                _ => None,
            };
            let Some((name, child)) = step else { break };
            pointer.push('/');
            pointer.push_str(&name);
            at = child;
        }
        pointer
    }
}

/// A name as it stands in a JSON pointer.
pub(crate) fn escape(name: &str) -> String {
    if name.contains(['~', '/']) { name.replace('~', "~0").replace('/', "~1") } else { name.to_owned() }
}
