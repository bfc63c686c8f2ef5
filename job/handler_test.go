package job

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRegistryVectors(t *testing.T) {
	t.Parallel()
	file := vector[struct {
		Cases []struct {
			Name     string
			Register [][]string
			Require  string
			Get      string
			Expect   struct {
				Count         *int
				Has           map[string]bool
				Error         bool
				Contains      string `json:"message_contains"`
				None          bool
				RegisterError string `json:"register_error"`
				WithReplace   *struct {
					Types    []string
					Count    int
					OwnerOfB int `json:"owner_of_b"`
				} `json:"with_replace"`
			}
		}
	}](t, "registry.json")
	for _, c := range file.Cases {
		t.Run(c.Name, func(t *testing.T) {
			var handlers []Handler
			for _, types := range c.Register {
				handlers = append(handlers, &funcHandler{types: types})
			}
			reg, err := NewRegistry(handlers...)
			if c.Expect.RegisterError != "" {
				require.ErrorContains(t, err, `"b"`)
				reg, err = NewRegistry(handlers[0])
				require.NoError(t, err)
				require.NoError(t, reg.Replace(handlers[1]))
				want := c.Expect.WithReplace
				assert.Equal(t, want.Types, reg.Types())
				assert.Equal(t, want.Count, reg.Len())
				owner, _ := reg.Get("b")
				assert.Same(t, handlers[want.OwnerOfB], owner)
				return
			}
			if c.Require == "" && c.Expect.Error {
				require.Error(t, err)
				return
			}
			require.NoError(t, err)
			if c.Expect.Count != nil {
				assert.Equal(t, *c.Expect.Count, reg.Len())
			}
			for name, want := range c.Expect.Has {
				assert.Equal(t, want, reg.Has(name), name)
			}
			if c.Require != "" {
				_, err := reg.Require(c.Require)
				require.ErrorContains(t, err, c.Expect.Contains)
			}
			if c.Get != "" {
				_, ok := reg.Get(c.Get)
				assert.Equal(t, c.Expect.None, !ok)
			}
		})
	}
}
