package interop

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/protocol"
)

type goldenFrame struct {
	Name   string         `json:"name"`
	Kind   string         `json:"kind"`
	Hex    string         `json:"hex"`
	Fields map[string]any `json:"fields"`
}

func goldenFrames(t *testing.T) []goldenFrame {
	text, err := os.ReadFile("../../protocol/testdata/frames.json")
	require.NoError(t, err)
	var golden struct {
		Frames []goldenFrame `json:"frames"`
	}
	require.NoError(t, json.Unmarshal(text, &golden))
	require.NotEmpty(t, golden.Frames)
	return golden.Frames
}

// order is how the fields of a package and a response lie in their arrays.
var order = map[string][]string{
	"package":  {"version", "type", "id", "expire", "task", "payload", "meta", "limits"},
	"response": {"version", "id", "ok", "status", "data", "task_id"},
}

func (g goldenFrame) body(t *testing.T) []byte {
	b, err := hex.DecodeString(g.Hex)
	require.NoError(t, err)
	return b[4:]
}

// The other library reads in each golden frame what the file says of it.
func TestGoldenFramesAreReadByAnotherLibrary(t *testing.T) {
	for _, g := range goldenFrames(t) {
		t.Run(g.Name, func(t *testing.T) {
			elements := unpack(t, g.body(t))
			for i, field := range order[g.Kind] {
				var got any
				if i < len(elements) {
					got = elements[i]
				} else if field == "task_id" {
					got = 0
				}
				gotJSON, err := json.Marshal(got)
				require.NoError(t, err)
				wantJSON, err := json.Marshal(g.Fields[field])
				require.NoError(t, err)
				assert.JSONEq(t, string(wantJSON), string(gotJSON), field)
			}
		})
	}
}

// What the other library writes of the same values reads here as the golden frame does.
func TestFramesOfAnotherLibraryAreRead(t *testing.T) {
	for _, g := range goldenFrames(t) {
		t.Run(g.Name, func(t *testing.T) {
			body := pack(t, unpack(t, g.body(t)))
			switch g.Kind {
			case "package":
				want, err := protocol.ParsePackage(g.body(t))
				require.NoError(t, err)
				got, err := protocol.ParsePackage(body)
				require.NoError(t, err)
				assert.Equal(t, want, got)
			case "response":
				want, err := protocol.ParseResponse(g.body(t))
				require.NoError(t, err)
				got, err := protocol.ParseResponse(body)
				require.NoError(t, err)
				assert.Equal(t, want, got)
			}
		})
	}
}
