//! One document as a tree that is opened only where a step needs it. Everything else stays the original text, and is
//! copied unchanged.
//!
//! All text is in one buffer, the ground: first the received document, after it the output of steps. Nodes refer to
//! ranges of it. So nothing is borrowed, and the buffers are reused for the next document.

mod edit;
mod keep;
mod parts;
mod sole;
mod write;

use std::cell::Cell;

use limits::{JSON_DEPTH_MAX, TRANSFORM_BYTES_MAX};

use json::JsonPointer;
use json::pointer::PointerStep;
use json::text;
use parts::{Parts, Tag};

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

/// Bytes that are read in the time in which a part is skipped.
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
    /// The name with its quotes, if it is a member.
    key: Span,
    /// The value as text; out of date if the node is stale.
    value: Span,
    /// The next member or element of the same object or array.
    next: Option<NodeId>,
    /// The number of its parts' list, if it isn't closed.
    parts: u32,
    shape: Shape,
    /// Whether its parts were changed since it was text.
    stale: bool,
    /// Whether there are escapes in its name.
    escaped: bool,
    /// Whether name and value are in the ground as a member, one after the other.
    whole: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// A value that hasn't been read.
    Closed,
    Object,
    Array,
}

/// The result of a search for a member.
struct Found {
    /// The last of that name.
    found: Option<NodeId>,
    /// Whether there are others.
    is_repeated: bool,
}

/// Why a tree can't be changed that way.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum EditError {
    #[error("{0} is {1}, not an object or an array")]
    NoContainer(String, &'static str),
    #[error("the array has {0} elements: add one with number {0} or `-`")]
    NoSuchElement(usize),
    #[error("arrays and objects would nest deeper than {JSON_DEPTH_MAX} levels")]
    TooDeep,
    #[error("the steps create more than {TRANSFORM_BYTES_MAX} bytes for this event")]
    TooLong,
}

/// A document that is being changed.
#[derive(Debug, Default)]
pub(super) struct Tree {
    ground: String,
    nodes: Vec<Node>,
    /// The tag of each node's name.
    tags: Vec<Tag>,
    /// The parts of those that are open.
    parts: Vec<Parts>,
    /// Whether any node but the document as a whole was stale.
    has_stale_parts: bool,
    /// Whether the nodes after the first are the document's members, though it is closed.
    has_members: bool,
    /// Bytes of the ground that are the received document.
    source: usize,
    spare: String,
    /// Parts that searches have skipped.
    passed: Cell<usize>,
}

/// Buffers of this size are kept for the next document; larger ones are freed.
pub(super) const KEPT_BYTES: usize = 64 * 1024;
const KEPT_NODES: usize = 2048;

impl Tree {
    /// Begins with a document, which has passed [`json::check`].
    pub(super) fn read(&mut self, json: &str) {
        self.ground.clear();
        self.nodes.clear();
        self.tags.clear();
        self.parts.clear();
        self.ground.shrink_to(KEPT_BYTES);
        self.nodes.shrink_to(KEPT_NODES);
        self.tags.shrink_to(KEPT_NODES);
        self.parts.shrink_to(KEPT_NODES);
        self.spare.shrink_to(KEPT_BYTES);
        self.ground.push_str(json);
        self.source = json.len();
        (self.has_stale_parts, self.has_members) = (false, false);
        self.push(Node::closed(Span::default(), Span::new(0, json.len())), Tag::default());
    }

    /// Whether it differs from the document with which it began.
    pub(super) fn is_changed(&self) -> bool {
        let root = &self.nodes[0];
        root.stale || (root.value != Span::new(0, self.source) && self.text(root.value) != &self.ground[..self.source])
    }

    /// How many parts searches have skipped since the last call.
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

    /// The value at the pointer, as text; `None` if there is none. Of members of the same name the last counts.
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
        let is_open = self.open(NodeId::ROOT) != Shape::Closed;
        if is_open {
            self.refresh_members(names)?;
        }
        let this = &*self;
        let found = |name: &String| if is_open { this.member(NodeId::ROOT, name).found } else { None };
        let fields = names.iter().map(|name| found(name).map(|id| this.text(this.node(id).value))).collect();
        let document = if with_document { this.text(this.nodes[0].value) } else { "" };
        Ok((document, fields))
    }

    /// Creates texts of the members that have these names.
    fn refresh_members(&mut self, names: &[String]) -> Result<(), EditError> {
        self.pass(self.parts_of(NodeId::ROOT).count);
        if !self.has_stale_parts {
            return Ok(());
        }
        let mut next = self.parts_of(NodeId::ROOT).first;
        while let Some(id) = next {
            next = self.node(id).next;
            if self.node(id).stale && names.iter().any(|name| self.has_name(id, name, Tag::of(name.as_bytes()))) {
                self.refresh(id)?;
            }
        }
        Ok(())
    }

    fn find(&mut self, pointer: &JsonPointer) -> Option<NodeId> {
        let mut id = NodeId::ROOT;
        for step in pointer.steps() {
            id = self.part(id, step)?;
        }
        Some(id)
    }

    fn part(&mut self, of: NodeId, step: &PointerStep) -> Option<NodeId> {
        match self.open(of) {
            Shape::Object => self.member(of, &step.name).found,
            Shape::Array => {
                let index = step.index?;
                self.pass(index.min(self.nodes.len()));
                self.each_part(of).nth(index)
            }
            Shape::Closed => None,
        }
    }
}

impl Node {
    const fn closed(key: Span, value: Span) -> Self {
        Self { key, value, next: None, parts: 0, shape: Shape::Closed, stale: false, escaped: false, whole: false }
    }
}
