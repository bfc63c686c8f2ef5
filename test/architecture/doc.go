// Package architecture has the test that holds the packages to the import rules of docs/design.md.
package architecture
