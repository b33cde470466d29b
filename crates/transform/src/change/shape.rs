//! Flattens nested objects into one, and nests them again.

use std::collections::HashMap;

use limits::{EVENT_BYTES_MAX, JSON_DEPTH_MAX};

use super::{Changed, check_room, unfit};
use crate::budget::Budget;
use json::{parts, text};

/// Flattens nested objects into one: `{"a":{"b":1}}` becomes `{"a.b":1}`.
#[derive(Clone, Debug)]
pub(crate) struct Flatten {
    pub(crate) by: String,
    /// Whether elements of arrays become members too.
    pub(crate) arrays: bool,
}

/// Members in their order, of those of the same name only the last.
#[derive(Default)]
struct Flat<'j> {
    members: Vec<(String, &'j str)>,
    places: HashMap<String, usize>,
    bytes: usize,
}

impl Flatten {
    pub(super) fn apply(&self, json: &str, out: &mut String, budget: &mut Budget) -> Changed {
        let takes_parts = json.starts_with('{') || (self.arrays && json.starts_with('['));
        if !takes_parts {
            return unfit(json, "an object");
        }
        let mut flat = Flat::default();
        self.flatten(json, None, &mut flat, budget)?;
        out.push('{');
        for (number, (name, value)) in flat.members.iter().enumerate() {
            out.push_str(if number == 0 { "" } else { "," });
            text::write_string(name, out);
            out.push(':');
            out.push_str(value);
            check_room(out)?;
        }
        out.push('}');
        Ok(())
    }

    /// The recursion is as deep as the value. A value without parts is the result itself. The name is that of the
    /// value, except for the whole.
    fn flatten<'j>(&self, json: &'j str, name: Option<&str>, flat: &mut Flat<'j>, budget: &mut Budget) -> Changed {
        // Each level reads what is within it.
        budget.spend(json.len())?;
        budget.spend_named()?;
        let mut has_parts = false;
        for member in parts::members(json) {
            has_parts = true;
            self.flatten(member.value, Some(&self.joined(name, &member.name())), flat, budget)?;
        }
        for (number, value) in parts::elements(json).enumerate().take(if self.arrays { usize::MAX } else { 0 }) {
            has_parts = true;
            self.flatten(value, Some(&self.joined(name, &number.to_string())), flat, budget)?;
        }
        match name {
            Some(name) if !has_parts => flat.push(name, json),
            _ => Ok(()),
        }
    }

    fn joined(&self, name: Option<&str>, key: &str) -> String {
        name.map_or_else(|| key.to_owned(), |name| format!("{name}{}{key}", self.by))
    }
}

impl<'j> Flat<'j> {
    fn push(&mut self, name: &str, value: &'j str) -> Changed {
        self.bytes += name.len() + value.len();
        if self.bytes > EVENT_BYTES_MAX {
            return Err(format!("the result has more than {EVENT_BYTES_MAX} bytes: send a smaller event"));
        }
        if let Some(place) = self.places.get(name) {
            self.members[*place].1 = value;
            return Ok(());
        }
        self.places.insert(name.to_owned(), self.members.len());
        self.members.push((name.to_owned(), value));
        Ok(())
    }
}

/// Nests the members of one object: `{"a.b":1}` becomes `{"a":{"b":1}}`.
#[derive(Clone, Debug)]
pub(crate) struct Unflatten {
    pub(crate) by: String,
}

/// Objects that one may become: each costs memory in addition to its text.
const OBJECTS_MAX: usize = 10_000;

enum Branch<'j> {
    Value(&'j str),
    Object(Object<'j>),
}

#[derive(Default)]
struct Object<'j> {
    members: Vec<(String, Branch<'j>)>,
    places: HashMap<String, usize>,
}

impl Unflatten {
    pub(super) fn apply(&self, json: &str, out: &mut String, budget: &mut Budget) -> Changed {
        if !json.starts_with('{') {
            return unfit(json, "an object");
        }
        let (mut root, mut objects) = (Object::default(), 0);
        for member in parts::members(json) {
            budget.spend_named()?;
            self.put(&mut root, &member.name(), member.value, &mut objects)?;
        }
        root.write(out);
        Ok(())
    }

    fn put<'j>(&self, root: &mut Object<'j>, name: &str, value: &'j str, objects: &mut usize) -> Changed {
        let (mut object, mut rest) = (root, name);
        for _ in 0..JSON_DEPTH_MAX {
            let Some((part, following)) = rest.split_once(self.by.as_str()) else {
                return object.set(rest, value, name);
            };
            object = object.enter(part, objects).ok_or_else(|| both(name))?;
            if *objects > OBJECTS_MAX {
                return Err(format!("the result has more than {OBJECTS_MAX} objects: send a smaller event"));
            }
            rest = following;
        }
        Err(format!("arrays and objects would nest deeper than {JSON_DEPTH_MAX} levels: shorten the name"))
    }
}

fn both(name: &str) -> String {
    let shown: String = name.chars().take(60).collect();
    format!("`{shown}` is within a member that already has a value")
}

impl<'j> Object<'j> {
    fn branch(&mut self, name: &str, new: Branch<'j>) -> &mut Branch<'j> {
        let place = self.places.get(name).copied().unwrap_or_else(|| {
            self.places.insert(name.to_owned(), self.members.len());
            self.members.push((name.to_owned(), new));
            self.members.len() - 1
        });
        &mut self.members[place].1
    }

    /// Counts the new objects.
    fn enter(&mut self, name: &str, objects: &mut usize) -> Option<&mut Self> {
        *objects += usize::from(!self.places.contains_key(name));
        match self.branch(name, Branch::Object(Self::default())) {
            Branch::Object(object) => Some(object),
            Branch::Value(_) => None,
        }
    }

    fn set(&mut self, name: &str, value: &'j str, whole: &str) -> Changed {
        match self.branch(name, Branch::Value(value)) {
            Branch::Value(place) => {
                *place = value;
                Ok(())
            }
            Branch::Object(_) => Err(both(whole)),
        }
    }

    /// The recursion is as deep as names have parts, of which there are no more than levels.
    fn write(&self, out: &mut String) {
        out.push('{');
        for (number, (name, branch)) in self.members.iter().enumerate() {
            out.push_str(if number == 0 { "" } else { "," });
            text::write_string(name, out);
            out.push(':');
            match branch {
                Branch::Value(json) => out.push_str(json),
                Branch::Object(object) => object.write(out),
            }
        }
        out.push('}');
    }
}
