//! The entry of each request, the same for all roles: the page, sessions, and access to the rest.

use admin_api::paths;
use hyper::{Request, Response};

use super::auth::{AdminAuth, Pass, Refused};
use super::{AdminBody, AdminResponse, page, session};
use crate::caller::Caller;

/// A request that the role answers.
pub(crate) struct Entered {
    /// None for paths that never need a token.
    admitted: Option<Admitted>,
}

struct Admitted {
    caller: Caller,
    pass: Pass,
    auth: AdminAuth,
}

impl AdminAuth {
    /// Lets a request in.
    ///
    /// # Errors
    /// The answer, if the role has none to give: the page, a session, or a refusal.
    pub(crate) fn enter<B>(&self, request: &Request<B>) -> Result<Entered, Refused> {
        let path = request.uri().path();
        if matches!(path, paths::HEALTH | paths::READY) {
            return Ok(Entered { admitted: None });
        }
        if let Some(answer) = page::respond(request, &self.settings()) {
            return Err(Box::new(answer));
        }
        let pass = self.admit(request)?;
        if path == paths::SESSION {
            return Err(Box::new(session::respond(request, self, &pass)));
        }
        Ok(Entered { admitted: Some(Admitted { caller: pass.caller(), pass, auth: self.clone() }) })
    }
}

impl Entered {
    /// The sender; `None` for a path that never needs a token.
    pub(crate) fn caller(&self) -> Option<&Caller> {
        self.admitted.as_ref().map(|admitted| &admitted.caller)
    }

    /// The response with this answer. A stream ends with the token or session that has opened it.
    pub(crate) fn finish(self, answer: AdminResponse) -> Response<AdminBody> {
        let response = answer.into_response();
        let Some(Admitted { pass, auth, .. }) = self.admitted else { return response };
        response.map(|body| body.guarded(move || auth.still_admits(&pass)))
    }
}
