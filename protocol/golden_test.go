package protocol

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"
)

// golden is testdata/frames.json, the frames that other implementations are held to.
type golden struct {
	Frames []struct {
		Name    string          `json:"name"`
		Kind    string          `json:"kind"`
		Written bool            `json:"written"`
		Hex     string          `json:"hex"`
		Fields  json.RawMessage `json:"fields"`
	} `json:"frames"`
	Refused []struct {
		Name   string `json:"name"`
		Hex    string `json:"hex"`
		Status Status `json:"status"`
		ID     uint64 `json:"id"`
	} `json:"refused"`
}

func readGolden(t *testing.T) golden {
	t.Helper()
	text, err := os.ReadFile("testdata/frames.json")
	require.NoError(t, err)
	var g golden
	require.NoError(t, json.Unmarshal(text, &g))
	require.NotEmpty(t, g.Frames)
	require.NotEmpty(t, g.Refused)
	return g
}

type goldenPackage struct {
	Version    int               `json:"version"`
	Type       Type              `json:"type"`
	ID         uint64            `json:"id"`
	Expire     int64             `json:"expire"`
	Task       string            `json:"task"`
	Payload    json.RawMessage   `json:"payload"`
	PayloadHex string            `json:"payload_hex"`
	Meta       map[string]string `json:"meta"`
	Limits     []time.Duration   `json:"limits"`
}

func (g *goldenPackage) parsed(t *testing.T) Package {
	p := Package{
		Type: g.Type &^ Alone, Alone: g.Type&Alone != 0, ID: g.ID, Expire: g.Expire,
		Task: []byte(g.Task), Payload: unhex(t, g.PayloadHex), Meta: g.Meta,
	}
	if g.Limits != nil {
		p.Soft, p.Hard = g.Limits[0], g.Limits[1]
	}
	return p
}

type goldenResponse struct {
	Version int             `json:"version"`
	ID      uint64          `json:"id"`
	OK      bool            `json:"ok"`
	Status  Status          `json:"status"`
	Data    json.RawMessage `json:"data"`
	DataHex string          `json:"data_hex"`
	TaskID  uint64          `json:"task_id"`
}

func (g *goldenResponse) parsed(t *testing.T) Response {
	return Response{ID: g.ID, OK: g.OK, Status: g.Status, Data: unhex(t, g.DataHex), TaskID: g.TaskID}
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	require.NoError(t, err)
	return b
}

// sameAsJSON compares the bytes of a value with its description in the file.
func sameAsJSON(t *testing.T, raw []byte, want json.RawMessage) {
	t.Helper()
	var v any
	require.NoError(t, msgpack.Unmarshal(raw, &v))
	got, err := json.Marshal(v)
	require.NoError(t, err)
	assert.JSONEq(t, string(want), string(got))
}

func TestGoldenFramesAreReadAndWritten(t *testing.T) {
	t.Parallel()
	for _, frame := range readGolden(t).Frames {
		t.Run(frame.Name, func(t *testing.T) {
			body, _, err := NewReader(bytes.NewReader(unhex(t, frame.Hex)), DefaultPackageSize).Next()
			require.NoError(t, err)
			var written []byte
			switch frame.Kind {
			case "package":
				var fields goldenPackage
				require.NoError(t, json.Unmarshal(frame.Fields, &fields))
				got, err := ParsePackage(body)
				require.NoError(t, err)
				want := fields.parsed(t)
				assert.Equal(t, want, got)
				assert.Equal(t, Version, fields.Version)
				sameAsJSON(t, got.Payload, fields.Payload)
				written = appendPackage(nil, &want)
			case "response":
				var fields goldenResponse
				require.NoError(t, json.Unmarshal(frame.Fields, &fields))
				got, err := ParseResponse(body)
				require.NoError(t, err)
				want := fields.parsed(t)
				assert.Equal(t, want, got)
				assert.Equal(t, Version, fields.Version)
				sameAsJSON(t, got.Data, fields.Data)
				written = AppendResponse(nil, &want)
			default:
				t.Fatalf("unknown kind %q", frame.Kind)
			}
			if frame.Written {
				assert.Equal(t, frame.Hex, hex.EncodeToString(frameOf(t, written)))
			}
		})
	}
}

func TestGoldenRefusals(t *testing.T) {
	t.Parallel()
	for _, frame := range readGolden(t).Refused {
		t.Run(frame.Name, func(t *testing.T) {
			body, _, err := NewReader(bytes.NewReader(unhex(t, frame.Hex)), DefaultPackageSize).Next()
			if err == nil {
				_, err = ParsePackage(body)
			}
			var e *Error
			require.ErrorAs(t, err, &e)
			assert.Equal(t, frame.Status, e.Status)
			assert.Equal(t, frame.ID, e.ID)
		})
	}
}

func TestGreetingAndNoticeAreTheGoldenOnes(t *testing.T) {
	t.Parallel()
	named := make(map[string]string)
	for _, frame := range readGolden(t).Frames {
		named[frame.Name] = frame.Hex
	}
	greeting := AppendGreeting(nil, Greeting{Index: 0, Generation: 3, PID: 4711, MaxPackageSize: DefaultPackageSize})
	assert.Equal(t, named["greeting"], hex.EncodeToString(greeting))
	assert.Equal(t, named["notice: the worker drains, 9 is the last id that it read"],
		hex.EncodeToString(AppendNotice(nil, 9)))
}

// The hex blocks of PROTOCOL.md are golden frames. The line before each names it.
func TestTheSpecificationShowsGoldenFrames(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../PROTOCOL.md")
	require.NoError(t, err)
	named := make(map[string]string)
	for _, frame := range readGolden(t).Frames {
		named[frame.Name] = frame.Hex
	}
	blocks := regexp.MustCompile("(?m)^Frame \"(.*)\":\n\n```hex\n((?s:.*?))```$").FindAllStringSubmatch(string(text), -1)
	require.NotEmpty(t, blocks)
	comment := regexp.MustCompile(`(?m)#.*$`)
	for _, block := range blocks {
		digits := strings.Join(strings.Fields(comment.ReplaceAllString(block[2], "")), "")
		assert.Equal(t, named[block[1]], digits, block[1])
	}
}

// Every status has its row in PROTOCOL.md.
func TestTheSpecificationListsEveryStatus(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../PROTOCOL.md")
	require.NoError(t, err)
	for s := StatusResponseTooLarge; s <= StatusBusy; s++ {
		assert.Regexp(t, regexp.MustCompile(`(?m)^\| `+strconv.Itoa(int(s))+` \| `+s.Message()+` \|`), string(text))
	}
}
