// Package mysql opens a MySQL or MariaDB database for a queue.
package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/taskd-go/task/queue/sqlqueue"
)

// Open connects to the database that dsn names: a data source name of go-sql-driver/mysql, such as
// user:password@tcp(host:3306)/database, or a mysql:// URL. The pool has at most 16 connections.
// Each connection sets autocommit, completion_type, sql_select_limit and a strict sql_mode as the
// queue needs them, whatever the server and dsn have. Commits survive a power failure only if the
// server has innodb_flush_log_at_trx_commit=1, its default.
func Open(ctx context.Context, dsn string) (*sql.DB, error) {
	config, err := parse(dsn)
	if err != nil {
		return nil, err
	}
	// Statements are sent with their parameters, in one round trip, instead of being prepared
	// first.
	config.InterpolateParams = true
	config.ClientFoundRows = true
	config.Logger = logger{}
	if config.Params == nil {
		config.Params = map[string]string{}
	}
	maps.Copy(config.Params, session)
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, fmt.Errorf("mysql: %w", err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(16)
	db.SetMaxIdleConns(16)
	db.SetConnMaxLifetime(5 * time.Minute) // less than what servers and proxies between allow
	if err := db.PingContext(ctx); err != nil {
		db.Close()
		return nil, fmt.Errorf("mysql: %w", err)
	}
	return db, nil
}

// session has the variables that the queue depends on. Set otherwise, a server stores nothing, ends
// the session after a commit, hides rows, or cuts values that are too long.
var session = map[string]string{
	"autocommit":       "1",
	"completion_type":  "'NO_CHAIN'",
	"sql_select_limit": "18446744073709551615",
	"sql_mode":         "'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'",
}

// A logger logs what the driver would print: connections that the server closed.
type logger struct{}

// Print implements mysql.Logger. The driver returns its errors, so they are logged for debugging
// only.
func (logger) Print(v ...any) { slog.Debug("mysql: " + strings.TrimSpace(fmt.Sprintln(v...))) }

func parse(dsn string) (*mysql.Config, error) {
	if !strings.HasPrefix(dsn, "mysql://") {
		config, err := mysql.ParseDSN(dsn)
		if err != nil {
			return nil, fmt.Errorf("mysql: %w", err)
		}
		return config, nil
	}
	u, err := url.Parse(dsn)
	if err != nil {
		return nil, fmt.Errorf("mysql: the URL cannot be read") // its error would show the password
	}
	host := u.Host
	if u.Port() == "" {
		host += ":3306"
	}
	config, err := mysql.ParseDSN("tcp(" + host + ")/" + strings.TrimPrefix(u.Path, "/") + "?" + u.RawQuery)
	if err != nil {
		return nil, fmt.Errorf("mysql: %w", err)
	}
	config.User = u.User.Username()
	config.Passwd, _ = u.User.Password()
	return config, nil
}

// Store returns the store in a database that Open opened, for queue.New.
func Store(db *sql.DB, opts ...sqlqueue.Option) (*sqlqueue.Store, error) {
	return sqlqueue.New(db, sqlqueue.MySQL, opts...)
}
