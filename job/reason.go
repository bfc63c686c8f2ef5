package job

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/taskd-go/task/internal/textcut"
)

// A Reason is a code from a closed list that says why a job is dead, runs again or waits. It is
// stored and counted; the error beside it has the words for people.
type Reason string

// The reasons.
const (
	ReasonFailed       Reason = "failed"        // the handler failed for good, or retried on its last attempt
	ReasonExhausted    Reason = "exhausted"     // its attempts were used up before it ran
	ReasonTimeout      Reason = "timeout"       // it ran longer than its time limit
	ReasonPanic        Reason = "panic"         // the handler or a middleware panicked
	ReasonCrashed      Reason = "crashed"       // the process that ran it ended
	ReasonDecode       Reason = "decode"        // its message or its payload cannot be read
	ReasonUnregistered Reason = "unregistered"  // its type has no handler
	ReasonDeferred     Reason = "deferred"      // it asked to wait, or waited longer than MaxDeferAge
	ReasonNewer        Reason = "newer_version" // its envelope's version is newer than this package
	ReasonInterrupted  Reason = "interrupted"   // its caller's context ended while it ran
	ReasonLeaseLost    Reason = "lease_lost"    // another worker may own it by now
)

var reasons = []Reason{ReasonFailed, ReasonExhausted, ReasonTimeout, ReasonPanic, ReasonCrashed, ReasonDecode,
	ReasonUnregistered, ReasonDeferred, ReasonNewer, ReasonInterrupted, ReasonLeaseLost}

// A DeadError is an error with a Reason. Run gives one to DeadFunc. A handler or middleware that
// knows a better reason than "failed" returns one in Retry or Fail.
type DeadError struct {
	Reason Reason
	Err    error
}

// Error returns the text of Err alone, so that a dead letter shows the handler's own words.
func (e *DeadError) Error() string {
	if e.Err == nil {
		return string(e.Reason)
	}
	return e.Err.Error()
}

func (e *DeadError) Unwrap() error { return e.Err }

// reasonOf returns the reason that err carries; one that is not on the list counts as "failed".
func reasonOf(err error) Reason {
	var d *DeadError
	if errors.As(err, &d) && slices.Contains(reasons, d.Reason) {
		return d.Reason
	}
	return ReasonFailed
}

const (
	maxClassText = 200      // bytes of a class that is a text
	maxClassRead = 64 << 10 // bytes of a text that a class is made of
)

// ErrorClass returns the kind of err, by which dead letters are counted and chosen. It is the first
// of these that err has:
//
//   - its Reason, unless that is "failed";
//   - what the method Class() string of an error in its chain returns;
//   - the Go type, such as "*net.OpError", of the first error in its chain that is more than a text;
//   - the text of the innermost error without its numbers, ids and quoted parts, so that "order 17
//     is locked" and "order 18 is locked" are one class, "order is locked".
func ErrorClass(err error) string {
	if err == nil {
		return "error"
	}
	if reason := reasonOf(err); reason != ReasonFailed {
		return string(reason)
	}
	var named interface{ Class() string }
	if errors.As(err, &named) {
		return named.Class()
	}
	name, text := typeOrText(err)
	if name != "" {
		return name
	}
	return textClass(text)
}

// The types of errors that are no more than a text, or that wrap others in one.
var (
	textType  = reflect.TypeOf(errors.New(""))
	wrapType  = reflect.TypeOf(fmt.Errorf("%w", errors.New("")))
	wrapsType = reflect.TypeOf(fmt.Errorf("%w %w", errors.New(""), errors.New("")))
	joinType  = reflect.TypeOf(errors.Join(errors.New("")))
)

// typeOrText returns the type of the first error in the chain of err that is more than a text, or
// "" and the text of the innermost error. Where the chain branches it follows all branches, and the
// first one gives the text.
func typeOrText(err error) (name, text string) {
	var inner []error
	switch reflect.TypeOf(err) {
	case textType:
	case reflect.TypeFor[*DeadError](), reflect.TypeFor[*permanentError](), wrapType:
		if e := errors.Unwrap(err); e != nil {
			inner = []error{e}
		}
	case wrapsType, joinType:
		inner = err.(interface{ Unwrap() []error }).Unwrap()
	default:
		return fmt.Sprintf("%T", err), ""
	}
	for i, e := range inner {
		name, innerText := typeOrText(e)
		if name != "" {
			return name, ""
		}
		if i == 0 {
			text = innerText
		}
	}
	if len(inner) == 0 {
		text = err.Error()
	}
	return "", text
}

// variable matches what differs between texts of one kind: quoted parts, and words with a digit,
// such as numbers, ids, times and addresses.
var variable = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`"(?:[^"\\]|\\.)*"` + "|`[^`]*`" + `|“[^”]*”|«[^»]*»|\B'[^']*'` +
		`|[#+-]?(?:[\pL_]+[-./@+])*[\pL_]*\pN[\pL\pN_]*(?:[-.,:/@+%][\pL\pN_]+)*%?`)
})

// textClass returns text without what differs between texts of its kind.
func textClass(text string) string {
	text = variable().ReplaceAllLiteralString(textcut.To(text, maxClassRead), " ")
	text = strings.Join(strings.Fields(text), " ")
	if text == "" {
		return "error"
	}
	return textcut.To(text, maxClassText)
}
