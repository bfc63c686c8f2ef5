// Package measure gives contenders their turns, in rounds, and says what they reached.
package measure
