package main

import (
	"testing"

	"github.com/taskd-go/task/examples/recipes/internal/recipetest"
	"github.com/taskd-go/task/internal/programtest"
)

func TestMain(m *testing.M) { programtest.Main(m, main) }

func TestServerAnswersFromThePool(t *testing.T) {
	recipetest.Web(t, "echo", `{"below":100,"primes":25}`)
}
