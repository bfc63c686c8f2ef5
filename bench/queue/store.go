package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/redis/go-redis/v9"
)

// A store is a database in which queues keep their jobs.
type store string

const (
	storeSQLite   store = "SQLite"
	storePostgres store = "PostgreSQL"
	storeMariaDB  store = "MariaDB"
	storeRedis    store = "Redis"
)

// redisDB is the database of the Redis server to use. It must be empty, because asynq's keys cannot
// be told from others.
const redisDB = 15

// stores are the stores that answer. They make a new place for each queue.
type stores struct {
	dir        string
	postgres   *sql.DB
	mariadb    *sql.DB
	redis      *redis.Client
	durability map[store]string
	made       []func(ctx context.Context) error
}

// openStores connects to the servers, and reports on progress those that do not answer.
func openStores(ctx context.Context, progress io.Writer) (*stores, error) {
	s := &stores{durability: map[store]string{
		storeSQLite: "WAL, synchronous=NORMAL: survives the process; a power failure may undo the last commits",
	}}
	var err error
	if s.dir, err = os.MkdirTemp("", "bench-queues-"); err != nil {
		return s, err
	}
	for _, server := range []struct {
		store store
		open  func(context.Context) (string, error)
	}{{storePostgres, s.openPostgres}, {storeMariaDB, s.openMariaDB}, {storeRedis, s.openRedis}} {
		limited, cancel := context.WithTimeout(ctx, 5*time.Second)
		durability, err := server.open(limited)
		cancel()
		if err != nil {
			fmt.Fprintf(progress, "%s is left out, since it does not answer as it should: %v\n", server.store, err)
			continue
		}
		s.durability[server.store] = durability
	}
	return s, nil
}

func (s *stores) answers(of store) bool { return s.durability[of] != "" }

func setting(name, otherwise string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return otherwise
}

func postgresURL() string {
	return setting("TASKD_TEST_POSTGRES", "postgres://postgres@127.0.0.1:5432/postgres?sslmode=disable")
}

func mariadbDSN() string { return setting("TASKD_TEST_MYSQL", "root@tcp(127.0.0.1:3306)/") }

func redisURL() string { return setting("TASKD_TEST_REDIS", "redis://127.0.0.1:6379") }

func (s *stores) openPostgres(ctx context.Context) (string, error) {
	db, err := sql.Open("pgx", postgresURL())
	if err != nil {
		return "", err
	}
	s.postgres = db
	var version, fsync, commit string
	const settings = "SELECT current_setting('server_version'), current_setting('fsync'), " +
		"current_setting('synchronous_commit')"
	err = db.QueryRowContext(ctx, settings).Scan(&version, &fsync, &commit)
	return fmt.Sprintf("%s, fsync=%s, synchronous_commit=%s", firstWord(version), fsync, commit), err
}

func (s *stores) openMariaDB(ctx context.Context) (string, error) {
	db, err := sql.Open("mysql", mariadbDSN())
	if err != nil {
		return "", err
	}
	s.mariadb = db
	var version, flush, binlog string
	err = db.QueryRowContext(ctx, "SELECT @@version, @@innodb_flush_log_at_trx_commit, @@log_bin").Scan(&version,
		&flush, &binlog)
	return fmt.Sprintf("%s, innodb_flush_log_at_trx_commit=%s, log_bin=%s", version, flush, binlog), err
}

func (s *stores) openRedis(ctx context.Context) (string, error) {
	opts, err := redis.ParseURL(redisURL())
	if err != nil {
		return "", err
	}
	opts.DB = redisDB
	s.redis = redis.NewClient(opts)
	n, err := s.redis.DBSize(ctx).Result()
	if err == nil && n > 0 {
		err = fmt.Errorf("its database %d is in use", redisDB)
	}
	if err != nil {
		return "", err
	}
	config, err := s.redis.ConfigGet(ctx, "append*").Result()
	return fmt.Sprintf("appendonly=%s, appendfsync=%s", config["appendonly"], config["appendfsync"]), err
}

func firstWord(text string) string {
	word, _, _ := strings.Cut(text, " ")
	return word
}

// make returns a new place for one queue: a file, or the address of an empty database.
func (s *stores) make(ctx context.Context, of store) (place string, err error) {
	name := "bench_" + strings.ToLower(rand.Text()[:12])
	drop := func(db *sql.DB, statement string) {
		s.made = append(s.made, func(ctx context.Context) error {
			_, err := db.ExecContext(ctx, statement)
			return err
		})
	}
	switch of {
	case storePostgres:
		if _, err := s.postgres.ExecContext(ctx, "CREATE DATABASE "+name); err != nil {
			return "", err
		}
		drop(s.postgres, "DROP DATABASE "+name+" WITH (FORCE)")
		u, err := url.Parse(postgresURL())
		if err != nil {
			return "", errors.New("TASKD_TEST_POSTGRES is no URL")
		}
		u.Path = "/" + name
		return u.String(), nil
	case storeMariaDB:
		if _, err := s.mariadb.ExecContext(ctx, "CREATE DATABASE "+name); err != nil {
			return "", err
		}
		drop(s.mariadb, "DROP DATABASE "+name)
		config, err := mysqldriver.ParseDSN(mariadbDSN())
		if err != nil {
			return "", err
		}
		_, query, _ := strings.Cut(mariadbDSN(), "?")
		u := url.URL{
			Scheme: "mysql", User: url.UserPassword(config.User, config.Passwd), Host: config.Addr,
			Path: "/" + name, RawQuery: query,
		}
		return u.String(), nil
	case storeRedis:
		s.made = append(s.made, func(ctx context.Context) error { return s.redis.FlushDB(ctx).Err() })
		return redisURL(), nil
	}
	return filepath.Join(s.dir, name+".db"), nil
}

// close removes all places.
func (s *stores) close(ctx context.Context) error {
	var errs []error
	for _, remove := range s.made {
		errs = append(errs, remove(ctx))
	}
	for _, db := range []*sql.DB{s.postgres, s.mariadb} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	if s.redis != nil {
		errs = append(errs, s.redis.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(s.dir))...)
}
