//! Events by their ids, in one read transaction.

use event::read::{Found, Lookup};
use rusqlite::Connection;

use super::page::{self, ReadSql};

/// Looks up ids until the answer is full.
pub(super) fn get(connection: &Connection, sql: &ReadSql, lookup: &Lookup) -> rusqlite::Result<Found> {
    let snapshot = connection.unchecked_transaction()?;
    let (mut found, mut bytes) = (Found::default(), 0);
    let mut statement = snapshot.prepare_cached(&sql.by_id)?;
    for (looked_up, id) in lookup.ids.iter().enumerate() {
        let mut rows = statement.query([id.0])?;
        let Some(row) = rows.next()? else { continue };
        let Some((_, event)) = page::event_in(row)? else { continue };
        bytes += event.bytes();
        if bytes > lookup.bytes_max && !found.events.is_empty() {
            found.left = lookup.ids[looked_up..].to_vec();
            break;
        }
        found.events.push(event);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use event::EventId;
    use rusqlite::params;
    use sink::TableName;

    use super::*;

    #[test]
    fn ids_are_looked_up_until_the_answer_is_full() {
        let connection = Connection::open_in_memory().unwrap();
        let table = "create table events (id blob primary key, type text, source text, received_at integer, \
                     payload text)";
        connection.execute_batch(table).unwrap();
        let sql = ReadSql::new(&TableName::new("events").unwrap());
        let ids = [1, 2, 3, 4].map(|number| EventId([number; 16]));
        for id in [ids[0], ids[2], ids[3]] {
            connection.execute("insert into events values (?1, 't', 's', 7, '{}')", params![id.0]).unwrap();
        }
        // Another program's.
        connection.execute("insert into events values (?1, 't', 's', 'then', '{}')", params![[9_u8; 16]]).unwrap();
        let get = |bytes_max| {
            let wanted = ids.into_iter().chain([EventId([9; 16])]).collect();
            let found = get(&connection, &sql, &Lookup { ids: wanted, bytes_max, only_type: None }).unwrap();
            (found.events.iter().map(|event| event.id).collect::<Vec<_>>(), found.left)
        };
        assert_eq!(get(1_000_000), (vec![ids[0], ids[2], ids[3]], Vec::new()));
        assert_eq!(get(1), (vec![ids[0]], vec![ids[2], ids[3], EventId([9; 16])]), "2 was looked up");
        assert!(connection.is_autocommit());
    }
}
