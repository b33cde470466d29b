//! Who may: tokens, what they allow, and whose events come with them. Nothing here reads a file or a clock.
//!
//! A token is a random secret that its owner shows with each request. Only its SHA-256 is kept: what is random needs no slow
//! hash, for there is nothing to guess.

mod name;
mod own_tokens;
mod page;
mod partial;
mod scope;
mod secret;
mod set;
mod shown;
mod spilt;
mod token;
mod tokens;

pub use name::{InvalidName, Name, TokenNameRule};
pub use own_tokens::OwnTokens;
pub use page::{is_known_host, is_own_origin};
pub use partial::{InvalidPartialStatus, PartialStatus};
pub use scope::{Scope, Scopes, UnknownScope};
pub use secret::{Digest, InvalidDigest, InvalidToken, NewToken, RANDOM_BYTES};
pub use set::{Demand, Denied, TokenSet};
pub use shown::{SeveralCredentials, ShownToken};
pub use spilt::{contains_token, hide_tokens, token_ranges};
pub use token::Token;
pub use tokens::Tokens;
