package storage

import (
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// Unavailability is the answer to who asks for what the store could not tell, which an error wraps: 503, or 504. Nil: that is not why it
// failed.
func Unavailability(err error) *apierrors.StatusError {
	if several, ok := errors.AsType[utilerrors.Aggregate](err); ok {
		err = errors.Join(several.Errors()...) // upstream's own hides what it wraps
	}
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || status.ErrStatus.Code != http.StatusServiceUnavailable && status.ErrStatus.Code != http.StatusGatewayTimeout {
		return nil
	}
	return status
}
