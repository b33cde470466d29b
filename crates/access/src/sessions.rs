//! Sessions of browsers on an admin port. A session has two random halves, and each request must show both.
//!
//! One half is a cookie. A browser sends the cookies of a host to all its ports, so another server there could get it. The other half is a
//! header that only a page of the port's own origin can send.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use subtle::{Choice, ConstantTimeEq};
use text::hex;

use crate::secret::Digest;
use crate::{Name, Scopes, Token, TokenSet};

/// Random bytes of each half.
pub const HALF_BYTES: usize = 32;
/// Digits of a half as text.
const HALF_DIGITS: usize = 2 * HALF_BYTES;
/// A session ends after this time at the latest.
const LIFETIME: Duration = Duration::from_hours(12);
/// Sessions at most: the one that was used least recently makes room.
const SESSIONS_MAX: usize = 64;

/// The sessions of a port.
#[derive(Debug, Default)]
pub struct Sessions(Mutex<Open>);

#[derive(Debug, Default)]
struct Open {
    sessions: Vec<Kept>,
    next: u64,
}

struct Kept {
    id: SessionId,
    cookie: [u8; HALF_DIGITS],
    check: [u8; HALF_DIGITS],
    session: OpenSession,
    opened: Instant,
    used: Instant,
}

/// The number of a session of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionId(u64);

/// An open session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenSession {
    /// The name of its token.
    pub name: Name,
    /// The scopes of its token.
    pub scopes: Scopes,
    /// When it ends at the latest, in microseconds since 1970, UTC.
    pub expires: i64,
    token: Digest,
}

/// Both halves of a new session, for the client.
pub struct NewSession {
    /// The half for the cookie, in hexadecimal digits.
    pub cookie: String,
    /// The half for the header.
    pub check: String,
    /// The session.
    pub session: OpenSession,
}

/// The time by two clocks: one never jumps, the other is that of tokens.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// The time since some start.
    pub instant: Instant,
    /// Microseconds since 1970, UTC.
    pub unix: i64,
}

impl Sessions {
    /// Opens a session for the owner of a token. Both halves must be random.
    pub fn open(&self, token: &Token, halves: [[u8; HALF_BYTES]; 2], now: Now) -> NewSession {
        let lifetime = i64::try_from(LIFETIME.as_micros()).unwrap_or(i64::MAX);
        let expires = now.unix.saturating_add(lifetime).min(token.expires.unwrap_or(i64::MAX));
        let session = OpenSession { name: token.name.clone(), scopes: token.scopes, expires, token: token.digest };
        let [cookie, check] = halves.map(|half| hex::encode(&half));
        let mut open = self.lock();
        open.sessions.retain(|kept| !kept.is_over(now.instant));
        if open.sessions.len() == SESSIONS_MAX {
            let oldest = open.sessions.iter().enumerate().min_by_key(|(_, kept)| kept.used).map(|(at, _)| at);
            oldest.map(|at| open.sessions.swap_remove(at));
        }
        let id = SessionId(open.next);
        open.next += 1;
        let (own_cookie, own_check) = (digits(cookie.as_bytes()), digits(check.as_bytes()));
        if let (Some(cookie), Some(check)) = (own_cookie, own_check) {
            let (opened, used) = (now.instant, now.instant);
            open.sessions.push(Kept { id, cookie, check, session: session.clone(), opened, used });
        }
        NewSession { cookie, check, session }
    }

    /// The session with these two halves, if it is open and its token is still the same. The time that this takes reveals nothing of a half.
    pub fn find(&self, cookie: &[u8], check: &[u8], tokens: &TokenSet, now: Now) -> Option<(SessionId, OpenSession)> {
        let (cookie, check) = (digits(cookie)?, digits(check)?);
        let mut open = self.lock();
        let mut found = None;
        for kept in &open.sessions {
            let is_it: Choice = kept.cookie.ct_eq(&cookie) & kept.check.ct_eq(&check);
            if is_it.into() {
                found = Some(kept.id);
            }
        }
        let id = found?;
        open.used(id, tokens, now).map(|session| (id, session))
    }

    /// Whether a session is still open, and its token still the same. This counts as a use.
    pub fn is_open(&self, id: SessionId, tokens: &TokenSet, now: Now) -> bool {
        self.lock().used(id, tokens, now).is_some()
    }

    /// Ends a session.
    pub fn end(&self, id: SessionId) {
        self.lock().sessions.retain(|kept| kept.id != id);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// The session, which is used now. One that is over is removed.
    fn used(&mut self, id: SessionId, tokens: &TokenSet, now: Now) -> Option<OpenSession> {
        let at = self.sessions.iter().position(|kept| kept.id == id)?;
        let kept = &mut self.sessions[at];
        let token = tokens.with_digest(&kept.session.token, now.unix);
        let is_same = token.is_ok_and(|token| token.scopes == kept.session.scopes);
        if !is_same || kept.is_over(now.instant) {
            self.sessions.swap_remove(at);
            return None;
        }
        kept.used = now.instant;
        Some(kept.session.clone())
    }
}

impl Kept {
    fn is_over(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.opened) >= LIFETIME
    }
}

/// Shows no half.
impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.id.fmt(f)
    }
}

/// A text that may be a half.
fn digits(text: &[u8]) -> Option<[u8; HALF_DIGITS]> {
    text.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::set::tests::token;

    const SECOND: i64 = 1_000_000;

    struct Fixture {
        sessions: Sessions,
        tokens: TokenSet,
        start: Instant,
    }

    impl Fixture {
        fn new(expires: Option<i64>) -> Self {
            let tokens = TokenSet::new(vec![token(1, expires).0]);
            Self { sessions: Sessions::default(), tokens, start: Instant::now() }
        }

        fn at(&self, seconds: u64) -> Now {
            let unix = i64::try_from(seconds).unwrap() * SECOND;
            Now { instant: self.start + Duration::from_secs(seconds), unix }
        }

        fn open(&self, number: u8, seconds: u64) -> NewSession {
            self.sessions.open(&token(1, None).0, [[number; 32], [number ^ 0xff; 32]], self.at(seconds))
        }

        fn finds(&self, cookie: &str, check: &str, seconds: u64) -> bool {
            self.sessions.find(cookie.as_bytes(), check.as_bytes(), &self.tokens, self.at(seconds)).is_some()
        }
    }

    #[test]
    fn session_needs_both_of_its_halves() {
        let fixture = Fixture::new(None);
        let [one, other] = [1, 2].map(|number| fixture.open(number, 0));
        assert!(fixture.finds(&one.cookie, &one.check, 1) && fixture.finds(&other.cookie, &other.check, 1));
        for (cookie, check) in [
            (&*one.cookie, &*other.check),
            (&*one.check, &*one.cookie),
            (&*one.cookie, ""),
            ("", &*one.check),
            (&*one.cookie, &one.check[1..]),
            ("", ""),
        ] {
            assert!(!fixture.finds(cookie, check, 1), "{cookie} {check}");
        }
        assert_eq!(format!("{:?}", fixture.sessions).matches(&one.cookie).count(), 0);
    }

    #[test]
    fn session_ends_by_time_and_logout() {
        let fixture = Fixture::new(None);
        let one = fixture.open(1, 0);
        let hours = LIFETIME.as_secs();
        assert_eq!(one.session.expires, 12 * 3600 * SECOND);
        assert!(fixture.finds(&one.cookie, &one.check, hours - 1) && !fixture.finds(&one.cookie, &one.check, hours));
        let other = fixture.open(2, hours);
        let now = fixture.at(hours);
        let found = fixture.sessions.find(other.cookie.as_bytes(), other.check.as_bytes(), &fixture.tokens, now);
        let (id, session) = found.unwrap();
        assert!(session == other.session && fixture.sessions.is_open(id, &fixture.tokens, now));
        fixture.sessions.end(id);
        assert!(!fixture.sessions.is_open(id, &fixture.tokens, now));
    }

    #[test]
    fn session_ends_with_its_token() {
        let (plain, _) = token(1, None);
        let expiring = Token { expires: Some(5 * SECOND), ..plain.clone() };
        let others = Token { scopes: [crate::Scope::Admin].into_iter().collect(), ..plain.clone() };
        for (tokens, is_open) in [
            (vec![plain], true),
            (vec![], false),
            (vec![token(2, None).0], false),
            (vec![others], false),
            (vec![expiring.clone()], false),
        ] {
            let mut fixture = Fixture::new(None);
            let one = fixture.open(1, 0);
            fixture.tokens = TokenSet::new(tokens);
            assert_eq!(fixture.finds(&one.cookie, &one.check, 6), is_open, "{:?}", fixture.tokens);
        }
        let fixture = Fixture::new(None);
        let halves = [[1; 32], [2; 32]];
        assert_eq!(fixture.sessions.open(&expiring, halves, fixture.at(0)).session.expires, 5 * SECOND);
    }

    #[test]
    fn least_recently_used_session_makes_room() {
        let fixture = Fixture::new(None);
        let opened: Vec<NewSession> = (0..64).map(|number| fixture.open(number, u64::from(number))).collect();
        assert!(fixture.finds(&opened[0].cookie, &opened[0].check, 70), "used, so the second is the oldest");
        let last = fixture.open(64, 71);
        assert!(fixture.finds(&last.cookie, &last.check, 72));
        let found = opened.iter().filter(|one| fixture.finds(&one.cookie, &one.check, 72)).count();
        assert!(found == 63 && !fixture.finds(&opened[1].cookie, &opened[1].check, 72));
    }
}
