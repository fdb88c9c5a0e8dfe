//! Opens the file: private to its user, in WAL mode, small in memory, at the present version.
//!
//! Never: touches a file that a newer iudex wrote, or one that is no ledger.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::Read;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::error::LedgerError;
use crate::schema;

/// How long a writer waits for another one.
const BUSY: Duration = Duration::from_secs(10);

/// What every database file of SQLite begins with.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Opens the file in `state`, or makes it.
pub(crate) fn open(state: &Path, file: &Path) -> Result<Connection, LedgerError> {
    make_private(state, file)?;
    look_at_header(file)?;
    let failed = |doing: &'static str| move |error: rusqlite::Error| LedgerError::from_sqlite(file, doing, &error);

    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(file, flags).map_err(failed("opening it"))?;
    connection.busy_timeout(BUSY).map_err(failed("opening it"))?;
    let version = schema::version(&connection).map_err(failed("reading its version"))?;
    if version > schema::VERSION {
        // Closing must not even move what lies in the WAL file.
        connection
            .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
            .map_err(failed("reading its version"))?;
        return Err(newer(file, version));
    }
    if version == 0 {
        // Only an empty file can still choose this; it lets expired runs give their space back.
        connection.execute_batch("PRAGMA auto_vacuum = INCREMENTAL").map_err(failed("setting it up"))?;
    }
    use_wal(&connection).map_err(failed("setting it up"))?;
    connection
        .execute_batch(
            "PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON; PRAGMA cache_size = -512; \
             PRAGMA journal_size_limit = 4194304;",
        )
        .map_err(failed("setting it up"))?;
    if version < schema::VERSION {
        schema::migrate(&mut connection).map_err(failed("bringing it to the present version"))?;
    }
    Ok(connection)
}

/// Directory 0700, file 0600, whatever the umask. SQLite gives its `-wal` and `-shm` files the mode of the file.
fn make_private(state: &Path, file: &Path) -> Result<(), LedgerError> {
    let failed = |error: std::io::Error| LedgerError::from_io(file, "making it", &error);
    if !state.is_dir() {
        DirBuilder::new().recursive(true).mode(0o700).create(state).map_err(failed)?;
    }
    tighten(state, 0o700).map_err(failed)?;
    if !file.exists() {
        OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(file).map_err(failed)?;
    }
    tighten(file, 0o600).map_err(failed)
}

fn tighten(path: &Path, mode: u32) -> std::io::Result<()> {
    if path.metadata()?.permissions().mode() & 0o777 == mode {
        return Ok(());
    }
    std::fs::set_permissions(path, Permissions::from_mode(mode))
}

/// Reads the file's own first bytes, so that a foreign or newer file is not even opened by SQLite.
fn look_at_header(file: &Path) -> Result<(), LedgerError> {
    let failed = |error: std::io::Error| LedgerError::from_io(file, "reading it", &error);
    let mut header = Vec::new();
    File::open(file).map_err(failed)?.take(100).read_to_end(&mut header).map_err(failed)?;
    if header.is_empty() {
        return Ok(());
    }
    if !header.starts_with(MAGIC) {
        return Err(LedgerError::corrupt(file, "its first bytes are not those of SQLite"));
    }
    let version = header.get(60..64).and_then(|bytes| <[u8; 4]>::try_from(bytes).ok()).map(i32::from_be_bytes);
    match version {
        None => Err(LedgerError::corrupt(file, "it is shorter than its header")),
        Some(version) if i64::from(version) > schema::VERSION => Err(newer(file, i64::from(version))),
        Some(_) => Ok(()),
    }
}

fn newer(file: &Path, version: i64) -> LedgerError {
    let known = schema::VERSION;
    LedgerError::new(
        file,
        format!("it has version {version}, and this iudex knows versions up to {known}; it was left as it is"),
        Some("use the newer iudex that wrote it, or set XDG_STATE_HOME to another directory".to_owned()),
    )
}

/// Switches to WAL. While another process does the same, SQLite reports "busy" without waiting, so the wait is here.
fn use_wal(connection: &Connection) -> rusqlite::Result<()> {
    let since = Instant::now();
    loop {
        match connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0)) {
            Err(error)
                if since.elapsed() < BUSY
                    && matches!(
                        error.sqlite_error_code(),
                        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
                    ) =>
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            other => return other.map(drop),
        }
    }
}
