package main

import (
	"testing"

	"github.com/taskd-go/task/examples/recipes/internal/recipetest"
	"github.com/taskd-go/task/internal/programtest"
)

func TestMain(m *testing.M) { programtest.Main(m, main) }

func TestRouterAnswersFromThePool(t *testing.T) {
	recipetest.Web(t, "gin", `{"below":100,"primes":25}`)
}
