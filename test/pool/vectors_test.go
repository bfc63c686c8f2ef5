package pool_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task"
)

// The cases of testdata/task_pool.json. Those of "selection" are tests
// of sharedstate, those of "framing" of protocol, "validation_order" of worker.

type poolVectors struct {
	Defaults map[string]any `json:"defaults"`
	Codes    []struct {
		Name    string
		Value   int
		Message *string
	} `json:"status_codes"`
	Config []struct {
		Set    map[string]int
		Expect string
	}
	SocketPath struct {
		Cases []struct {
			TempDir, ServerName string
			WorkerID            int `json:"workerId"`
			Bytes               int
			Expect              string
		}
	} `json:"socket_path"`
	Admission []vector
	Timeouts  []vector
	Results   []vector
	Lifecycle []vector
	Fields    []string `json:"status_fields"`
}

type vector struct{ Name string }

func readVectors(t *testing.T) poolVectors {
	t.Helper()
	b, err := os.ReadFile("testdata/task_pool.json")
	require.NoError(t, err)
	var v poolVectors
	require.NoError(t, json.Unmarshal(b, &v))
	return v
}

// runNamed runs the test of each vector; a vector without a test fails, and so
// does a test without a vector.
func runNamed(t *testing.T, vectors []vector, tests map[string]func(t *testing.T)) {
	seen := map[string]bool{}
	for _, v := range vectors {
		seen[v.Name] = true
		test, ok := tests[v.Name]
		if !assert.True(t, ok, "vector %s has no test", v.Name) {
			continue
		}
		t.Run(v.Name, test)
	}
	for name := range tests {
		assert.True(t, seen[name], "test %s has no vector", name)
	}
}

func TestVectorsDefaults(t *testing.T) {
	parallel(t)
	v := readVectors(t)
	p, err := task.New(task.Config{TempDir: shortDir(t)})
	require.NoError(t, err)
	c := p.Config()
	assert.EqualValues(t, v.Defaults["workerNum"], c.WorkerNum)
	assert.EqualValues(t, v.Defaults["maxRunningNum"], c.MaxRunningNum)
	assert.EqualValues(t, v.Defaults["maxPackageSize"], c.MaxPackageSize)
	assert.EqualValues(t, v.Defaults["pushTimeOut_async_s"], c.PushTimeout.Seconds())
	assert.EqualValues(t, v.Defaults["serverName"], c.ServerName)
	assert.Empty(t, c.Tasks)
}

func TestVectorsStatusCodes(t *testing.T) {
	parallel(t)
	codes := map[string]task.Status{
		"ERROR_PROCESS_BUSY":       task.ErrProcessBusy,
		"ERROR_PROTOCOL_ERROR":     task.ErrProtocol,
		"ERROR_ILLEGAL_PACKAGE":    task.ErrIllegalPackage,
		"ERROR_TASK_ERROR":         task.ErrTask,
		"ERROR_PACKAGE_EXPIRE":     task.ErrPackageExpire,
		"ERROR_SOCK_TIMEOUT":       task.ErrSockTimeout,
		"ERROR_PACKAGE_TOO_LARGE":  task.ErrPackageTooLarge,
		"ERROR_RESPONSE_TOO_LARGE": task.ErrResponseTooLarge,
	}
	v := readVectors(t)
	assert.Len(t, v.Codes, len(codes))
	for _, c := range v.Codes {
		t.Run(c.Name, func(t *testing.T) {
			s, ok := codes[c.Name]
			require.True(t, ok)
			assert.Equal(t, c.Value, int(s))
			assert.NotEmpty(t, s.Message())
			if c.Message != nil {
				assert.Equal(t, *c.Message, s.Message())
			}
		})
	}
}

func TestVectorsConfig(t *testing.T) {
	parallel(t)
	for _, c := range readVectors(t).Config {
		for field, value := range c.Set {
			t.Run(field+"="+json.Number(jsonInt(value)).String(), func(t *testing.T) {
				cfg := task.Config{TempDir: shortDir(t)}
				f := reflect.ValueOf(&cfg).Elem().FieldByName(map[string]string{
					"workerNum": "WorkerNum", "maxPackageSize": "MaxPackageSize",
				}[field])
				f.SetInt(int64(value))
				_, err := task.New(cfg)
				switch {
				case value == 0:
					// Zero in a Config is the default. An explicit 0 in a flag or a
					// variable is refused, which cmd/taskd tests.
					assert.NoError(t, err)
				case c.Expect == "ok":
					assert.NoError(t, err)
				default:
					var e *task.ConfigError
					assert.True(t, errors.As(err, &e), "got %v", err)
				}
			})
		}
	}
}

func jsonInt(n int) string { b, _ := json.Marshal(n); return string(b) }

func TestVectorsSocketPath(t *testing.T) {
	parallel(t)
	for _, c := range readVectors(t).SocketPath.Cases {
		t.Run(jsonInt(c.Bytes)+" bytes for worker "+jsonInt(c.WorkerID), func(t *testing.T) {
			assert.Len(t, filepath.Join(c.TempDir, c.ServerName+".TaskWorker."+jsonInt(c.WorkerID)+".sock"), c.Bytes)
			_, err := task.New(task.Config{TempDir: c.TempDir, ServerName: c.ServerName, WorkerNum: c.WorkerID + 1})
			if c.Expect == "ok" {
				assert.NoError(t, err)
				return
			}
			var e *task.ConfigError
			require.True(t, errors.As(err, &e), "got %v", err)
			assert.Contains(t, err.Error(), jsonInt(c.Bytes))
			assert.Contains(t, err.Error(), "100")
		})
	}
}
