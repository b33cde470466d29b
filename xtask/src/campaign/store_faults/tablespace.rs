//! PostgreSQL with its table of events in a tablespace on a separate disk.

use std::fs::File;
use std::io::BufWriter;

use anyhow::{Context, Result};

use super::disk::{FaultyDisk, PROGRAMS};
use crate::campaign::frame::can_mount;
use crate::server::Server;
use crate::store::{BulkLoaded, CampaignStore, FaultyStore, PostgresStore, StoreServer};

const FULL: &str = "full tablespace";
const TRIGGER: &str = "trigger that rejects everything";
const COLUMN: &str = "column that needs a value";
const CLOSED: &str = "no connections";

const RAISING: &str = "create or replace function fault() returns trigger language plpgsql as $$ begin raise 'no'; end $$; \
    create trigger fault before insert on events for each row execute function fault()";
const CLOSE: &str = "alter database postgres allow_connections false";
const TERMINATE: &str = "select pg_terminate_backend(pid) from pg_stat_activity where datname = 'postgres'";

/// The server, and the disk, which is unmounted before the server's files go.
pub(super) struct TablespacePostgres {
    disk: Option<FaultyDisk>,
    postgres: PostgresStore,
}

impl TablespacePostgres {
    fn alter(&self, sql: &str) -> Result<()> {
        self.postgres.psql(sql).map(drop)
    }

    /// Moves the table, which the sink has created by now, to a separate disk.
    fn disk(&mut self) -> Result<&FaultyDisk> {
        if self.disk.is_none() {
            let disk = FaultyDisk::mount(self.postgres.folder().join("space"))?;
            disk.give_to(self.postgres.folder())?;
            self.postgres.order(&format!("create tablespace space location '{}'", disk.path().display()))?;
            self.alter("alter table events set tablespace space")?;
            self.disk = Some(disk);
        }
        self.disk.as_ref().context("the disk was mounted")
    }
}

impl StoreServer for TablespacePostgres {
    fn sink(&self) -> String {
        self.postgres.sink()
    }

    fn write_payloads(&mut self, out: &mut BufWriter<File>) -> Result<()> {
        self.postgres.write_payloads(out)
    }
}

impl CampaignStore for TablespacePostgres {
    const NAME: &'static str = PostgresStore::NAME;

    fn start() -> Result<Option<Self>> {
        let postgres = if can_mount(PROGRAMS)? { PostgresStore::start()? } else { None };
        Ok(postgres.map(|postgres| Self { disk: None, postgres }))
    }
}

impl FaultyStore for TablespacePostgres {
    const FAULTS: &'static [&'static str] = &[FULL, TRIGGER, COLUMN, CLOSED];

    fn begin(&mut self, fault: &str, _: u32, _: &Server) -> Result<()> {
        match fault {
            FULL => self.disk()?.fill(0),
            TRIGGER => self.alter(RAISING),
            COLUMN => {
                self.alter("alter table events add column fault int not null default 0")?;
                self.alter("alter table events alter column fault drop default")
            }
            _ => {
                self.postgres.order(CLOSE)?;
                self.postgres.order(TERMINATE)
            }
        }
    }

    fn end(&mut self, fault: &str) -> Result<()> {
        match fault {
            FULL => self.disk.as_mut().map_or(Ok(()), FaultyDisk::repair),
            TRIGGER => self.alter("drop trigger fault on events"),
            COLUMN => self.alter("alter table events drop column fault"),
            _ => self.postgres.order("alter database postgres allow_connections true"),
        }
    }
}
