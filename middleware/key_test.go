package middleware_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/middleware"
)

func TestKey(t *testing.T) {
	t.Parallel()
	const payload = `{"supplier_id":7,"big":9007199254740993,"name":"Äpfel {x}","on":true,"nothing":null,"blank":"",
		"list":[1],"object":{"a":1},"a":"1_2","b":"3"}`
	for _, c := range []struct{ name, template, want string }{
		{"no placeholder", "sync_inventory", "sync_inventory"},
		{"a number", "import_supplier_{supplier_id}", "import_supplier_7"},
		{"a number beyond float64", "{big}", "9007199254740993"},
		{"a text, whose braces are not looked at", "<{name}>", "<Äpfel {x}>"},
		{"a truth value", "{on}", "true"},
		{"two members are quoted", "{a}_{b}", `"1_2"_"3"`},
		{"one member twice is quoted too", "{b}{b}", `"3""3"`},
		{"missing", "import_{absent}", ""},
		{"one of two missing", "{a}_{absent}", ""},
		{"null", "{nothing}", ""},
		{"an empty text", "import_{blank}", ""},
		{"an array", "{list}", ""},
		{"an object", "{object}", ""},
		{"names are exact", "{Supplier_ID}", ""},
		{"empty braces are text", "a{}b", "a{}b"},
		{"an open brace is text", "a{b", "a{b"},
		{"a closing brace is text", "a}b", "a}b"},
		{"an open brace before a placeholder is text", "{{b}", "{3"},
		{"nothing is no key", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.want, middleware.Key(c.template)(job.Envelope{Payload: []byte(payload)}))
		})
	}
	for name, payload := range map[string]string{"an array": `["a"]`, "nothing": ``, "no JSON": `{"a"`} {
		t.Run("a payload that is "+name, func(t *testing.T) {
			assert.Empty(t, middleware.Key("{a}")(job.Envelope{Payload: []byte(payload)}))
			assert.Equal(t, "fixed", middleware.Key("fixed")(job.Envelope{Payload: []byte(payload)}))
		})
	}
}

func TestKeyKeepsNeighboursApart(t *testing.T) {
	t.Parallel()
	key := middleware.Key("{a}_{b}")
	one := key(job.Envelope{Payload: []byte(`{"a":"1_2","b":"3"}`)})
	two := key(job.Envelope{Payload: []byte(`{"a":"1","b":"2_3"}`)})
	assert.NotEqual(t, one, two)
}

func TestJobWithoutAKeyFailsInEveryLayer(t *testing.T) {
	t.Parallel()
	s := middleware.NewMemory(nil)
	key := middleware.Key("import_{supplier_id}")
	var log eventLog
	layers := map[string]middleware.Middleware{
		"unique":     middleware.UniqueJob(s, key, log.option()),
		"overlap":    middleware.WithoutOverlapping(s, key, log.option()),
		"concurrent": middleware.Concurrent(s, key, 3, log.option()),
		"rate":       middleware.RateLimited(s, 3, time.Minute, middleware.KeyedBy(key), log.option()),
		"throttle":   middleware.ThrottlesExceptions(s, 3, time.Minute, middleware.KeyedBy(key), log.option()),
	}
	for name, layer := range layers {
		t.Run(name, func(t *testing.T) {
			log.events = nil
			inner := succeeds()
			r := call(t.Context(), envelope("J"), inner, layer)
			assert.Equal(t, job.KindFail, r.Kind())
			var missing *middleware.KeyError
			require.ErrorAs(t, r.Err(), &missing)
			assert.Equal(t, middleware.KeyError{Layer: name, JobType: "J"}, *missing)
			assert.Zero(t, inner.runs.Load())
			assert.Equal(t, []middleware.EventKind{middleware.KeyMissing}, log.kinds())
		})
	}
}
