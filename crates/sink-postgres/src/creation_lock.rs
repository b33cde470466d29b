//! The advisory lock of those that create tables.

/// Two that make tables at the same time wait for each other; the number is only Forebay's own.
pub(super) const MAKING: i64 = 0x666f_7265_6261_7900;
