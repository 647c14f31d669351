package reconcile

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// ErrTerminal marks an error that no retry can heal: the key rests until its
// object, or one that maps to it, changes.
var ErrTerminal = errors.New("terminal")

// ErrStale says that the cache does not show an own write yet; the key is tried
// again like any that failed, without a word in the log.
var ErrStale = errors.New("cache lags behind own writes")

// Terminal marks err as not worth retrying. A nil err stays nil.
func Terminal(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrTerminal, err)
}

// IgnoreNotFound returns err, or nil if it says that the object is not there: a key whose object is gone needs nothing more.
func IgnoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
