// Package docs holds the documents against the code that they describe.
package docs
