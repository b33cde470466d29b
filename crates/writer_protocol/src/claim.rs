//! Claims and cursors: what a store holds of a lane, and the exchange of a claim.

use serde::{Deserialize, Serialize};
use sink::{Claim, Held, Takeover};

/// What the store holds of a lane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldAnswer {
    /// The cursor's position; `None` if the store keeps no cursors.
    position: Option<u64>,
    /// The claims on it, as 32 hexadecimal digits each.
    claims: Vec<String>,
}

impl From<Option<Held>> for HeldAnswer {
    fn from(held: Option<Held>) -> Self {
        let (position, claims) = held.map(|held| (held.position, held.claims)).unzip();
        Self { position, claims: texts(&claims.unwrap_or_default()) }
    }
}

impl HeldAnswer {
    /// The parsed answer; `None` if a claim is malformed.
    #[must_use]
    pub fn into_held(self) -> Option<Option<Held>> {
        let claims = claims_of(&self.claims)?;
        Some(self.position.map(|position| Held { position, claims }))
    }
}

/// A request to exchange a claim: [`sink::Sink::claim`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimQuery {
    claim: String,
    /// The claims that it may replace.
    known: Vec<String>,
    /// If it may replace any claim: the position to set the cursor to.
    forced: Option<u64>,
}

impl ClaimQuery {
    /// A request for `claim`.
    #[must_use]
    pub fn new(claim: Claim, takeover: &Takeover) -> Self {
        let (known, forced) = match takeover {
            Takeover::Known(known) => (texts(known), None),
            Takeover::Forced(position) => (Vec::new(), Some(*position)),
        };
        Self { claim: claim.to_string(), known, forced }
    }

    /// The parsed request; `None` if a claim is malformed.
    #[must_use]
    pub fn into_takeover(self) -> Option<(Claim, Takeover)> {
        let known = Takeover::Known(claims_of(&self.known)?.into());
        Some((self.claim.parse().ok()?, self.forced.map_or(known, Takeover::Forced)))
    }
}

fn texts(claims: &[Claim]) -> Vec<String> {
    claims.iter().map(ToString::to_string).collect()
}

fn claims_of(texts: &[String]) -> Option<Vec<Claim>> {
    texts.iter().map(|text| text.parse().ok()).collect()
}
