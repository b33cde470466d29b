//! The store id (mark) of a server, or of a whole cluster: a field of the cursors' hash in the slot of the key's
//! pattern.

use super::config::RedisConfig;
use super::error::Failure;
use super::execute::Execute;
use super::protocol::Command;
use sink::Mark;

/// Returns the store id, after setting it to the proposed one if there is none. It uses only commands that cursors need
/// too.
const GET_OR_CREATE: &str = "local mark = redis.call('HGET', KEYS[1], 'mark')
if not mark then
  redis.call('HSET', KEYS[1], 'mark', ARGV[1])
  mark = ARGV[1]
end
return mark";

/// Reads the store id, and creates it if there is none.
pub(super) async fn of<A: Execute>(server: &mut A, config: &RedisConfig) -> Result<Mark, Failure> {
    let (key, offered) = (config.key.own().cursors, Mark::random()?.to_string());
    let answer = server.execute(&key, Command::new(&["EVAL", GET_OR_CREATE, "1", &key, &offered])).await?;
    answer.text().and_then(|text| text.parse().ok()).ok_or(INVALID_ID)
}

/// Fails if the batch is for another store.
pub(super) async fn check<A: Execute>(
    server: &mut A,
    config: &RedisConfig,
    expected: Option<Mark>,
) -> Result<(), Failure> {
    if expected.is_none() {
        return Ok(());
    }
    let mark = of(server, config).await?;
    if mark.is_expected(expected) { Ok(()) } else { Err(Failure::OtherStore(mark)) }
}

const INVALID_ID: Failure =
    Failure::Unexpected("the store id (`mark`) isn't 32 digits: check whether another program writes Forebay's keys");
