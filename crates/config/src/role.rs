//! The role of a process: everything in one, or one of two services.

/// The role of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Accepts events and stores them, in one process.
    Serve,
    /// Accepts events and sends them to writers.
    Gateway,
    /// Stores the events that gateways send.
    Writer,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 3] = [Self::Serve, Self::Gateway, Self::Writer];

    /// The role with this name.
    #[must_use]
    pub fn of_name(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == text)
    }

    /// The table of its settings.
    #[must_use]
    pub const fn table(self) -> &'static str {
        match self {
            Self::Serve | Self::Gateway => "gateway",
            Self::Writer => "writer",
        }
    }

    /// The role's name, which is its command.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Serve => "serve",
            Self::Gateway => "gateway",
            Self::Writer => "writer",
        }
    }
}
