//! Access: tokens, their scopes, and the sources of their events. Nothing here reads a file or a clock.
//!
//! A token is a random secret that its owner sends with each request. Only its SHA-256 is kept: a random secret can't be guessed, so it
//! needs no slow hash.

mod name;
mod own_tokens;
mod page;
mod partial;
mod scope;
mod secret;
mod sessions;
mod set;
mod shown;
mod spilt;
mod token;
mod tokens;
mod type_patterns;

pub use name::{InvalidName, Name, TokenNameRule};
pub use own_tokens::OwnTokens;
pub use page::{is_known_host, is_own_origin};
pub use partial::{InvalidPartialStatus, PartialStatus};
pub use scope::{Scope, Scopes, UnknownScope};
pub use secret::{Digest, InvalidDigest, InvalidToken, NewToken, RANDOM_BYTES};
pub use sessions::{HALF_BYTES, NewSession, Now, OpenSession, SessionId, Sessions};
pub use set::{Demand, Denied, TokenSet};
pub use shown::{SeveralCredentials, ShownToken};
pub use spilt::{contains_token, hide_tokens, token_ranges};
pub use token::Token;
pub use tokens::Tokens;
pub use type_patterns::{InvalidTypePattern, TypePattern, TypePatterns};
