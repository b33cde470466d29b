//! How long it takes to see whether a shown token is one of a thousand.

#![allow(clippy::print_stdout, reason = "the figure is what it is for")]

use std::hint::black_box;
use std::time::Instant;

use access::{Demand, Name, NewToken, Scope, ShownToken, Token, TokenSet};

const TOKENS: u16 = 1000;
const CHECKS: u32 = 2_000_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut tokens = Vec::new();
    let mut shown = String::new();
    for number in 0..TOKENS {
        let mut random = [0; access::RANDOM_BYTES];
        random[..2].copy_from_slice(&number.to_le_bytes());
        let secret = NewToken::of_random(random);
        shown = format!("Bearer {}", secret.expose());
        let name: Name = format!("t{number}").parse()?;
        let scopes = [Scope::Ingest].into_iter().collect();
        tokens.push(Token {
            name: name.clone(),
            digest: secret.digest(),
            scopes,
            source: name,
            origin: None,
            partial: None,
            types: None,
            created: 0,
            expires: None,
        });
    }
    let set = TokenSet::new(tokens);
    let began = Instant::now();
    for _ in 0..CHECKS {
        black_box(set.check(Demand::Always, black_box(ShownToken::bearer(shown.as_bytes()).as_ref()), 0)?);
    }
    println!("{} ns a check", began.elapsed().as_nanos() / u128::from(CHECKS));
    Ok(())
}
