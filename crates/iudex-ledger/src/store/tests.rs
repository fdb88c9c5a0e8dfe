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
