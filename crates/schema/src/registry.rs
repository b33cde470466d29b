//! The documents of a schema, and the names of their parts.

use std::collections::{BTreeMap, HashMap};

use super::draft::{Draft, Holds};
use super::error::InvalidSchema;
use super::ids::ResourceId;

use super::{Documents, uri};
use json::IndexedText;
use json::pointer::push_step;
use json::{ValueKind, ValueView};

/// A value of one of the documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ValueLocation {
    pub(super) document: usize,
    pub(super) at: usize,
    /// The named schema that it belongs to.
    pub(super) resource: ResourceId,
}

/// A schema with a name.
#[derive(Debug)]
pub(super) struct Resource {
    pub(super) uri: String,
    pub(super) draft: Draft,
    document: usize,
    root: usize,
    anchors: BTreeMap<String, usize>,
    dynamic_anchors: BTreeMap<String, usize>,
    /// `$recursiveAnchor` is true.
    pub(super) is_recursive: bool,
}

#[derive(Debug)]
struct Source {
    name: String,
    value: IndexedText,
    /// The parent of each value, so a place in a large document is named without a search through all of it.
    parents: Vec<Parent>,
}

/// The parent of a value, and its name or number there.
#[derive(Clone, Copy, Debug, Default)]
struct Parent {
    at: usize,
    index: Option<usize>,
}

impl Source {
    fn new(name: &str, text: &str) -> Self {
        let value = IndexedText::new(text);
        let view = value.view();
        let mut parents = vec![Parent::default(); view.count()];
        for at in 0..view.count() {
            let is_array = view.kind(at) == ValueKind::Array;
            for (index, child) in view.children(at).enumerate() {
                parents[child] = Parent { at, index: Some(index).filter(|_| is_array) };
            }
        }
        Self { name: name.to_owned(), value, parents }
    }

    fn pointer(&self, mut at: usize) -> String {
        let mut steps = Vec::new();
        while at > 0 {
            let Parent { at: parent, index } = self.parents[at];
            steps.push((at, index));
            at = parent;
        }
        let mut pointer = String::new();
        for (at, index) in steps.into_iter().rev() {
            match index {
                Some(index) => push_step(&mut pointer, &index.to_string()),
                // In an object a value follows its name.
                None => push_step(&mut pointer, &self.value.view().text(at - 1)),
            }
        }
        pointer
    }
}

/// The documents that are referred to, read on demand.
#[derive(Debug)]
pub(super) struct Registry<'m> {
    given: &'m Documents,
    sources: Vec<Source>,
    resources: Vec<Resource>,
    by_uri: HashMap<String, ResourceId>,
    roots: HashMap<(usize, usize), ResourceId>,
    /// Parts that were referred to, by resource and fragment.
    found: HashMap<(ResourceId, String), (usize, ResourceId)>,
}

impl<'m> Registry<'m> {
    pub(super) fn new(given: &'m Documents) -> Self {
        Self {
            given,
            sources: Vec::new(),
            resources: Vec::new(),
            by_uri: HashMap::new(),
            roots: HashMap::new(),
            found: HashMap::new(),
        }
    }

    /// Adds a document and gives its root.
    ///
    /// # Errors
    /// It isn't JSON, or has an invalid name.
    pub(super) fn add(&mut self, name: &str, text: &str, draft: Draft) -> Result<ValueLocation, InvalidSchema> {
        let document = self.sources.len();
        json::check(text.as_bytes()).map_err(|error| InvalidSchema {
            document: name.to_owned(),
            pointer: String::new(),
            span: error.offset..error.offset + 1,
            message: format!("invalid JSON: {}", error.detail),
            missing: None,
        })?;
        self.sources.push(Source::new(name, text));
        let resource = self.new_resource(name.to_owned(), draft, document, 0);
        let resource = self.walk(document, 0, resource)?;
        self.by_uri.entry(name.to_owned()).or_insert(resource);
        Ok(ValueLocation { document, at: 0, resource })
    }

    /// The names of all documents but the first.
    pub(super) fn referred_to(&self) -> Vec<String> {
        self.sources.iter().skip(1).map(|source| source.name.clone()).collect()
    }

    pub(super) fn view(&self, document: usize) -> ValueView<'_> {
        self.sources[document].value.view()
    }

    pub(super) fn resource(&self, id: ResourceId) -> &Resource {
        &self.resources[id.0]
    }

    /// The schemas that a dynamic anchor names, one for each resource that has it.
    pub(super) fn dynamic(&self, anchor: &str) -> Vec<ValueLocation> {
        let place = |(number, resource): (usize, &Resource)| {
            let at = *resource.dynamic_anchors.get(anchor)?;
            Some(ValueLocation { document: resource.document, at, resource: ResourceId(number) })
        };
        self.resources.iter().enumerate().filter_map(place).collect()
    }

    /// The roots of the resources whose `$recursiveAnchor` is true.
    pub(super) fn recursive(&self) -> Vec<ValueLocation> {
        let numbered = self.resources.iter().enumerate().filter(|(_, resource)| resource.is_recursive);
        let place = |(number, resource): (usize, &Resource)| ValueLocation {
            document: resource.document,
            at: resource.root,
            resource: ResourceId(number),
        };
        numbered.map(place).collect()
    }

    /// How a place is named in messages: the first document by its pointer alone.
    pub(super) fn location(&self, place: ValueLocation) -> String {
        let source = &self.sources[place.document];
        let pointer = source.pointer(place.at);
        if place.document == 0 { pointer } else { format!("{}#{pointer}", source.name) }
    }

    pub(super) fn mistake(&self, place: ValueLocation, message: impl Into<String>) -> InvalidSchema {
        let view = self.view(place.document);
        InvalidSchema {
            document: self.sources[place.document].name.clone(),
            pointer: view.pointer(place.at),
            span: view.span(place.at),
            message: message.into(),
            missing: None,
        }
    }

    fn new_resource(&mut self, uri: String, draft: Draft, document: usize, root: usize) -> ResourceId {
        let id = ResourceId(self.resources.len());
        let (anchors, dynamic_anchors) = (BTreeMap::new(), BTreeMap::new());
        self.resources.push(Resource { uri, draft, document, root, anchors, dynamic_anchors, is_recursive: false });
        self.roots.insert((document, root), id);
        id
    }

    /// Registers the names in a schema and its subschemas. Returns its resource.
    fn walk(&mut self, document: usize, at: usize, parent: ResourceId) -> Result<ResourceId, InvalidSchema> {
        if self.view(document).kind(at) != ValueKind::Object {
            return Ok(parent);
        }
        let resource = self.named(ValueLocation { document, at, resource: parent })?;
        let draft = self.resource(resource).draft;
        let text = |registry: &Self, keyword: &str| {
            let view = registry.view(document);
            view.member(at, keyword).filter(|at| view.kind(*at) == ValueKind::Text).map(|at| view.text(at).into_owned())
        };
        if draft >= Draft::Of2019
            && let Some(anchor) = text(self, "$anchor")
        {
            self.resources[resource.0].anchors.insert(anchor, at);
        }
        if draft >= Draft::Of2020
            && let Some(anchor) = text(self, "$dynamicAnchor")
        {
            self.resources[resource.0].anchors.insert(anchor.clone(), at);
            self.resources[resource.0].dynamic_anchors.insert(anchor, at);
        }
        let view = self.view(document);
        let is_ref = draft.ref_is_alone() && view.member(at, "$ref").is_some();
        let within: Vec<usize> = if is_ref { self.definitions(document, at) } else { schemas_within(view, at, draft) };
        for child in within {
            self.walk(document, child, resource)?;
        }
        Ok(resource)
    }

    /// If a `$ref` ignores its neighbours, only definitions for other schemas count.
    fn definitions(&self, document: usize, at: usize) -> Vec<usize> {
        let view = self.view(document);
        let named = view.member(at, "definitions").into_iter();
        named.flat_map(|named| view.members(named).map(|(_, value)| value)).collect()
    }

    /// The resource that a schema is, or belongs to.
    fn named(&mut self, place: ValueLocation) -> Result<ResourceId, InvalidSchema> {
        let ValueLocation { document, at, resource: parent } = place;
        let (view, draft) = (self.view(document), self.resource(parent).draft);
        let is_root = at == 0;
        let draft = match view.member(at, "$schema").filter(|name| view.kind(*name) == ValueKind::Text) {
            Some(name) if is_root || view.member(at, draft.id_keyword()).is_some() => Draft::of_name(&view.text(name))
                .ok_or_else(|| {
                    let wanted = "unknown draft: use 2020-12, 2019-09, draft-07, draft-06 or draft-04";
                    self.mistake(ValueLocation { at: name, ..place }, wanted)
                })?,
            _ => draft,
        };
        let view = self.view(document);
        let is_recursive = draft == Draft::Of2019
            && view.member(at, "$recursiveAnchor").is_some_and(|value| view.raw(value) == "true");
        let is_alone = draft.ref_is_alone() && view.member(at, "$ref").is_some();
        let id = view.member(at, draft.id_keyword()).filter(|id| view.kind(*id) == ValueKind::Text && !is_alone);
        let id = id.map(|id| view.text(id).into_owned());
        let mut resource = parent;
        if is_root {
            self.resources[parent.0].draft = draft;
        }
        if let Some(id) = id {
            let (name, anchor) = uri::split_fragment(&id);
            let uri = uri::resolve(&self.resource(parent).uri, name);
            if !name.is_empty() {
                if is_root {
                    self.resources[parent.0].uri.clone_from(&uri);
                } else {
                    resource = self.new_resource(uri.clone(), draft, document, at);
                }
                self.by_uri.entry(uri).or_insert(resource);
            }
            if !anchor.is_empty() && draft <= Draft::Seven {
                self.resources[resource.0].anchors.insert(anchor, at);
            }
        }
        self.resources[resource.0].is_recursive |= is_recursive;
        Ok(resource)
    }

    /// The target of a reference at `from`.
    ///
    /// # Errors
    /// It doesn't exist.
    pub(super) fn find(&mut self, from: ValueLocation, reference: &str) -> Result<ValueLocation, InvalidSchema> {
        let (name, fragment) = uri::split_fragment(reference);
        let uri = uri::resolve(&self.resource(from.resource).uri, name);
        let Some(id) = self.load(&uri, from)? else {
            let message = format!("`{reference}` refers to `{uri}`, which does not exist: correct the reference");
            return Err(InvalidSchema { missing: Some(uri), ..self.mistake(from, message) });
        };
        let document = self.resource(id).document;
        let key = (id, fragment);
        if let Some((at, resource)) = self.found.get(&key) {
            return Ok(ValueLocation { document, at: *at, resource: *resource });
        }
        let found = self.part(id, &key.1);
        let (at, resource) = found.ok_or_else(|| {
            self.mistake(from, format!("`{reference}` refers to a part that does not exist: correct the reference"))
        })?;
        self.found.insert(key, (at, resource));
        Ok(ValueLocation { document, at, resource })
    }

    /// The part of a resource that a fragment names.
    fn part(&self, id: ResourceId, fragment: &str) -> Option<(usize, ResourceId)> {
        let resource = self.resource(id);
        match fragment {
            "" => Some((resource.root, id)),
            pointer if pointer.starts_with('/') => self.follow(resource.document, resource.root, id, pointer),
            anchor => resource.anchors.get(anchor).map(|at| (*at, id)),
        }
    }

    /// Whether the target of a reference is a dynamic anchor of this name.
    pub(super) fn is_dynamic(&self, place: ValueLocation, anchor: &str) -> bool {
        self.resource(place.resource).dynamic_anchors.get(anchor) == Some(&place.at)
    }

    fn load(&mut self, uri: &str, from: ValueLocation) -> Result<Option<ResourceId>, InvalidSchema> {
        if let Some(id) = self.by_uri.get(uri) {
            return Ok(Some(*id));
        }
        let Some(text) = self.given.get(uri) else { return Ok(None) };
        let draft = self.resource(from.resource).draft;
        let place = self.add(uri, text, draft)?;
        Ok(Some(place.resource))
    }

    fn follow(&self, document: usize, root: usize, id: ResourceId, pointer: &str) -> Option<(usize, ResourceId)> {
        let view = self.view(document);
        pointer.split('/').skip(1).try_fold((root, id), |(at, id), step| {
            let name = step.replace("~1", "/").replace("~0", "~");
            let at = match view.kind(at) {
                ValueKind::Object => view.member(at, &name)?,
                ValueKind::Array => view.children(at).nth(name.parse().ok()?)?,
                _ => return None,
            };
            Some((at, self.roots.get(&(document, at)).copied().unwrap_or(id)))
        })
    }

    /// The place of a schema within another; it may have its own name.
    pub(super) fn within(&self, parent: ValueLocation, at: usize) -> ValueLocation {
        let resource = self.roots.get(&(parent.document, at)).copied().unwrap_or(parent.resource);
        ValueLocation { at, resource, ..parent }
    }
}

fn schemas_within(view: ValueView<'_>, at: usize, draft: Draft) -> Vec<usize> {
    let mut found = Vec::new();
    for (name, value) in view.members(at) {
        match (draft.holds(&view.text(name)), view.kind(value)) {
            (Some(Holds::One | Holds::Either), ValueKind::Object) => found.push(value),
            (Some(Holds::List | Holds::Either), ValueKind::Array) => found.extend(view.children(value)),
            (Some(Holds::Named), ValueKind::Object) => found.extend(view.members(value).map(|(_, schema)| schema)),
            _ => {}
        }
    }
    found
}
