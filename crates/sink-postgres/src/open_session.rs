//! Opens a session with the settings that writes and reads need.

use std::time::Duration;

use super::config::PostgresConfig;
use super::error::Failure;
use super::pooler;
use super::session::Session;

/// How long after the last use by Forebay the server closes an idle session: no call gets a session that is about to
/// end.
const IDLE_MARGIN: Duration = Duration::from_secs(1);

/// Connects to the first server that accepts writes, and sets the session's parameters.
pub(super) async fn open(config: &PostgresConfig) -> Result<Session, Failure> {
    let mut session = Session::connect(config).await?;
    let process = pooler::find_process(config, &mut session).await?;
    session.set_process(process);
    let milliseconds = config.timeout.as_millis();
    let idle = session.idle_max().saturating_add(IDLE_MARGIN).as_millis();
    // The server cancels a statement whose caller has stopped waiting, and releases the lane's cursor. Servers before
    // version 14 don't close idle sessions, and have no such setting.
    let settings = format!(
        "set statement_timeout = {milliseconds}; set lock_timeout = {milliseconds}; \
         set idle_in_transaction_session_timeout = {milliseconds}; \
         select set_config(name, '{idle}', false) from pg_settings where name = 'idle_session_timeout'"
    );
    let (talk, driver) = session.parts();
    driver.run(talk.execute(&settings)).await?;
    Ok(session)
}
