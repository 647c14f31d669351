package admin

import (
	"context"
	"errors"
	"net/http/httptrace"
	"sync/atomic"

	"k8s.io/client-go/rest"
)

// Unanswered is the error of a request that reached a server and was not answered: the server may have done what it asks, and asked again,
// it or another would do that once more. It wraps what that means, such as ErrStepUnknown, and its cause.
type Unanswered struct{ meaning, cause error }

func (u *Unanswered) Error() string { return u.meaning.Error() + ": " + u.cause.Error() }

// Unwrap implements errors.Is and errors.As.
func (u *Unanswered) Unwrap() []error { return []error{u.meaning, u.cause} }

// IsFinal reports whether no other server is to be asked after this error, or nil: one has answered, has refused (Refusal),
// or may have done what must not be done twice (Unanswered).
func IsFinal(err error) bool {
	return err == nil || errors.As(err, new(*Refusal)) || errors.As(err, new(*Unanswered))
}

// callOnce is callCluster for what must not be done twice: without an answer it returns Unanswered, unless nobody was reached.
func callOnce(ctx context.Context, config *rest.Config, path string, in, out any, unknown error) error {
	var connected atomic.Bool // the hook may be called from another goroutine
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
	err := callCluster(ctx, config, path, in, out)
	if IsFinal(err) || !connected.Load() {
		return err
	}
	return &Unanswered{unknown, err}
}
