-- +goose Up
CREATE TABLE {jobs} (
	id             INTEGER PRIMARY KEY AUTOINCREMENT,
	queue          TEXT    NOT NULL DEFAULT 'default',
	payload        TEXT    NOT NULL,
	priority       INTEGER NOT NULL DEFAULT 1 CHECK (priority BETWEEN 0 AND 3),
	attempts       INTEGER NOT NULL DEFAULT 0,
	max_attempts   INTEGER,
	crashes        INTEGER NOT NULL DEFAULT 0,
	available_at   INTEGER NOT NULL DEFAULT (CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER)),
	reserved_token TEXT,
	reserved_at    INTEGER,
	lease_until    INTEGER,
	unique_key     TEXT,
	backoff_ms     INTEGER,
	timeout_ms     INTEGER,
	seq            INTEGER NOT NULL DEFAULT 0,
	created_at     INTEGER NOT NULL DEFAULT (CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER))
);
CREATE INDEX {jobs}_claim ON {jobs} (queue, priority, available_at, id) WHERE reserved_token IS NULL;
CREATE UNIQUE INDEX {jobs}_unique ON {jobs} (unique_key) WHERE unique_key IS NOT NULL;
CREATE INDEX {jobs}_lease ON {jobs} (lease_until) WHERE reserved_token IS NOT NULL;

CREATE TABLE {failed} (
	id           INTEGER PRIMARY KEY AUTOINCREMENT,
	job          INTEGER NOT NULL,
	queue        TEXT    NOT NULL,
	job_id       TEXT    NOT NULL,
	job_type     TEXT    NOT NULL,
	payload      TEXT    NOT NULL,
	error_class  TEXT    NOT NULL,
	error        TEXT    NOT NULL,
	reason       TEXT    NOT NULL,
	history      TEXT    NOT NULL,
	failed_by    TEXT    NOT NULL,
	attempts     INTEGER NOT NULL,
	crashes      INTEGER NOT NULL,
	replays      INTEGER NOT NULL,
	priority     INTEGER NOT NULL,
	max_attempts INTEGER,
	backoff_ms   INTEGER,
	timeout_ms   INTEGER,
	unique_key   TEXT,
	created_at   INTEGER NOT NULL,
	failed_at    INTEGER NOT NULL
);
CREATE INDEX {failed}_at ON {failed} (failed_at);
CREATE INDEX {failed}_job ON {failed} (job);

CREATE TABLE {control} (
	kind TEXT    NOT NULL,
	name TEXT    NOT NULL,
	at   INTEGER NOT NULL,
	PRIMARY KEY (kind, name)
);

CREATE TABLE {locks} (
	name TEXT    NOT NULL PRIMARY KEY,
	n    INTEGER NOT NULL DEFAULT 0,
	ends INTEGER NOT NULL,
	seq  INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX {locks}_ends ON {locks} (ends);

CREATE TABLE {holds} (
	name  TEXT    NOT NULL,
	slot  INTEGER NOT NULL,
	owner TEXT    NOT NULL DEFAULT '',
	at    INTEGER NOT NULL,
	seq   INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (name, slot)
);

-- +goose Down
DROP TABLE {holds};
DROP TABLE {locks};
DROP TABLE {control};
DROP TABLE {failed};
DROP TABLE {jobs};
