//! One document as a tree that is opened only where a step goes. Everything else stays the text that it was, and is
//! copied as it was written.
//!
//! All text stands in one buffer, the ground: first the document as it came, behind it what steps made. Nodes hold
//! places in it. So nothing is borrowed, and the buffers serve for the next document.

mod edit;
mod keep;
mod write;

use std::cell::Cell;

use event::limits::{JSON_DEPTH_MAX, TRANSFORM_BYTES_MAX};

use super::scan;
use super::text;
use crate::pointer::{JsonPointer, Step};

/// A place in the ground.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Span {
    start: u32,
    end: u32,
}

impl Span {
    fn new(start: usize, end: usize) -> Self {
        Self { start: offset(start), end: offset(end) }
    }

    const fn length(self) -> usize {
        (self.end - self.start) as usize
    }
}

fn offset(at: usize) -> u32 {
    u32::try_from(at).expect("the ground has a document and TRANSFORM_BYTES_MAX at most")
}

/// Bytes that are read in the time in which a part is passed by.
const BYTES_PER_PART: usize = 4;

/// A node by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NodeId(u32);

impl NodeId {
    const ROOT: Self = Self(0);

    const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A value of the document.
#[derive(Clone, Copy, Debug)]
struct Node {
    /// The name with its quotes, where it is a member.
    key: Span,
    tag: Tag,
    /// The value as text; out of date where the node is stale.
    value: Span,
    /// The next member or element of the same object or array.
    next: Option<NodeId>,
    first: Option<NodeId>,
    shape: Shape,
    /// Whether its parts were changed since it was text.
    stale: bool,
    /// Whether there are escapes in its name.
    escaped: bool,
    /// Whether name and value stand in the ground as a member is written, one behind the other.
    whole: bool,
}

/// What tells most names apart, so that few are compared: each step walks past all members on its way to one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tag(u32);

impl Tag {
    /// The length, and the letters at the beginning, in the middle and at the end.
    fn of(name: &[u8]) -> Self {
        let (Some(first), Some(last)) = (name.first(), name.last()) else { return Self(0) };
        let length = u32::try_from(name.len()).unwrap_or(u32::MAX);
        let letters = u32::from_le_bytes([*first, name[name.len() / 2], *last, 0]);
        Self(length << 24 | letters)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// A value that nobody has looked into.
    Closed,
    Object,
    Array,
}

/// What a search for a member gives.
struct Found {
    /// The last of that name.
    found: Option<NodeId>,
    /// Whether there are others.
    has_twins: bool,
    /// The last of all.
    last: Option<NodeId>,
}

/// Why a tree can't be changed so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum EditError {
    #[error("{0} is {1}: nothing can stand within it")]
    NoContainer(String, &'static str),
    #[error("the array has {0} elements: a new one goes to number {0}, or to `-`")]
    NoSuchElement(usize),
    #[error("arrays and objects would nest deeper than {JSON_DEPTH_MAX} levels")]
    TooDeep,
    #[error("the steps make more than {TRANSFORM_BYTES_MAX} bytes of this event")]
    TooLong,
}

/// A document that is being changed.
#[derive(Debug, Default)]
pub(super) struct Tree {
    ground: String,
    nodes: Vec<Node>,
    /// Bytes of the ground that are the document as it came.
    source: usize,
    spare: String,
    /// Parts that searches have passed by.
    passed: Cell<usize>,
}

/// Buffers that a usual document leaves behind; larger ones are given back.
pub(super) const KEPT_BYTES: usize = 64 * 1024;
const KEPT_NODES: usize = 2048;

impl Tree {
    /// Begins with a document, which has passed [`crate::json::check`].
    pub(super) fn read(&mut self, json: &str) {
        self.ground.clear();
        self.nodes.clear();
        self.ground.shrink_to(KEPT_BYTES);
        self.nodes.shrink_to(KEPT_NODES);
        self.spare.shrink_to(KEPT_BYTES);
        self.ground.push_str(json);
        self.source = json.len();
        self.nodes.push(Node::closed(Span::default(), Span::new(0, json.len())));
    }

    /// Whether it isn't the document any more with which it began.
    pub(super) fn is_changed(&self) -> bool {
        let root = &self.nodes[0];
        root.stale || (root.value != Span::new(0, self.source) && self.text(root.value) != &self.ground[..self.source])
    }

    /// How many parts searches have passed by since this was asked.
    pub(super) fn take_passed(&mut self) -> usize {
        self.passed.take()
    }

    fn pass(&self, parts: usize) {
        self.passed.set(self.passed.get() + parts);
    }

    fn text(&self, span: Span) -> &str {
        &self.ground[span.start as usize..span.end as usize]
    }

    fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id.index()]
    }

    /// What stands at the pointer, as text; `None` where nothing does. Of members of the same name the last counts.
    pub(super) fn get(&mut self, pointer: &JsonPointer) -> Result<Option<&str>, EditError> {
        let Some(id) = self.find(pointer) else { return Ok(None) };
        self.refresh(id)?;
        Ok(Some(self.text(self.node(id).value)))
    }

    /// The members of the document that have these names. With `with_document` also the whole document, else `""`.
    pub(super) fn fields(
        &mut self,
        names: &[String],
        with_document: bool,
    ) -> Result<(&str, Vec<Option<&str>>), EditError> {
        if with_document {
            self.refresh(NodeId::ROOT)?;
        }
        self.open(NodeId::ROOT);
        self.refresh_members(names)?;
        let this = &*self;
        let found = |name: &String| this.member(NodeId::ROOT, name).found.map(|id| this.text(this.node(id).value));
        let document = if with_document { this.text(this.nodes[0].value) } else { "" };
        Ok((document, names.iter().map(found).collect()))
    }

    /// Makes texts of the members that have these names.
    fn refresh_members(&mut self, names: &[String]) -> Result<(), EditError> {
        let (mut next, mut count) = (self.nodes[0].first, 0);
        while let Some(id) = next {
            let node = self.node(id);
            count += 1;
            next = node.next;
            if node.stale && names.iter().any(|name| self.has_name(node, name, Tag::of(name.as_bytes()))) {
                self.refresh(id)?;
            }
        }
        self.pass(count);
        Ok(())
    }

    fn find(&mut self, pointer: &JsonPointer) -> Option<NodeId> {
        let mut id = NodeId::ROOT;
        for step in pointer.steps() {
            id = self.part(id, step)?;
        }
        Some(id)
    }

    fn part(&mut self, of: NodeId, step: &Step) -> Option<NodeId> {
        match self.open(of) {
            Shape::Object => self.member(of, &step.name).found,
            Shape::Array => {
                let index = step.index?;
                self.pass(index.min(self.nodes.len()));
                self.parts(of).nth(index)
            }
            Shape::Closed => None,
        }
    }

    /// Looks for a member, in an object that is open.
    fn member(&self, of: NodeId, name: &str) -> Found {
        let mut search = Found { found: None, has_twins: false, last: None };
        let (mut next, mut count) = (self.node(of).first, 0);
        let tag = Tag::of(name.as_bytes());
        while let Some(id) = next {
            let node = self.node(id);
            count += 1;
            if self.has_name(node, name, tag) {
                search.has_twins = search.found.is_some();
                search.found = Some(id);
            }
            search.last = next;
            next = node.next;
        }
        self.pass(count);
        search
    }

    /// Whether this is the name of a node. The tag is the name's.
    fn has_name(&self, node: &Node, name: &str, tag: Tag) -> bool {
        (node.escaped || node.tag == tag) && self.compares(node, name)
    }

    fn compares(&self, node: &Node, name: &str) -> bool {
        if node.escaped {
            return text::read_string(self.text(node.key)).is_some_and(|key| key == name);
        }
        let (start, end) = (node.key.start as usize + 1, node.key.end as usize);
        end == start + name.len() + 1 && self.ground.as_bytes()[start..end - 1] == *name.as_bytes()
    }

    fn parts(&self, of: NodeId) -> impl Iterator<Item = NodeId> {
        std::iter::successors(self.node(of).first, |id| self.node(*id).next)
    }

    /// Makes nodes of the parts of an array or object, if that isn't done yet.
    fn open(&mut self, id: NodeId) -> Shape {
        let node = *self.node(id);
        if node.shape != Shape::Closed {
            return node.shape;
        }
        let shape = match self.ground.as_bytes()[node.value.start as usize..].first() {
            Some(b'{') => Shape::Object,
            Some(b'[') => Shape::Array,
            _ => return Shape::Closed,
        };
        let begun = self.nodes.len();
        self.pass(node.value.length() / BYTES_PER_PART);
        self.read_parts(node.value.start as usize, shape == Shape::Object);
        let first = (self.nodes.len() > begun).then(|| NodeId(offset(begun)));
        let node = self.node_mut(id);
        (node.shape, node.first) = (shape, first);
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
            let following = self.nodes.len() + 1;
            let tag = json.get(start + 1..key_end.saturating_sub(1)).map_or_else(Tag::default, Tag::of);
            self.nodes.push(Node {
                tag,
                next: next.map(|_| NodeId(offset(following))),
                escaped,
                whole: true,
                ..Node::closed(Span::new(start, key_end), Span::new(value, end))
            });
        }
    }
}

impl Node {
    const fn closed(key: Span, value: Span) -> Self {
        Self {
            key,
            tag: Tag(0),
            value,
            next: None,
            first: None,
            shape: Shape::Closed,
            stale: false,
            escaped: false,
            whole: false,
        }
    }
}
