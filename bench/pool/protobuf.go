package main

import (
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/taskd-go/task/bench/internal/measure"
)

// The service of the contenders that carry protobuf. Its messages are BytesValue, so that no code
// must be generated.
const (
	protoService = "bench.Echo"
	methodEcho   = "Echo"
	methodAccept = "Accept"
)

// protoAnswer returns the answer of the service.
func protoAnswer(method string, in *wrapperspb.BytesValue) *wrapperspb.BytesValue {
	if method == methodAccept {
		return &wrapperspb.BytesValue{}
	}
	return in
}

// protoCall returns a call of the service that uses invoke, or nil if the service has no such call.
func protoCall(c measure.Case, payload []byte, invoke func(method string, in,
	out *wrapperspb.BytesValue) error) func() error {
	method, want := methodEcho, payload
	switch c.Kind {
	case kindSync:
	case kindAsync:
		method, want = methodAccept, nil
	default:
		return nil
	}
	return func() error {
		var out wrapperspb.BytesValue
		if err := invoke(method, wrapperspb.Bytes(payload), &out); err != nil {
			return err
		}
		return same(out.Value, want)
	}
}
