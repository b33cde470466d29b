//! `GET /events`, `GET /events/{id}` and `GET /objects/{sink}/{name}`: what is stored is read back. Stores are asked through readers that
//! the types' rules or the path name; which stores these are is none of the gateway's business.

mod conditions;
mod content_type;
mod cursor;
mod dead_letter;
mod event_request;
mod object_request;
mod page_request;
mod parameters;
mod request;
mod response;

pub(crate) use object_request::ObjectRequest;
pub(crate) use request::ReadRequest;
