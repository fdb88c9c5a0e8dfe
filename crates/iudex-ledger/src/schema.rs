//! The schema, version by version, counted in `PRAGMA user_version`.
//!
//! Never: a change of a step that was released. A new version is a new file.

use rusqlite::{Connection, TransactionBehavior};

/// The version that this program writes.
pub(crate) const VERSION: i64 = 2;

/// The steps; version N is reached by the first N of them.
const STEPS: [&str; VERSION as usize] = [include_str!("migrations/0001.sql"), include_str!("migrations/0002.sql")];

/// The version of the file.
pub(crate) fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Brings the file to [`VERSION`], all steps or none. Another process may be doing the same.
pub(crate) fn migrate(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let from = usize::try_from(version(&transaction)?).unwrap_or(0);
    for step in STEPS.iter().skip(from) {
        transaction.execute_batch(step)?;
    }
    if from < STEPS.len() {
        transaction.pragma_update(None, "user_version", VERSION)?;
    }
    transaction.commit()
}
