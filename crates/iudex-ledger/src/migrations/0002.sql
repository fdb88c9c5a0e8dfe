-- What the outcome must say beside its word, when the process began (a process id alone is used again),
-- and the directives: each is a charge, with the controller's move.
ALTER TABLE runs ADD COLUMN note TEXT;
ALTER TABLE runs ADD COLUMN pid_started INTEGER;

CREATE TABLE directives (
    run     TEXT NOT NULL REFERENCES runs (run) ON DELETE CASCADE,
    seq     INTEGER NOT NULL,
    pass    INTEGER,                         -- the pass that it answers
    chosen  TEXT NOT NULL,
    retries INTEGER NOT NULL,
    rounds  INTEGER NOT NULL,
    PRIMARY KEY (run, seq)
);
