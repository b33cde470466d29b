//! What puts Forebay under load and looks at what came of it.

pub mod generator;
