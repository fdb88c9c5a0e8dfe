//! What needs the connection itself: a disk that is full.

use iudex_core::Event;
use tempfile::TempDir;

use super::{Ledger, NewRun};

#[test]
fn a_full_disk_is_an_error_with_a_hint_and_takes_no_number() {
    let state = TempDir::new().unwrap();
    let ledger = Ledger::open(state.path()).unwrap();
    ledger.begin(&NewRun { run: "a".to_owned(), pid: 1, ..NewRun::default() }).unwrap();
    let pages: i64 = ledger.connection.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
    let limit = |pages: i64| {
        let set = format!("PRAGMA max_page_count = {pages}");
        ledger.connection.query_row(&set, [], |row| row.get::<_, i64>(0)).unwrap()
    };
    limit(pages + 2);
    let large = Event::Notice { text: "x".repeat(1_000_000) };
    let error = ledger.record("a", &large).unwrap_err();
    assert!(error.message.contains("full"), "{error}");
    assert!(error.hint.unwrap().contains("free some space"));

    limit(pages + 10_000);
    assert_eq!(ledger.record("a", &large).unwrap().0, 1, "after space was made it goes on with the same number");
}

#[test]
fn after_the_first_write_the_file_is_synced_as_always() {
    let state = TempDir::new().unwrap();
    let ledger = Ledger::open(state.path()).unwrap();
    let setting =
        |name: &str| -> i64 { ledger.connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get(0)).unwrap() };
    let before = (setting("synchronous"), setting("wal_autocheckpoint"));
    assert_eq!(before, (1, 1000));
    let new = NewRun { run: "a".to_owned(), pid: 1, ..NewRun::default() };
    ledger.begin(&new).unwrap();
    assert_eq!((setting("synchronous"), setting("wal_autocheckpoint")), before);
    ledger.begin(&new).unwrap_err();
    assert_eq!((setting("synchronous"), setting("wal_autocheckpoint")), before);
    assert_eq!((setting("foreign_keys"), setting("cache_size")), (1, -512));
}
