//! Opens a session with the settings that writes and reads need.

use std::time::Duration;

use super::config::PostgresConfig;
use super::error::Failure;
use super::pooler;
use super::session::Session;

/// How much later than it isn't used any more the server ends an idle session: no call finds one that just ends.
const IDLE_MARGIN: Duration = Duration::from_secs(1);

/// Connects to the first of the servers that takes writes, and sets what the connection is to have.
pub(super) async fn open(config: &PostgresConfig) -> Result<Session, Failure> {
    let mut session = Session::connect(config).await?;
    let process = pooler::find_process(config, &mut session).await?;
    session.set_process(process);
    let milliseconds = config.timeout.as_millis();
    let idle = session.idle_max().saturating_add(IDLE_MARGIN).as_millis();
    // The server gives up by itself what nobody waits for any more, and lets go of the lane's cursor.
    // Before version 14 it doesn't end idle sessions, and has no such setting.
    let manners = format!(
        "set statement_timeout = {milliseconds}; set lock_timeout = {milliseconds}; \
         set idle_in_transaction_session_timeout = {milliseconds}; \
         select set_config(name, '{idle}', false) from pg_settings where name = 'idle_session_timeout'"
    );
    let (talk, driver) = session.parts();
    driver.run(talk.order(&manners)).await?;
    Ok(session)
}
