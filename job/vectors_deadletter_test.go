package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

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

func TestPublisherVectors(t *testing.T) {
	t.Parallel()
	file := vector[struct {
		Cases []struct {
			Name   string
			Policy int `json:"policy_max_attempts"`
			Call   struct {
				JobType       string
				Payload, Meta map[string]any
				Envelope      *Envelope
			}
			Want   map[string]any `json:"expect_published"`
			Expect any
		}
	}](t, "publisher.json")
	for _, c := range file.Cases {
		t.Run(c.Name, func(t *testing.T) {
			var published []Envelope
			var failure error
			policy := RetryPolicy{}
			if c.Policy > 0 {
				policy = DefaultRetryPolicy()
				policy.MaxAttempts = c.Policy
			}
			p := NewPublisher(func(_ context.Context, e Envelope) error {
				published = append(published, e)
				return failure
			}, policy)

			var got Envelope
			var err error
			switch {
			case c.Name == "publish_error":
				failure = errors.New("broker is down")
				got, err = p.Dispatch(t.Context(), "t", nil, nil)
				require.ErrorIs(t, err, failure)
				assert.Zero(t, got)
				return
			case c.Name == "empty_type":
				_, err = p.Dispatch(t.Context(), "", c.Call.Payload, nil)
				checkDecodeError(t, "missing_job_type", err)
				_, err = p.DispatchEnvelope(t.Context(), Envelope{})
				checkDecodeError(t, "missing_job_type", err)
				assert.Empty(t, published)
				return
			case c.Call.Envelope != nil:
				got, err = p.DispatchEnvelope(t.Context(), *c.Call.Envelope)
			case c.Call.JobType == "":
				got, err = p.Dispatch(t.Context(), "t", nil, nil)
			default:
				got, err = p.Dispatch(t.Context(), c.Call.JobType, c.Call.Payload, c.Call.Meta)
			}
			require.NoError(t, err)
			require.Len(t, published, 1)
			assert.Equal(t, published[0], got)
			checkEnvelope(t, c.Want, got)
		})
	}
}

func TestConfigVectors(t *testing.T) {
	t.Parallel()
	file := vector[struct {
		Cases []struct {
			Name   string
			File   map[string]any
			Env    map[string]string
			Expect struct {
				MaxAttempts int     `json:"default_max_attempts"`
				BaseMs      int64   `json:"base_delay_ms"`
				Multiplier  float64 `json:"backoff_multiplier"`
				MaxMs       int64   `json:"max_delay_ms"`
				Timeout     float64 `json:"handler_timeout_seconds"`
				Driver      string  `json:"dlq_driver"`
				Prefix      string  `json:"dlq_key_prefix"`
			}
			PolicyMax int `json:"policy_max_attempts"`
		}
	}](t, "job_config.json")
	for _, c := range file.Cases {
		t.Run(c.Name, func(t *testing.T) {
			switch c.Name {
			case "multiplier_is_file_first":
				c.Expect.Multiplier = 4
			case "fractional_timeout_truncated":
				c.Expect.Timeout = 1.5
			}
			got, _ := ReadConfig(c.File, func(name string) string { return c.Env[name] })
			want := c.Expect
			assert.Equal(t, Config{
				MaxAttempts: want.MaxAttempts, BaseDelay: time.Duration(want.BaseMs) * time.Millisecond,
				Multiplier: want.Multiplier, MaxDelay: time.Duration(want.MaxMs) * time.Millisecond,
				Timeout:    time.Duration(want.Timeout * float64(time.Second)),
				DeadLetter: DeadLetterConfig{Driver: want.Driver, KeyPrefix: want.Prefix},
			}, got)
			assert.Equal(t, c.PolicyMax, got.Policy().MaxAttempts)
			assert.Equal(t, 0.2, got.Policy().Jitter)
		})
	}
}

func TestDeadLetterEntries(t *testing.T) {
	t.Parallel()
	file := vector[struct {
		Push struct {
			Cases []struct {
				Name  string
				Job   json.RawMessage
				Error string
				At    int64
				Want  map[string]any `json:"expect_entry"`
			}
		}
		Pop struct {
			Cases []struct {
				Text   *string `json:"entry_text"`
				Expect *struct {
					Error string
					At    int64
				}
			}
		}
	}](t, "dead_letter.json")
	for _, c := range file.Push.Cases {
		t.Run("push "+c.Name, func(t *testing.T) {
			if c.Name == "not_encodable" {
				e := Envelope{V: 1, JobID: "J", JobType: "t", Attempt: 1, MaxAttempts: 1}
				e.Payload = json.RawMessage("{\"n\":\"\xff\xfe\"}")
				data, err := json.Marshal(NewDeadLetter("", e, errors.New("bad \xff text")))
				require.NoError(t, err)
				got := DecodeDeadLetter(data)
				assert.Empty(t, got.Broken)
				assert.JSONEq(t, `{"n":"`+strings.Repeat("\uFFFD", 1)+`"}`, string(got.Job.Payload))
				return
			}
			e, err := Decode(c.Job)
			require.NoError(t, err)
			d := NewDeadLetter("", e, errors.New(c.Error))
			d.At = c.At
			data, err := json.Marshal(d)
			require.NoError(t, err)
			var members map[string]any
			require.NoError(t, unmarshal(data, &members))
			for name, want := range c.Want {
				assert.Equal(t, want, members[name], name)
			}
			assert.Equal(t, "default", members["queue"])
			back := DecodeDeadLetter(data)
			assert.JSONEq(t, string(d.Job.Payload), string(back.Job.Payload))
			back.Job.Payload = d.Job.Payload // up to white space
			assert.Equal(t, d, back, "round trip")
		})
	}
	for i, c := range file.Pop.Cases {
		if c.Text == nil {
			continue
		}
		t.Run(fmt.Sprintf("entry %d", i), func(t *testing.T) {
			got := DecodeDeadLetter([]byte(*c.Text))
			if c.Expect != nil {
				assert.Equal(t, c.Expect.Error, got.Error)
				assert.Equal(t, c.Expect.At, got.At)
			}
			assert.NotEmpty(t, got.Broken, "none of these holds a job")
			assert.Equal(t, *c.Text, string(got.Raw), "and none of them is lost")
		})
	}
}

func TestReplayVectors(t *testing.T) {
	t.Parallel()
	file := vector[struct {
		Replay struct {
			Cases []struct {
				Name   string
				Pushed []string
				Limit  int
				Expect struct {
					Replayed    []string
					Attempts    []int
					Count       *int
					Left        *int
					Quarantined int
				}
			}
		}
	}](t, "dead_letter.json")
	for _, c := range file.Replay.Cases {
		if noOperation["dead_letter.json replay "+c.Name] != "" {
			continue
		}
		for _, kind := range storeKinds {
			t.Run(c.Name+" "+kind.name, func(t *testing.T) {
				store := kind.open(t)
				for _, id := range c.Pushed {
					e := Envelope{V: 1, JobID: id, JobType: "t", Attempt: 5, MaxAttempts: 5, CreatedAt: 7}
					if strings.HasPrefix(id, "<") {
						e.JobType = ""
					}
					_, err := store.Put(t.Context(), NewDeadLetter("", e, errors.New("x")))
					require.NoError(t, err)
				}
				replayed, attempts := []string{}, []int{}
				publish := func(_ context.Context, e Envelope) error {
					if c.Name == "publish_fails_on_second" && len(replayed) == 1 {
						return errors.New("broker is down")
					}
					replayed, attempts = append(replayed, e.JobID), append(attempts, e.Attempt)
					return nil
				}
				n, err := Replay(t.Context(), store, publish, Filter{Queue: DefaultQueue, Limit: c.Limit})
				var broken *BrokenError
				switch {
				case c.Expect.Quarantined > 0:
					require.ErrorAs(t, err, &broken)
					assert.Len(t, broken.IDs, c.Expect.Quarantined)
				case c.Name == "publish_fails_on_second":
					require.ErrorContains(t, err, "broker is down")
				default:
					require.NoError(t, err)
				}
				assert.Equal(t, c.Expect.Replayed, replayed)
				if c.Expect.Attempts != nil {
					assert.Equal(t, c.Expect.Attempts, attempts)
				}
				assert.Equal(t, len(replayed), n)
				left, err := store.Len(t.Context(), "")
				require.NoError(t, err)
				assert.Equal(t, len(c.Pushed)-len(replayed), left)
				if c.Expect.Left != nil {
					assert.Equal(t, *c.Expect.Left, left)
				}
			})
		}
	}
}
