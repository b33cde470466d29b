//! The settings of `[writer]`.

use crate::port::tokens;
use crate::{registration, stopping};

/// Their names, apart from those of tables.
pub(crate) const KEYS: &[&str] =
    &["listen", "admin", "allow_anonymous", stopping::DELAY, tokens::KEY, registration::ADVERTISE];
