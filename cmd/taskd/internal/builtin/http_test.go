package builtin

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/job"
)

func TestHTTPJobs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		want   job.Kind
	}{
		"created":             {201, job.KindSuccess},
		"no such page":        {404, job.KindFail},
		"an error over there": {503, job.KindRetry},
		"somewhere else":      {302, job.KindRetry},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var body map[string]any
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				assert.Equal(t, http.MethodPost, r.Method)
				assert.Equal(t, "j1", r.Header.Get("Idempotency-Key"))
				assert.Equal(t, "v", r.Header.Get("X-Own"))
				assert.NoError(t, json.NewDecoder(r.Body).Decode(&body))
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(c.status)
			}))
			defer server.Close()
			got := post(t, t.Context(), hook{
				URL: server.URL, Body: []byte(`{"n": 1}`), Headers: map[string]string{"X-Own": "v"},
			})
			assert.Equal(t, c.want, got.Kind(), got.Err())
			assert.EqualValues(t, 1, body["n"])
		})
	}
}

func TestAnHTTPJobGivesUpAfterItsTimeout(t *testing.T) {
	t.Parallel()
	end := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-end }))
	defer server.Close()
	defer close(end)
	got := post(t, t.Context(), hook{URL: server.URL, Timeout: "20ms"})
	assert.Equal(t, job.KindRetry, got.Kind())
	assert.ErrorContains(t, got.Err(), "no answer within 20ms")
}

func TestAnHTTPJobThatCannotBeReadIsFinal(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]hook{
		"no address":            {},
		"another protocol":      {URL: "ftp://example.org/"},
		"a time without a unit": {URL: "http://example.org/", Timeout: "5"},
	} {
		assert.Equal(t, job.KindFail, post(t, t.Context(), h).Kind(), name)
	}
	refused := post(t, t.Context(), hook{URL: "http://u:secret@127.0.0.1:1/"})
	assert.Equal(t, job.KindRetry, refused.Kind())
	assert.NotContains(t, refused.Err().Error(), "secret")
}

func post(t *testing.T, ctx context.Context, h hook) job.Result {
	t.Helper()
	e, err := job.New("http", h, nil, job.RetryPolicy{})
	require.NoError(t, err)
	e.JobID = "j1"
	return httpJobs().Handle(ctx, e)
}
