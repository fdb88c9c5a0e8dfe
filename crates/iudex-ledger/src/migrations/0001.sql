-- The first schema: runs, their events word for word, and the tables that are made from the events.
CREATE TABLE runs (
    run           TEXT PRIMARY KEY NOT NULL,
    directory     BLOB NOT NULL,             -- the bytes of the path
    goal          TEXT NOT NULL,
    model         TEXT NOT NULL,
    session       TEXT,
    pid           INTEGER NOT NULL,
    started       TEXT NOT NULL,             -- RFC 3339, UTC, milliseconds
    ended         TEXT,
    outcome       TEXT,                      -- the word, with its validation
    exit_code     INTEGER,
    passes        INTEGER NOT NULL DEFAULT 0,
    prompt_tokens INTEGER,
    output_tokens INTEGER,
    calls         INTEGER,
    cost_micros   INTEGER,                   -- unknown is NULL, never 0
    base          TEXT,                      -- a snapshot, JSON
    last          TEXT,                      -- the snapshot that was pinned last, JSON
    diff          TEXT                       -- JSON
);
CREATE INDEX runs_by_start ON runs (started);

CREATE TABLE events (
    run  TEXT NOT NULL REFERENCES runs (run) ON DELETE CASCADE,
    seq  INTEGER NOT NULL,
    time TEXT NOT NULL,
    json TEXT NOT NULL,
    PRIMARY KEY (run, seq)
);

CREATE TABLE passes (
    run           TEXT NOT NULL REFERENCES runs (run) ON DELETE CASCADE,
    pass          INTEGER NOT NULL,
    chosen        TEXT,                      -- the controller's move; NULL for the first pass
    strategy      TEXT NOT NULL,
    ended         TEXT,                      -- how, JSON
    steps         INTEGER,
    prompt_tokens INTEGER,
    output_tokens INTEGER,
    PRIMARY KEY (run, pass)
);

CREATE TABLE proposals (
    run           TEXT NOT NULL REFERENCES runs (run) ON DELETE CASCADE,
    pass          INTEGER NOT NULL,
    commit_id     TEXT NOT NULL,
    raw_tree      TEXT NOT NULL,
    git_tree      TEXT,
    base_raw_tree TEXT NOT NULL,
    stat          TEXT NOT NULL,             -- JSON
    PRIMARY KEY (run, pass)
);

CREATE TABLE rulings (
    run    TEXT NOT NULL REFERENCES runs (run) ON DELETE CASCADE,
    seq    INTEGER NOT NULL,                 -- of the event
    gate   TEXT NOT NULL,
    pass   INTEGER,                          -- NULL for the baseline
    word   TEXT NOT NULL,                    -- accepted, rework, void
    json   TEXT NOT NULL,                    -- the ruling with its evidence
    millis INTEGER NOT NULL,
    PRIMARY KEY (run, seq)
);

CREATE TABLE commands (
    run            TEXT NOT NULL REFERENCES runs (run) ON DELETE CASCADE,
    seq            INTEGER NOT NULL,         -- of the ruling
    number         INTEGER NOT NULL,         -- within the ruling, from 1
    command        TEXT NOT NULL,
    place          TEXT NOT NULL,
    end            TEXT NOT NULL,            -- exited, signalled, timed_out
    status         INTEGER,                  -- exit status or signal
    millis         INTEGER NOT NULL,
    output_file    TEXT,
    output_sha256  TEXT NOT NULL,
    output_bytes   INTEGER NOT NULL,
    passed         INTEGER,                  -- tests; NULL where no summary was recognised
    failed         INTEGER,
    skipped        INTEGER,
    baseline_green INTEGER,                  -- NULL for the baseline itself
    PRIMARY KEY (run, seq, number)
);

CREATE TABLE interventions (
    run  TEXT NOT NULL REFERENCES runs (run) ON DELETE CASCADE,
    seq  INTEGER NOT NULL,
    pass INTEGER,
    kind TEXT NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (run, seq)
);

CREATE TABLE calls (
    run           TEXT NOT NULL REFERENCES runs (run) ON DELETE CASCADE,
    seq           INTEGER NOT NULL,
    pass          INTEGER,
    step          INTEGER NOT NULL,
    prompt_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL,
    estimated     INTEGER NOT NULL,          -- 1 where the server did not tell
    millis        INTEGER NOT NULL,
    finish        TEXT NOT NULL,
    retries       INTEGER NOT NULL,
    PRIMARY KEY (run, seq)
);

CREATE TABLE sessions (
    session   TEXT PRIMARY KEY NOT NULL,
    directory BLOB NOT NULL,
    updated   TEXT NOT NULL,
    state     TEXT NOT NULL                  -- JSON, opaque here
);
