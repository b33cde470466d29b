//! The parts of open arrays and objects: how they are read, distinguished, found, added and removed.
//!
//! Each step searches a member or two among all. The original members of an object are adjacent, and the tags of their
//! names are in a separate list: a search runs along that list, and reads few nodes.

use super::{BYTES_PER_PART, EditError, Found, Node, NodeId, Shape, Span, Tree, offset, text};
use json::ValueView;
use json::pointer::PointerStep;
use json::scan;
use limits::TRANSFORM_BYTES_MAX;

/// A tag that distinguishes most names, so few are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tag(u32);

impl Tag {
    /// The tag of a name with escapes: it must be compared. No text has the byte 255, so no name has this tag.
    const ESCAPED: Self = Self(u32::MAX);
    /// The tag of a removed part.
    const REMOVED: Self = Self(u32::MAX >> 8);

    /// The length, and the bytes at the beginning, in the middle and at the end.
    pub(super) fn of(name: &[u8]) -> Self {
        let (Some(first), Some(last)) = (name.first(), name.last()) else { return Self(0) };
        let length = u32::try_from(name.len()).unwrap_or(u32::MAX);
        let sampled = u32::from_le_bytes([*first, name[name.len() / 2], *last, 0]);
        Self(length << 24 | sampled)
    }
}

/// The parts of an array or object that is open.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Parts {
    pub(super) first: Option<NodeId>,
    last: Option<NodeId>,
    /// How many there are.
    pub(super) count: usize,
    /// The nodes of its original parts, including removed ones: from here, and up to there.
    came: Span,
    /// The first of those that were added.
    added: Option<NodeId>,
}

impl Tree {
    /// Adds a node.
    pub(super) fn push(&mut self, node: Node, tag: Tag) -> NodeId {
        let id = NodeId(offset(self.nodes.len()));
        self.nodes.push(node);
        self.tags.push(tag);
        id
    }

    /// The parts of an open array or object.
    pub(super) fn parts_of(&self, of: NodeId) -> &Parts {
        &self.parts[self.node(of).parts as usize]
    }

    fn parts_of_mut(&mut self, of: NodeId) -> &mut Parts {
        let number = self.node(of).parts as usize;
        &mut self.parts[number]
    }

    pub(super) fn each_part(&self, of: NodeId) -> impl Iterator<Item = NodeId> {
        std::iter::successors(self.parts_of(of).first, |id| self.node(*id).next)
    }

    /// Looks for a member, in an object that is open.
    pub(super) fn member(&self, of: NodeId, name: &str) -> Found {
        let mut search = Found { found: None, is_repeated: false };
        let mut meet = |id| {
            if self.compares(self.node(id), name) {
                search.is_repeated = search.found.is_some();
                search.found = Some(id);
            }
        };
        let (tag, parts) = (Tag::of(name.as_bytes()), self.parts_of(of));
        let came = &self.tags[parts.came.start as usize..parts.came.end as usize];
        for (id, _) in (parts.came.start..).zip(came).filter(|(_, other)| other.may_be(tag)) {
            meet(NodeId(id));
        }
        let mut next = parts.added;
        while let Some(id) = next {
            if self.tags[id.index()].may_be(tag) {
                meet(id);
            }
            next = self.node(id).next;
        }
        self.pass(parts.count);
        search
    }

    /// Whether this is the name of a node. The tag is the name's.
    pub(super) fn has_name(&self, id: NodeId, name: &str, tag: Tag) -> bool {
        self.tags[id.index()].may_be(tag) && self.compares(self.node(id), name)
    }

    fn compares(&self, node: &Node, name: &str) -> bool {
        if node.escaped {
            return text::read_string(self.text(node.key)).is_some_and(|key| key == name);
        }
        let (start, end) = (node.key.start as usize + 1, node.key.end as usize);
        end == start + name.len() + 1 && self.ground.as_bytes()[start..end - 1] == *name.as_bytes()
    }

    /// Creates nodes of the document's members, if its values were read: they needn't be searched again. Call it after
    /// `begin`.
    pub(in super::super) fn take_members(&mut self, document: ValueView<'_>) {
        for (name, value) in document.members(0) {
            let (key, escaped) = (document.span(name), document.has_escape(name));
            let following = Some(NodeId(offset(self.nodes.len() + 1)));
            let value = document.span(value);
            let node = Node::closed(Span::new(key.start, key.end), Span::new(value.start, value.end));
            let tag = Tag::of_key(document.payload().as_bytes(), (key.start, key.end), escaped);
            self.push(Node { next: following, escaped, whole: true, ..node }, tag);
        }
        self.has_members = self.nodes.len() > 1;
        if let Some(last) = self.nodes.last_mut() {
            last.next = None;
        }
    }

    /// Makes nodes of the parts of an array or object, if that isn't done yet.
    pub(super) fn open(&mut self, id: NodeId) -> Shape {
        let node = *self.node(id);
        if node.shape != Shape::Closed {
            return node.shape;
        }
        let shape = match self.ground.as_bytes()[node.value.start as usize..].first() {
            Some(b'{') => Shape::Object,
            Some(b'[') => Shape::Array,
            _ => return Shape::Closed,
        };
        self.pass(node.value.length() / BYTES_PER_PART);
        let begun = if id == NodeId::ROOT && self.has_members && node.value.start == 0 {
            1
        } else {
            let begun = self.nodes.len();
            self.read_parts(node.value.start as usize, shape == Shape::Object);
            begun
        };
        let parts = self.appended(begun);
        let number = offset(self.parts.len());
        self.parts.push(parts);
        let node = self.node_mut(id);
        (node.shape, node.parts) = (shape, number);
        shape
    }

    fn read_parts(&mut self, container: usize, is_object: bool) {
        let json = self.ground.as_bytes();
        let mut next = scan::first_part(json, container);
        while let Some(start) = next {
            let (key_end, escaped) = if is_object { scan::string_end(json, start) } else { (start, false) };
            let value = if is_object { scan::member_value(json, key_end) } else { start };
            let end = scan::value_end(json, value);
            next = scan::next_part(json, end);
            let following = next.map(|_| NodeId(offset(self.nodes.len() + 1)));
            let node = Node::closed(Span::new(start, key_end), Span::new(value, end));
            self.nodes.push(Node { next: following, escaped, whole: true, ..node });
            self.tags.push(Tag::of_key(json, (start, key_end), escaped));
        }
    }

    fn appended(&self, begun: usize) -> Parts {
        let end = self.nodes.len();
        let id = |at: usize| (end > begun).then(|| NodeId(offset(at)));
        let came = Span::new(begun, end);
        Parts { first: id(begun), last: id(end.saturating_sub(1)), count: end - begun, came, added: None }
    }

    /// Renames a node. The name becomes a text of the ground, with its quotes.
    pub(super) fn give_name(&mut self, id: NodeId, name: &str) -> Result<(), EditError> {
        let key = self.add_name(name)?;
        let escaped = self.text(key).contains('\\');
        let node = self.node_mut(id);
        (node.key, node.whole, node.escaped) = (key, false, escaped);
        self.tags[id.index()] = if escaped { Tag::ESCAPED } else { Tag::of(name.as_bytes()) };
        Ok(())
    }

    fn add_name(&mut self, name: &str) -> Result<Span, EditError> {
        let start = self.ground.len();
        text::write_string(name, &mut self.ground);
        if self.ground.len() - self.source > TRANSFORM_BYTES_MAX {
            self.ground.truncate(start);
            return Err(EditError::TooLong);
        }
        Ok(Span::new(start, self.ground.len()))
    }

    /// Adds a part after the last one.
    pub(super) fn append(&mut self, of: NodeId, name: &str, value: Span) -> Result<NodeId, EditError> {
        let id = self.push(Node::closed(Span::default(), value), Tag::default());
        if self.node(of).shape == Shape::Object {
            self.give_name(id, name)?;
        }
        let last = self.parts_of(of).last;
        if let Some(last) = last {
            self.node_mut(last).next = Some(id);
        }
        let parts = self.parts_of_mut(of);
        parts.first.get_or_insert(id);
        parts.added.get_or_insert(id);
        parts.last = Some(id);
        parts.count += 1;
        Ok(id)
    }

    /// Keeps the parts that the function wants, which sees the number and the node of each.
    pub(super) fn retain(&mut self, of: NodeId, mut wanted: impl FnMut(&mut Self, usize, NodeId) -> bool) {
        let (mut before, mut next, mut number) = (None, self.parts_of(of).first, 0);
        while let Some(id) = next {
            next = self.node(id).next;
            if wanted(self, number, id) {
                before = Some(id);
            } else {
                self.take_out(of, before, id);
            }
            number += 1;
        }
        self.pass(number);
    }

    /// Removes the part after that one.
    fn take_out(&mut self, of: NodeId, before: Option<NodeId>, id: NodeId) {
        let next = self.node(id).next;
        self.tags[id.index()] = Tag::REMOVED;
        if let Some(before) = before {
            self.node_mut(before).next = next;
        }
        let parts = self.parts_of_mut(of);
        if before.is_none() {
            parts.first = next;
        }
        if next.is_none() {
            parts.last = before;
        }
        if parts.added == Some(id) {
            parts.added = next;
        }
        parts.count -= 1;
        self.make_one_stale(of);
    }

    /// Removes the members of a name, except one.
    pub(super) fn remove_members(&mut self, of: NodeId, name: &str, but: Option<NodeId>) {
        let tag = Tag::of(name.as_bytes());
        self.retain(of, |tree, _, id| Some(id) == but || !tree.has_name(id, name, tag));
    }

    /// Marks everything around a part as changed, down to the end of the path.
    pub(super) fn make_stale(&mut self, way: &[PointerStep]) {
        let mut at = NodeId::ROOT;
        self.make_one_stale(at);
        for step in way {
            let Some(next) = self.part(at, step) else { return };
            self.make_one_stale(next);
            at = next;
        }
    }

    /// Marks the parts of an array or object as changed.
    pub(super) fn make_one_stale(&mut self, id: NodeId) {
        self.node_mut(id).stale = true;
        self.has_stale_parts |= id != NodeId::ROOT;
    }
}

impl Tag {
    /// Of a key in its quotes, at this place.
    fn of_key(json: &[u8], (start, end): (usize, usize), escaped: bool) -> Self {
        if escaped {
            return Self::ESCAPED;
        }
        json.get(start + 1..end.saturating_sub(1)).map_or_else(Self::default, Self::of)
    }

    /// Whether a node with this tag may have the name with that one.
    fn may_be(self, tag: Self) -> bool {
        self == tag || self == Self::ESCAPED
    }
}
