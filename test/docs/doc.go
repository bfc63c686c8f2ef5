// Package docs checks the documents: their links, their width, and their lists against the code.
package docs
