//! `GET /events` and `GET /events/{id}`: what is stored is read back. Stores are asked through readers that the types'
//! rules name; which stores these are is none of the gateway's business.

mod answer;
mod cursor;
mod dead;
mod event_request;
mod page_request;
mod parameters;
mod request;
mod room;

pub(crate) use request::ReadRequest;
pub(crate) use room::{ReadPermit, ReadRoom};
