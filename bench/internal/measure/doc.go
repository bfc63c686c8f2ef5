// Package measure times contenders in turns and rounds, and computes the figures of a report.
package measure
