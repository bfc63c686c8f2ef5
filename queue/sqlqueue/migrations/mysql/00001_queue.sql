-- +goose Up
CREATE TABLE {jobs} (
	id             BIGINT AUTO_INCREMENT PRIMARY KEY,
	queue          VARCHAR(191) NOT NULL DEFAULT 'default',
	payload        LONGTEXT     NOT NULL,
	priority       SMALLINT     NOT NULL DEFAULT 1 CHECK (priority BETWEEN 0 AND 3),
	attempts       INT          NOT NULL DEFAULT 0,
	max_attempts   INT,
	crashes        INT          NOT NULL DEFAULT 0,
	available_at   BIGINT       NOT NULL DEFAULT (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000),
	reserved_token VARCHAR(191),
	reserved_at    BIGINT,
	lease_until    BIGINT,
	unique_key     VARCHAR(255) UNIQUE,
	backoff_ms     BIGINT,
	timeout_ms     BIGINT,
	seq            BIGINT       NOT NULL DEFAULT 0,
	created_at     BIGINT       NOT NULL DEFAULT (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000),
	KEY {jobs}_claim (queue, priority, reserved_token, available_at, id),
	KEY {jobs}_lease (lease_until)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE {failed} (
	id           BIGINT AUTO_INCREMENT PRIMARY KEY,
	job          BIGINT       NOT NULL,
	queue        VARCHAR(191) NOT NULL,
	job_id       TEXT         NOT NULL,
	job_type     TEXT         NOT NULL,
	payload      LONGTEXT     NOT NULL,
	error_class  TEXT         NOT NULL,
	error        LONGTEXT     NOT NULL,
	reason       VARCHAR(64)  NOT NULL,
	history      LONGTEXT     NOT NULL,
	failed_by    TEXT         NOT NULL,
	attempts     INT          NOT NULL,
	crashes      INT          NOT NULL,
	replays      INT          NOT NULL,
	priority     SMALLINT     NOT NULL,
	max_attempts INT,
	backoff_ms   BIGINT,
	timeout_ms   BIGINT,
	unique_key   VARCHAR(255),
	created_at   BIGINT       NOT NULL,
	failed_at    BIGINT       NOT NULL,
	KEY {failed}_at (failed_at),
	KEY {failed}_job (job)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE {control} (
	kind VARCHAR(32)  NOT NULL,
	name VARCHAR(191) NOT NULL,
	at   BIGINT       NOT NULL,
	PRIMARY KEY (kind, name)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE {locks} (
	name VARCHAR(512) NOT NULL PRIMARY KEY,
	n    INT          NOT NULL DEFAULT 0,
	ends BIGINT       NOT NULL,
	seq  BIGINT       NOT NULL DEFAULT 0,
	KEY {locks}_ends (ends)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE {holds} (
	name  VARCHAR(512) NOT NULL,
	slot  BIGINT       NOT NULL,
	owner VARCHAR(191) NOT NULL DEFAULT '',
	at    BIGINT       NOT NULL,
	seq   BIGINT       NOT NULL DEFAULT 0,
	PRIMARY KEY (name, slot)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- +goose Down
DROP TABLE {holds};
DROP TABLE {locks};
DROP TABLE {control};
DROP TABLE {failed};
DROP TABLE {jobs};
