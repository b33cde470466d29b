//! The form of a body, as its sender declares it.

/// How the records of a body are separated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One record a line.
    Lines,
    /// An array if the body is one, else lines; an array with a fault is rejected.
    Array,
    /// An array if the whole body is one, else lines: a first line that is a faulty array is a rejected line.
    Detect,
}

impl Form {
    /// The form that a Content-Type names; its case and parameters don't matter. `""` means that there is none.
    #[must_use]
    pub fn of_content_type(content_type: &str) -> Self {
        let media_type = content_type.split(';').next().unwrap_or_default().trim();
        if media_type.eq_ignore_ascii_case("application/x-ndjson") {
            Self::Lines
        } else if media_type.eq_ignore_ascii_case("application/json") {
            Self::Array
        } else {
            Self::Detect
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_content_type_decides_without_case_and_parameters() {
        for (content_type, form) in [
            ("application/x-ndjson", Form::Lines),
            ("Application/X-NDJSON ; charset=utf-8", Form::Lines),
            ("application/json", Form::Array),
            ("application/JSON;charset=utf-8", Form::Array),
            ("", Form::Detect),
            ("text/plain", Form::Detect),
            ("application/json-seq", Form::Detect),
            ("application/x-www-form-urlencoded", Form::Detect),
        ] {
            assert_eq!(Form::of_content_type(content_type), form, "{content_type}");
        }
    }
}
