//! An operator with an account, as `nsc` creates them: it issues the JWTs of users.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};

/// The first bytes of public keys.
const OPERATOR: u8 = 14 << 3;
const ACCOUNT: u8 = 0;

/// A key and its public name.
struct Issuer {
    pair: Ed25519KeyPair,
    name: String,
}

/// The keys of an operator and of its account.
pub(crate) struct Operator {
    operator: Issuer,
    account: Issuer,
}

impl Operator {
    /// The keys have these seeds.
    pub(crate) fn new(operator: [u8; 32], account: [u8; 32]) -> Self {
        Self { operator: Issuer::new(OPERATOR, operator), account: Issuer::new(ACCOUNT, account) }
    }

    /// The configuration of a server that trusts the operator.
    pub(crate) fn configuration(&self) -> String {
        let Self { operator, account } = self;
        let own = operator.jwt(&operator.name, &json!({"type": "operator", "version": 2}));
        let limits = json!({"subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true,
                            "conn": -1, "leaf": -1});
        let of_account = operator.jwt(&account.name, &json!({"type": "account", "version": 2, "limits": limits}));
        format!(
            "jetstream: false\noperator: {own}\nresolver: MEMORY\nresolver_preload {{ {}: {of_account} }}\n",
            account.name
        )
    }

    /// The `.creds` file of a user with this public key and seed.
    pub(crate) fn credentials(&self, public: &str, seed: &str) -> String {
        let claims = json!({"type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1});
        let jwt = self.account.jwt(public, &claims);
        format!(
            "-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n\
             -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
        )
    }
}

impl Issuer {
    fn new(kind: u8, seed: [u8; 32]) -> Self {
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).unwrap();
        let name = encoded(kind, pair.public_key().as_ref());
        Self { pair, name }
    }

    fn jwt(&self, subject: &str, nats: &Value) -> String {
        let claims = json!({"iat": 1_700_000_000, "iss": self.name, "sub": subject, "name": "test", "nats": nats});
        let header = json!({"typ": "JWT", "alg": "ed25519-nkey"});
        let [header, claims] = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
        let signed = format!("{header}.{claims}");
        let signature = URL_SAFE_NO_PAD.encode(self.pair.sign(signed.as_bytes()));
        format!("{signed}.{signature}")
    }
}

/// A public key as text: its kind, the key and a CRC-16 in base 32.
fn encoded(kind: u8, key: &[u8]) -> String {
    let mut bytes = [&[kind], key].concat();
    let sum = bytes.iter().fold(0_u16, |sum, byte| {
        (0..8).fold(sum ^ u16::from(*byte) << 8, |sum, _| if sum & 0x8000 == 0 { sum << 1 } else { sum << 1 ^ 0x1021 })
    });
    bytes.extend(sum.to_le_bytes());
    let bits: String = bytes.iter().map(|byte| format!("{byte:08b}")).collect();
    // 35 bytes are 56 digits of 5 bits each.
    let digits = bits.as_bytes().chunks(5).map(|five| {
        let index = usize::from_str_radix(std::str::from_utf8(five).unwrap(), 2).unwrap();
        char::from(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[index])
    });
    digits.collect()
}
