//! The file itself: who may read it, old and new versions, damage.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use iudex_core::Event;
use iudex_ledger::Ledger;
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use tempfile::TempDir;

use crate::events::{contents, ledger, new_run, raw, record_all, whole_run};

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

#[test]
fn the_state_is_for_its_user_alone() {
    let parent = TempDir::new().unwrap();
    let state = parent.path().join("deep/iudex");
    let ledger = Ledger::open(&state).unwrap();
    ledger.begin(&new_run("a", "/w")).unwrap();
    assert_eq!(mode(&state), 0o700);
    for name in ["ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite-shm"] {
        assert_eq!(mode(&state.join(name)), 0o600, "{name}");
    }
}

#[test]
fn a_file_that_others_could_read_is_closed_again() {
    let (state, ledger) = ledger();
    drop(ledger);
    let file = state.path().join("ledger.sqlite");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
    std::fs::set_permissions(state.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let ledger = Ledger::open(state.path()).unwrap();
    ledger.begin(&new_run("a", "/w")).unwrap();
    assert_eq!((mode(&file), mode(state.path())), (0o600, 0o700));
    assert_eq!(mode(&state.path().join("ledger.sqlite-wal")), 0o600);
}

#[test]
fn what_was_recorded_is_there_after_opening_again() {
    let (state, ledger) = ledger();
    ledger.begin(&new_run("a", "/w")).unwrap();
    record_all(&ledger, "a", &whole_run());
    let before = (ledger.stats("a").unwrap(), ledger.events("a").unwrap());
    drop(ledger);
    let ledger = Ledger::open(state.path()).unwrap();
    assert_eq!((ledger.stats("a").unwrap(), ledger.events("a").unwrap()), before);
}

#[test]
fn a_ledger_of_version_1_is_migrated_with_everything_in_it() {
    let state = TempDir::new().unwrap();
    raw(&state).execute_batch(include_str!("../fixtures/v1.sql")).unwrap();

    let ledger = Ledger::open(state.path()).unwrap();
    let version: i64 = raw(&state).query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
    assert_eq!(version, 2);
    let stats = ledger.stats("20260101-120000-aaaa").unwrap();
    assert_eq!(stats.row.outcome, "done (checked in place only)");
    assert_eq!(stats.validation, "check accepted: `cargo test` exited 0, in place");
    assert_eq!((stats.prompt_tokens, stats.calls, stats.cost_micros), (1200, 3, None));
    assert_eq!(stats.row.note, None);
    assert_eq!(ledger.snapshots("20260101-120000-aaaa").unwrap().1.unwrap().commit.as_str(), "c1");
    assert_eq!(ledger.events("20260101-120000-aaaa").unwrap()[1].event["text"], "make the test pass");
    assert_eq!(ledger.find(None, Path::new("/old/project")).unwrap().unwrap().outcome, "killed");
    assert_eq!(ledger.stats("20260101-130000-bbbb").unwrap().prompt_tokens, 700);
    // And it takes new runs.
    ledger.begin(&new_run("new", "/w")).unwrap();
    record_all(&ledger, "new", &whole_run());
    drop(ledger);
    Ledger::open(state.path()).unwrap();
}

#[test]
fn a_ledger_of_a_newer_iudex_is_refused_and_left_as_it_is() {
    let (state, ledger) = ledger();
    ledger.begin(&new_run("a", "/w")).unwrap();
    drop(ledger);
    raw(&state).pragma_update(None, "user_version", 99).unwrap();
    let before = contents(state.path());

    let error = Ledger::open(state.path()).unwrap_err();
    assert!(error.message.contains("version 99") && error.message.contains("up to 2"), "{error}");
    assert!(error.hint.unwrap().contains("newer iudex"));
    assert_eq!(contents(state.path()), before);
}

#[test]
fn a_newer_version_that_is_still_in_the_wal_is_refused_too() {
    let (state, ledger) = ledger();
    drop(ledger);
    let newer = raw(&state);
    newer.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).unwrap();
    newer.pragma_update(None, "user_version", 99).unwrap();
    drop(newer);
    let file = state.path().join("ledger.sqlite");
    let before = (std::fs::read(&file).unwrap(), std::fs::read(state.path().join("ledger.sqlite-wal")).unwrap());
    assert_eq!(before.0[60..64], [0, 0, 0, 2], "the new version must not be in the file itself yet");

    let error = Ledger::open(state.path()).unwrap_err();
    assert!(error.message.contains("version 99"), "{error}");
    let after = (std::fs::read(&file).unwrap(), std::fs::read(state.path().join("ledger.sqlite-wal")).unwrap());
    assert!(after == before, "the file was touched");
}

#[test]
fn a_file_that_is_no_ledger_is_named_and_never_deleted() {
    let state = TempDir::new().unwrap();
    let file = state.path().join("ledger.sqlite");
    for bytes in [&b"these are my notes, not a database, and they must stay as they are"[..], b"SQLite format 3\0cut"] {
        std::fs::write(&file, bytes).unwrap();
        let error = Ledger::open(state.path()).unwrap_err();
        assert!(error.to_string().contains(file.to_str().unwrap()), "{error}");
        assert!(error.message.contains("damaged"), "{error}");
        assert!(error.hint.unwrap().contains("mv "));
        assert_eq!(std::fs::read(&file).unwrap(), bytes);
        assert_eq!(contents(state.path()).len(), 1);
    }
}

#[test]
fn damage_inside_the_file_is_an_error_with_the_way_out() {
    let (state, ledger) = ledger();
    ledger.begin(&new_run("a", "/w")).unwrap();
    record_all(&ledger, "a", &whole_run());
    drop(ledger);
    let file = state.path().join("ledger.sqlite");
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[100..].fill(0xA5);
    std::fs::write(&file, &bytes).unwrap();

    let error = Ledger::open(state.path()).and_then(|ledger| ledger.runs(None, 10)).unwrap_err();
    assert!(error.message.contains("damaged"), "{error}");
    assert!(error.hint.unwrap().contains(".broken"));
    assert_eq!(std::fs::read(&file).unwrap(), bytes);
}

#[test]
fn an_empty_file_becomes_a_ledger() {
    let state = TempDir::new().unwrap();
    std::fs::write(state.path().join("ledger.sqlite"), "").unwrap();
    let ledger = Ledger::open(state.path()).unwrap();
    ledger.begin(&new_run("a", "/w")).unwrap();
    assert_eq!(ledger.record("a", &Event::Notice { text: "x".to_owned() }).unwrap().0, 1);
}

#[test]
fn a_state_directory_that_cannot_be_made_is_an_error_with_its_path() {
    let parent = TempDir::new().unwrap();
    std::fs::write(parent.path().join("file"), "").unwrap();
    let error = Ledger::open(&parent.path().join("file/iudex")).unwrap_err();
    assert!(error.to_string().contains("file/iudex"), "{error}");
}

#[test]
fn the_file_is_in_wal_mode_and_its_tables_refer_to_runs() {
    let (state, _ledger) = ledger();
    let sqlite: Connection = raw(&state);
    let mode: String = sqlite.query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap();
    assert_eq!(mode, "wal");
    let keys: i64 =
        sqlite.query_row("SELECT count(*) FROM pragma_foreign_key_list('events')", [], |row| row.get(0)).unwrap();
    assert_eq!(keys, 1);
}
