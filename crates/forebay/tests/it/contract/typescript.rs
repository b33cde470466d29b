//! Reads a file of TypeScript types: interfaces, aliases, unions, literals, arrays, optional members, objects, index signatures and `unknown`.
//! Anything else is an error.

use std::collections::BTreeMap;

/// A type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Type {
    /// Any value.
    Unknown,
    /// Any text.
    Text,
    /// Any number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// Exactly this value, as JSON.
    Literal(String),
    /// An interface or alias of this name.
    Named(String),
    /// A list of such values.
    List(Box<Self>),
    /// One of these.
    OneOf(Vec<Self>),
    /// An object.
    Object(Object),
}

/// An object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Object {
    /// Its members: the type of each, and whether it may be missing.
    pub(super) members: BTreeMap<String, (Type, bool)>,
    /// The type of all others, if there may be others.
    pub(super) others: Option<Box<Type>>,
}

/// The types of a file.
#[derive(Clone, Debug, Default)]
pub(super) struct Types {
    /// By name.
    pub(super) types: BTreeMap<String, Type>,
    /// The comments directly above types, without their signs, by the names of the types.
    pub(super) comments: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    /// A literal, as JSON.
    Literal(String),
    Sign(char),
    Comment(String),
}

/// Reads a file.
///
/// # Panics
/// The file has something else than these types.
pub(super) fn read(text: &str) -> Types {
    let mut reader = Reader { tokens: tokens(text), at: 0 };
    let mut found = Types::default();
    while reader.peek().is_some() {
        reader.definition(&mut found);
    }
    found
}

fn tokens(text: &str) -> Vec<Token> {
    let (mut found, mut rest) = (Vec::new(), text.trim_start());
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            let end = rest.find("*/").expect("a comment has an end");
            let lines = rest[2..end].lines().map(|line| line.trim().trim_start_matches('*').trim());
            found.push(Token::Comment(lines.collect::<Vec<_>>().join(" ").trim().to_owned()));
            end + 2
        } else if first == '"' {
            let end = 1 + rest[1..].find('"').expect("a string has an end");
            found.push(Token::Literal(rest[..=end].to_owned()));
            end + 1
        } else if first.is_alphanumeric() || first == '_' {
            let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
            let word = rest[..end].to_owned();
            let is_literal = first.is_ascii_digit() || ["null", "true", "false"].contains(&&*word);
            found.push(if is_literal { Token::Literal(word) } else { Token::Word(word) });
            end
        } else {
            found.push(Token::Sign(first));
            first.len_utf8()
        };
        rest = rest[length..].trim_start();
    }
    found
}

struct Reader {
    tokens: Vec<Token>,
    at: usize,
}

impl Reader {
    /// The next token that isn't a comment.
    fn peek(&mut self) -> Option<&Token> {
        while matches!(self.tokens.get(self.at), Some(Token::Comment(_))) {
            self.at += 1;
        }
        self.tokens.get(self.at)
    }

    fn next(&mut self) -> Token {
        let token = self.peek().expect("the file goes on").clone();
        self.at += 1;
        token
    }

    /// Skips this sign if it comes next.
    fn skips(&mut self, sign: char) -> bool {
        let is_next = self.peek() == Some(&Token::Sign(sign));
        self.at += usize::from(is_next);
        is_next
    }

    fn sign(&mut self, sign: char) {
        let found = self.next();
        assert_eq!(found, Token::Sign(sign), "after {:?}", &self.tokens[self.at.saturating_sub(8)..self.at]);
    }

    fn word(&mut self) -> String {
        match self.next() {
            Token::Word(word) => word,
            other => panic!("{other:?} isn't a name"),
        }
    }

    fn definition(&mut self, found: &mut Types) {
        self.peek();
        let comment = self.at.checked_sub(1).map(|before| self.tokens[before].clone());
        assert_eq!(self.word(), "export", "each type is exported");
        let kind = self.word();
        let name = self.word();
        let value = match &*kind {
            "interface" => {
                let mut object = Object::default();
                if self.peek() == Some(&Token::Word("extends".into())) {
                    self.next();
                    let base = self.word();
                    match found.types.get(&base) {
                        Some(Type::Object(base)) => object = base.clone(),
                        _ => panic!("{name} extends {base}, which isn't an interface above it"),
                    }
                }
                self.object(object)
            }
            "type" => {
                self.sign('=');
                let value = self.union();
                self.sign(';');
                value
            }
            other => panic!("{name} is a {other}: use an interface or a type"),
        };
        if let Some(Token::Comment(comment)) = comment {
            found.comments.insert(name.clone(), comment);
        }
        assert!(found.types.insert(name.clone(), value).is_none(), "{name} is there twice");
    }

    fn object(&mut self, mut object: Object) -> Type {
        self.sign('{');
        while !self.skips('}') {
            if self.skips('[') {
                self.word();
                self.sign(':');
                assert_eq!(self.word(), "string", "an index is a string");
                self.sign(']');
                self.sign(':');
                object.others = Some(Box::new(self.union()));
            } else {
                let name = match self.next() {
                    Token::Word(name) => name,
                    Token::Literal(name) => name.trim_matches('"').to_owned(),
                    other => panic!("{other:?} isn't the name of a member"),
                };
                let is_optional = self.skips('?');
                self.sign(':');
                object.members.insert(name, (self.union(), is_optional));
            }
            if !self.skips(';') && !self.skips(',') {
                self.sign('}');
                break;
            }
        }
        Type::Object(object)
    }

    fn union(&mut self) -> Type {
        self.skips('|');
        let mut parts = vec![self.list()];
        while self.skips('|') {
            parts.push(self.list());
        }
        if parts.len() == 1 { parts.remove(0) } else { Type::OneOf(parts) }
    }

    fn list(&mut self) -> Type {
        let mut found = self.single();
        while self.skips('[') {
            self.sign(']');
            found = Type::List(Box::new(found));
        }
        found
    }

    fn single(&mut self) -> Type {
        if self.peek() == Some(&Token::Sign('{')) {
            return self.object(Object::default());
        }
        if self.skips('(') {
            let inner = self.union();
            self.sign(')');
            return inner;
        }
        match self.next() {
            Token::Literal(value) => Type::Literal(value),
            Token::Word(word) => match &*word {
                "unknown" => Type::Unknown,
                "string" => Type::Text,
                "number" => Type::Number,
                "boolean" => Type::Boolean,
                _ => Type::Named(word),
            },
            other => panic!("{other:?} isn't a type"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_read() {
        let found = read(
            "// a note\nexport type Scope = \"read\" | \"admin\";\n/** GET /a */\nexport interface A {\n  /** b */\n  b?: (number | null)[];\n  \
             c: { d: Scope; [more: string]: unknown };\n}\nexport interface B extends A { e: true }",
        );
        let literal = |text: &str| Type::Literal(text.to_owned());
        assert_eq!(found.types["Scope"], Type::OneOf(vec![literal("\"read\""), literal("\"admin\"")]));
        let Type::Object(a) = &found.types["A"] else { panic!("no object") };
        let numbers = Type::List(Box::new(Type::OneOf(vec![Type::Number, literal("null")])));
        assert_eq!(a.members["b"], (numbers, true));
        let (Type::Object(c), false) = &a.members["c"] else { panic!("no object") };
        assert_eq!(c.members["d"], (Type::Named("Scope".into()), false));
        assert_eq!(c.others, Some(Box::new(Type::Unknown)));
        let Type::Object(b) = &found.types["B"] else { panic!("no object") };
        assert_eq!((b.members.len(), &b.members["e"]), (3, &(literal("true"), false)));
        assert_eq!(found.comments.get("A").map(String::as_str), Some("GET /a"));
        assert!(!found.comments.contains_key("Scope"));
    }

    #[test]
    #[should_panic(expected = "isn't a type")]
    fn other_syntax_is_an_error() {
        read("export type A = <T>;");
    }
}
