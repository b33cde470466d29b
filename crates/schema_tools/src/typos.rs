//! Names in a schema that are almost a keyword: the standard allows any names in a schema, and a misspelt keyword asserts nothing.

use did_you_mean::nearest;

/// All keywords of all drafts, sorted by bytes, including those that assert nothing.
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

/// OpenAPI's keywords among them, which are never suggested.
const NEVER_SUGGESTED: [&str; 2] = ["example", "nullable"];

/// The remark on a name that is almost a keyword, for [`Schema::compile_with_remarks`](schema::Schema::compile_with_remarks).
#[must_use]
pub fn misspelt_keyword(name: &str) -> Option<String> {
    let keyword = meant(name)?;
    Some(format!("`{name}` is not a keyword, and checks nothing; did you mean `{keyword}`?"))
}

/// The keyword that a name probably misspells, if it isn't one.
fn meant(name: &str) -> Option<&'static str> {
    if KEYWORDS.binary_search(&name).is_ok() || name.starts_with("x-") {
        return None;
    }
    nearest(name, KEYWORDS).filter(|near| !NEVER_SUGGESTED.contains(near))
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
