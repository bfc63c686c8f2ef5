package job

import (
	"errors"
	"fmt"
	"reflect"
)

// ErrorClass returns the kind of err, by which dead letters are counted and chosen: what the method
// Class() string of an error in its chain returns, else the Go type of the first error in the chain
// that does more than wrap another one, such as "*net.OpError".
func ErrorClass(err error) string {
	var named interface{ Class() string }
	if errors.As(err, &named) {
		return named.Class()
	}
	class := "error"
	for ; err != nil; err = errors.Unwrap(err) {
		class = fmt.Sprintf("%T", err)
		if !wrapsOnly(err) {
			break
		}
	}
	return class
}

func wrapsOnly(err error) bool {
	switch reflect.TypeOf(err) {
	case reflect.TypeFor[*DeadError](), reflect.TypeFor[*permanentError](), wrapType:
		return true
	}
	return false
}

var wrapType = reflect.TypeOf(fmt.Errorf("%w", errors.New("")))
