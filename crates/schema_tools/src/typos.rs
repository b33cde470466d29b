//! Names in a schema that are no keywords, and nearly one: the standard lets a schema have any names, and what has a slip in it
//! asserts nothing.

use did_you_mean::nearest;

/// All keywords of all drafts, in the order of their bytes: those too that assert nothing.
const KEYWORDS: [&str; 65] = [
    "$anchor",
    "$comment",
    "$defs",
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
    "$recursiveAnchor",
    "$recursiveRef",
    "$ref",
    "$schema",
    "$vocabulary",
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "contains",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "default",
    "definitions",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "deprecated",
    "description",
    "else",
    "enum",
    "example",
    "examples",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "id",
    "if",
    "items",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "nullable",
    "oneOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "properties",
    "propertyNames",
    "readOnly",
    "required",
    "then",
    "title",
    "type",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
    "writeOnly",
];

/// Of these OpenAPI's: nobody means them who writes something else.
const NEVER_MEANT: [&str; 2] = ["example", "nullable"];

/// What is to be said of a name that is no keyword and nearly one: a remark for
/// [`Schema::compile_with_remarks`](schema::Schema::compile_with_remarks).
#[must_use]
pub fn misspelt_keyword(name: &str) -> Option<String> {
    let keyword = meant(name)?;
    Some(format!("`{name}` is no keyword, and asserts nothing; did you mean `{keyword}`?"))
}

/// The keyword that a name was probably meant to be, if it isn't one.
fn meant(name: &str) -> Option<&'static str> {
    if KEYWORDS.binary_search(&name).is_ok() || name.starts_with("x-") {
        return None;
    }
    nearest(name, KEYWORDS).filter(|near| !NEVER_MEANT.contains(near))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typos_are_found_and_other_names_ignored() {
        assert!(KEYWORDS.is_sorted());
        for (name, keyword) in [
            ("requird", "required"),
            ("propertys", "properties"),
            ("minlength", "minLength"),
            ("additionalproperties", "additionalProperties"),
            ("types", "type"),
            ("$deffs", "$defs"),
            ("oneof", "oneOf"),
        ] {
            assert_eq!(meant(name), Some(keyword), "{name}");
        }
        for name in ["required", "example", "x-types", "owner", "markdownDescription", "ui:order", "nullable"] {
            assert_eq!(meant(name), None, "{name}");
        }
    }
}
