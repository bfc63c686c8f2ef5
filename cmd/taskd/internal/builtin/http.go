package builtin

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/taskd-go/task/job"
)

// A hook is the payload of a job of type http.
type hook struct {
	URL     string            `json:"url"`
	Body    json.RawMessage   `json:"body"` // sent unchanged; absent: nothing
	Headers map[string]string `json:"headers"`
	Timeout string            `json:"timeout"` // a duration such as "10s"
}

const hookTimeout = 30 * time.Second

// httpJobs sends hooks. It follows no redirection, in which a POST may become a GET.
func httpJobs() job.Handler {
	client := &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return job.Typed("http", func(ctx context.Context, h hook, e job.Envelope) job.Result {
		limit, err := h.check()
		if err != nil {
			return job.Fail(&job.DeadError{Reason: job.ReasonDecode, Err: err})
		}
		ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %s", limit))
		defer cancel()
		return h.post(ctx, client, e.JobID)
	})
}

func (h hook) check() (timeout time.Duration, err error) {
	u, err := url.Parse(h.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return 0, errors.New(`want {"url": "http://…" or "https://…"}`)
	}
	timeout, err = time.ParseDuration(cmp.Or(h.Timeout, hookTimeout.String()))
	if err != nil || timeout <= 0 {
		return 0, fmt.Errorf("timeout %q: want a duration of more than 0, such as 10s", h.Timeout)
	}
	return timeout, nil
}

func (h hook) post(ctx context.Context, client *http.Client, id string) job.Result {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, bytes.NewReader(h.Body))
	if err != nil {
		return job.Fail(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "taskd")
	req.Header.Set("Idempotency-Key", id) // a job may run more than once
	for name, value := range h.Headers {
		req.Header.Set(name, value)
	}
	resp, err := client.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", err, context.Cause(ctx))
		}
		return job.Retry(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 300)) // for the error text
	switch class := resp.StatusCode / 100; {
	case class == 2:
		return job.Success()
	case class == 4:
		return job.Fail(&StatusError{resp.Status, string(text)})
	default:
		return job.Retry(&StatusError{resp.Status, string(text)})
	}
}

// A StatusError is an HTTP answer other than 2xx.
type StatusError struct{ status, body string }

func (e *StatusError) Error() string {
	if e.body == "" {
		return "answered " + e.status
	}
	return fmt.Sprintf("answered %s: %s", e.status, e.body)
}
