// Package conformance runs the queue's suite of tests on SQLite, PostgreSQL and MariaDB or MySQL.
package conformance
