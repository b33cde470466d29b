//! A JSON text as a flat list of its values: it is built in one pass, and any part can be read again. Nothing is
//! converted: strings keep their escapes and numbers their digits until they are read.

use std::borrow::Cow;
use std::iter;

use crate::pointer::push_step;
use crate::scan;

/// Memory for the values of one payload after the other.
#[derive(Debug, Default)]
pub struct ValueIndex {
    nodes: Vec<ValueNode>,
}

/// The number of values whose memory is kept for the next payload; more is freed.
const KEPT_VALUES: usize = 1024;

impl ValueIndex {
    /// Reads a payload, which must have passed [`crate::check`], once for all readers of its values.
    pub fn read<'d>(&'d mut self, payload: &'d str) -> ValueView<'d> {
        self.nodes.clear();
        read_into(payload, &mut self.nodes);
        ValueView { text: payload, nodes: &self.nodes }
    }

    /// The values are no longer needed: the memory of very many is freed.
    pub fn forget(&mut self) {
        self.nodes.clear();
        self.nodes.shrink_to(KEPT_VALUES);
    }
}

/// The kinds of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// `null`
    Null,
    /// `true` or `false`
    Boolean,
    /// A number.
    Number,
    /// A string, or a member's name.
    Text,
    /// An array.
    Array,
    /// An object.
    Object,
}

/// One value. Its inner values follow it; in an object each value follows its name.
#[derive(Clone, Copy, Debug)]
struct ValueNode {
    kind: ValueKind,
    has_escape: bool,
    start: u32,
    end: u32,
    /// The first value that isn't within this one. While an array or an object is being read, the one that contains it.
    next: u32,
}

/// About how many bytes of JSON a value has: a guess that avoids most growing.
const BYTES_PER_VALUE: usize = 12;

fn read_into(text: &str, nodes: &mut Vec<ValueNode>) {
    let bytes = text.as_bytes();
    nodes.reserve(bytes.len() / BYTES_PER_VALUE + 4);
    let (mut open, mut at) = (u32::MAX, 0);
    while let Some(byte) = bytes.get(at) {
        let start = at;
        at += 1;
        match byte {
            b'{' | b'[' => {
                let kind = if *byte == b'{' { ValueKind::Object } else { ValueKind::Array };
                let node = ValueNode { next: open, ..ValueNode::new(kind, start, at, 0) };
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
                let has_escape;
                (at, has_escape) = scan::string_end(bytes, start);
                nodes.push(ValueNode { has_escape, ..ValueNode::new(ValueKind::Text, start, at, nodes.len()) });
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
                    b'n' => ValueKind::Null,
                    b't' | b'f' => ValueKind::Boolean,
                    _ => ValueKind::Number,
                };
                nodes.push(ValueNode::new(kind, start, at, nodes.len()));
            }
        }
    }
    // In a text that ends too early, which callers must not pass, some were never closed.
    let end = offset(nodes.len());
    while let Some(node) = nodes.get_mut(open as usize) {
        open = node.next;
        node.next = end;
    }
}

/// Offsets are small: an event has a megabyte at most. A larger one becomes an offset without a value.
fn offset(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

impl ValueNode {
    fn new(kind: ValueKind, start: usize, end: usize, index: usize) -> Self {
        Self { kind, has_escape: false, start: offset(start), end: offset(end), next: offset(index + 1) }
    }
}

/// The values of a text, for reading.
#[derive(Clone, Copy, Debug)]
pub struct ValueView<'d> {
    text: &'d str,
    nodes: &'d [ValueNode],
}

impl<'d> ValueView<'d> {
    /// A payload whose values haven't been read yet.
    #[must_use]
    pub const fn unread(payload: &'d str) -> Self {
        Self { text: payload, nodes: &[] }
    }

    /// The payload.
    #[must_use]
    pub const fn payload(self) -> &'d str {
        self.text
    }

    /// How many values there are, names of members included.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.nodes.len()
    }

    /// Its kind; [`ValueKind::Null`] if there is no such value.
    #[must_use]
    pub fn kind(&self, at: usize) -> ValueKind {
        self.nodes.get(at).map_or(ValueKind::Null, |node| node.kind)
    }

    /// The text of the value.
    #[must_use]
    pub fn raw(&self, at: usize) -> &'d str {
        let node = self.nodes.get(at);
        node.and_then(|node| self.text.get(node.start as usize..node.end as usize)).unwrap_or_default()
    }

    /// The range of the value in the text, in bytes.
    #[must_use]
    pub fn span(&self, at: usize) -> std::ops::Range<usize> {
        self.nodes.get(at).map_or(0..0, |node| node.start as usize..node.end as usize)
    }

    /// Whether a string has escapes.
    #[must_use]
    pub fn has_escape(&self, at: usize) -> bool {
        self.nodes.get(at).is_some_and(|node| node.has_escape)
    }

    /// The content of a string.
    #[must_use]
    pub fn text(&self, at: usize) -> Cow<'d, str> {
        let Some(node) = self.nodes.get(at) else { return Cow::Borrowed("") };
        let inner = self.text.get(node.start as usize + 1..(node.end as usize).saturating_sub(1)).unwrap_or_default();
        if node.has_escape {
            return serde_json::from_str(self.raw(at)).map_or(Cow::Borrowed(inner), Cow::Owned);
        }
        Cow::Borrowed(inner)
    }

    /// Whether the content of a string is this.
    fn is_text(&self, at: usize, text: &str) -> bool {
        let Some(node) = self.nodes.get(at) else { return false };
        if node.has_escape {
            return self.text(at) == text;
        }
        let length = (node.end - node.start) as usize;
        length == text.len() + 2
            && self.text.as_bytes().get(node.start as usize + 1..).is_some_and(|rest| rest.starts_with(text.as_bytes()))
    }

    /// The first value after this one that isn't within it.
    #[must_use]
    pub fn next(&self, at: usize) -> usize {
        self.nodes.get(at).map_or(usize::MAX, |node| node.next as usize)
    }

    /// The elements of an array, and the names and values of an object alternately.
    pub fn children(self, at: usize) -> impl Iterator<Item = usize> + use<'d> {
        let end = self.next(at).min(self.nodes.len());
        let first = Some(at + 1).filter(|first| *first < end);
        iter::successors(first, move |child| Some(self.next(*child)).filter(|next| *next < end))
    }

    /// The members of an object: the name's number, and the value's.
    pub fn members(self, at: usize) -> impl Iterator<Item = (usize, usize)> + use<'d> {
        let end = if self.kind(at) == ValueKind::Object { self.next(at).min(self.nodes.len()) } else { 0 };
        // A name is one value, and its value follows it.
        let first = Some(at + 1).filter(|first| *first < end);
        let names = iter::successors(first, move |name| Some(self.next(*name + 1)).filter(|next| *next < end));
        names.map(|name| (name, name + 1))
    }

    /// The value of a member; of several with its name the last.
    #[must_use]
    pub fn member(self, at: usize, name: &str) -> Option<usize> {
        self.members(at).filter(|(key, _)| self.is_text(*key, name)).last().map(|(_, value)| value)
    }

    /// The JSON pointer to a value.
    #[must_use]
    pub fn pointer(self, to: usize) -> String {
        let (mut pointer, mut at) = (String::new(), 0);
        while at < to {
            let holds = |child: usize| (child..self.next(child)).contains(&to);
            let step = match self.kind(at) {
                // A name identifies its member.
                ValueKind::Object => {
                    let found = self.members(at).find(|(name, value)| *name == to || holds(*value));
                    found.map(|(name, value)| (self.text(name), if name == to { to } else { value }))
                }
                ValueKind::Array => self
                    .children(at)
                    .enumerate()
                    .find(|(_, child)| holds(*child))
                    .map(|(i, child)| (Cow::Owned(i.to_string()), child)),
                _ => None,
            };
            let Some((name, child)) = step else { break };
            push_step(&mut pointer, &name);
            at = child;
        }
        pointer
    }
}

/// A text with the values that were read from it.
#[derive(Debug)]
pub struct IndexedText {
    text: Box<str>,
    nodes: Box<[ValueNode]>,
}

impl IndexedText {
    /// Reads the values of a text, which must have passed [`crate::check`].
    #[must_use]
    pub fn new(text: &str) -> Self {
        let mut index = ValueIndex::default();
        index.read(text);
        Self { text: text.into(), nodes: index.nodes.into() }
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The values.
    #[must_use]
    pub fn view(&self) -> ValueView<'_> {
        ValueView { text: &self.text, nodes: &self.nodes }
    }
}
