//! What a request's head says about its events.

use event::limits::KEY_BYTES_MAX;
use hyper::HeaderMap;
use hyper::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, EXPECT, HeaderValue};
use pipeline::batch::Form;

use crate::code::Code;
use crate::problem::{Problem, Refused};
use crate::route::RouteName;
use crate::type_cache::{Slot, TypeCache};

const FOREBAY_TYPE: &str = "forebay-type";
const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// The type of an event for which nothing names another.
pub(crate) const DEFAULT_TYPE: &str = "event";

/// The headers that matter. They are found in one pass: a look-up of each would cost more.
#[derive(Default)]
pub(crate) struct Headers<'a> {
    encoding: Option<&'a HeaderValue>,
    type_name: Option<&'a HeaderValue>,
    key: Option<&'a HeaderValue>,
    content_type: Option<&'a HeaderValue>,
    accept: Option<&'a HeaderValue>,
    pub(crate) expects_continue: bool,
}

impl<'a> Headers<'a> {
    pub(crate) fn find(headers: &'a HeaderMap) -> Self {
        let mut found = Self::default();
        for (name, value) in headers {
            if name == CONTENT_TYPE {
                found.content_type = Some(value);
            } else if name == CONTENT_ENCODING {
                found.encoding = Some(value);
            } else if name == ACCEPT {
                found.accept = Some(value);
            } else if name == EXPECT {
                found.expects_continue = true;
            } else if name == FOREBAY_TYPE {
                found.type_name = Some(value);
            } else if name == IDEMPOTENCY_KEY {
                found.key = Some(value);
            }
        }
        found
    }

    fn form(&self) -> Form {
        Form::of_content_type(self.content_type.and_then(|value| value.to_str().ok()).unwrap_or_default())
    }

    fn wants_json(&self) -> bool {
        let is_json = |range: &str| range.split(';').next().is_some_and(|name| name.trim() == "application/json");
        self.accept.and_then(|value| value.to_str().ok()).is_some_and(|ranges| ranges.split(',').any(is_json))
    }

    fn check_encoding(&self) -> Result<(), Refused> {
        match self.encoding {
            Some(coding) if !coding.as_bytes().eq_ignore_ascii_case(b"identity") => {
                Err(Problem::boxed(Code::ContentEncoding, "send the body without a Content-Encoding"))
            }
            _ => Ok(()),
        }
    }
}

/// What a request says about its events, checked.
#[derive(Default)]
pub(crate) struct Wishes {
    /// The type, unless each payload names its own.
    pub(crate) slot: Option<Slot>,
    pub(crate) key: Option<HeaderValue>,
    /// A single event's answer says where it stands.
    pub(crate) json: bool,
    /// How the records of a batch are told apart.
    pub(crate) form: Option<Form>,
}

impl Wishes {
    /// # Errors
    /// The request can't be taken whatever its body says.
    pub(crate) fn of(
        headers: &Headers<'_>,
        route: RouteName,
        path_type: Option<&str>,
        types: &mut TypeCache,
    ) -> Result<Self, Refused> {
        if !route.takes_events() {
            return Ok(Self::default());
        }
        headers.check_encoding()?;
        if let Some(key) = headers.key {
            check_key(key.as_bytes(), "the Idempotency-Key")?;
        }
        // A header that is no text is no name either.
        let header_type = || headers.type_name.map(|value| value.to_str().unwrap_or_default());
        let slot = match path_type.or_else(header_type) {
            Some(name) => Some(types.find(name)?),
            None if types.table().type_pointer.is_some() => None,
            None => Some(types.find(DEFAULT_TYPE)?),
        };
        // Only a batch cares for the form.
        let form = (route == RouteName::Batch).then(|| headers.form());
        Ok(Self { slot, key: headers.key.cloned(), json: headers.wants_json(), form })
    }
}

/// # Errors
/// The text can't be a key.
pub(crate) fn check_key(key: &[u8], what: &str) -> Result<(), Problem> {
    if key.is_empty() {
        return Err(Problem::new(Code::Key, format!("{what} is empty")));
    }
    if key.len() > KEY_BYTES_MAX {
        return Err(Problem::new(
            Code::Key,
            format!("{what} has {} bytes; at most {KEY_BYTES_MAX} are taken", key.len()),
        ));
    }
    Ok(())
}
