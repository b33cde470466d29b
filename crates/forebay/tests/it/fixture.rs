//! A server with a configuration and a separate directory, which tests may kill and restart.

use serde_json::Value;

use crate::support::{Folder, Server, exchange};

pub(crate) struct Fixture {
    /// Killed before its directory is removed.
    pub(crate) server: Option<Server>,
    pub(crate) folder: Folder,
}

impl Fixture {
    pub(crate) fn new(config: &str) -> Self {
        let folder = Folder::new();
        folder.write("forebay.toml", config);
        let mut fixture = Self { server: None, folder };
        fixture.start();
        fixture
    }

    pub(crate) fn start(&mut self) {
        let (config, log) = (self.folder.path("forebay.toml"), self.folder.path("log"));
        self.server = Some(Server::start_configured(&self.folder.data(), &config, &log));
    }

    pub(crate) fn server(&self) -> &Server {
        self.server.as_ref().unwrap()
    }

    pub(crate) fn get(&self, path: &str) -> (u16, Value) {
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let (status, answer) = exchange(self.server().intake, &request);
        (status, serde_json::from_str(&answer).unwrap_or_default())
    }
}
