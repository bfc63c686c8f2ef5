package open

import (
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

const (
	schemeSQLite = "sqlite"
	schemeMySQL  = "mysql"
)

// Check returns an error that says what is wrong with dsn, if anything. It does not connect. The
// error does not show dsn, which may contain a password.
func Check(dsn string) error {
	if scheme(dsn) == schemeSQLite {
		if p := path(dsn); p == "" || p == ":memory:" {
			return errors.New("want the path of a file, as in sqlite:/path/file.db")
		}
		return nil
	}
	u, err := url.Parse(dsn)
	if err != nil && (strings.HasPrefix(dsn, "postgres") || strings.HasPrefix(dsn, "mysql:")) {
		return errors.New("not a URL; write % and / in a password as %25 and %2F")
	}
	schemes := []string{"postgres", "postgresql", schemeMySQL}
	if err != nil || !slices.Contains(schemes, u.Scheme) || !strings.Contains(dsn, "://") {
		return errors.New("want sqlite:/path/file.db, postgres://… or mysql://…")
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return errors.New("want a port from 1 to 65535")
		}
	}
	if u.Scheme == schemeMySQL && strings.Trim(u.Path, "/") == "" {
		return errors.New("want the name of a database after the host: mysql://host/database")
	}
	return nil
}

func scheme(dsn string) string {
	scheme, _, _ := strings.Cut(dsn, ":")
	return scheme
}

// path returns the path in the URL of an SQLite file.
func path(dsn string) string {
	return strings.TrimPrefix(strings.TrimPrefix(dsn, schemeSQLite+":"), "//")
}
