package storage

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/storage"
)

var (
	errUnknownEncoding = errors.New("storage: value has an encoding this version cannot read")
	errForgedContinue  = errors.New("no server has made it")
)

const (
	tooLargeRetryAfterSeconds    = 1
	unavailableRetryAfterSeconds = 1
)

// unavailable turns a failure of the store into 503: the request was not
// refused, no quorum answered in time.
func unavailable(err error) error {
	var status apierrors.APIStatus
	switch {
	case err == nil, errors.As(err, &status), errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return apierrors.NewTimeoutError("the store did not answer in time: is a majority of the servers running?", unavailableRetryAfterSeconds)
	default:
		return apierrors.NewServiceUnavailable(fmt.Sprintf("the store is not available: %v", err))
	}
}

func tooLargeResourceVersion(wanted, current uint64) error {
	return storage.NewTooLargeResourceVersionError(wanted, current, tooLargeRetryAfterSeconds)
}

func invalidResourceVersion(text string) error {
	return apierrors.NewBadRequest(fmt.Sprintf("invalid resource version %q: not a number", text))
}

func expired(message string) *apierrors.StatusError { return apierrors.NewResourceExpired(message) }

// fenceStale answers controllers whose leadership ended while they wrote.
func fenceStale() error {
	return apierrors.NewConflict(leaseResource, "", errors.New("the leadership under which this write was decided has ended"))
}
