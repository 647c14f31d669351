package storage

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/storage"

	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/command"
)

var (
	errUnknownEncoding = errors.New("storage: value has an encoding this version cannot read")
	errForgedContinue  = errors.New("no server has made it")
)

const (
	tooLargeRetryAfterSeconds    = 1
	contendedRetryAfterSeconds   = 1
	unavailableRetryAfterSeconds = 1
)

// unavailable turns a failure of the store into 503 or 504. Only what certainly
// took no effect carries Retry-After: client-go then sends any request again by
// itself, and a create with a generated name would make a second object.
func unavailable(err error) error {
	var status apierrors.APIStatus
	switch {
	case err == nil, errors.As(err, &status):
		return err
	case errors.Is(err, raftstore.ErrOutcomeUnknown):
		return apierrors.NewTimeoutError("the write may or may not have taken effect: look before you try again", 0)
	case errors.Is(err, raftstore.ErrNoSpace):
		return noSpace(err)
	case errors.Is(err, command.ErrInvalid):
		return apierrors.NewBadRequest(err.Error())
	case errors.Is(err, raftstore.ErrNoLeader) && !errors.Is(err, context.DeadlineExceeded):
		return noLeader()
	case errors.Is(err, context.DeadlineExceeded):
		return apierrors.NewTimeoutError(
			"the store did not answer in time: is a majority of the servers running?",
			unavailableRetryAfterSeconds,
		)
	default:
		unavailable := apierrors.NewServiceUnavailable(fmt.Sprintf("the store is not available: %v", err))
		unavailable.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: unavailableRetryAfterSeconds}
		return unavailable
	}
}

// CauseNoLeader is the cause in the details of a 503 of a server that has no leader: another may have one.
const CauseNoLeader metav1.CauseType = "NoLeader"

func noLeader() error {
	const message = "this server has no leader: ask another server; if none has, start more of them, a majority must run"
	status := apierrors.NewServiceUnavailable(message)
	status.ErrStatus.Details = &metav1.StatusDetails{
		RetryAfterSeconds: unavailableRetryAfterSeconds,
		Causes:            []metav1.StatusCause{{Type: CauseNoLeader, Message: message}},
	}
	return status
}

// reasonNoSpace is the reason beside status 507; Kubernetes has none for it.
const reasonNoSpace metav1.StatusReason = "InsufficientStorage"

// noSpace tells who has no room. It has no Retry-After: a client that
// came back by itself would hide it.
func noSpace(err error) error {
	detail := strings.TrimPrefix(err.Error(), raftstore.ErrNoSpace.Error()+": ")
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInsufficientStorage, Reason: reasonNoSpace,
		Message: "the store takes deletions only: " + detail,
	}}
}

func tooLargeResourceVersion(wanted, current uint64) error {
	return storage.NewTooLargeResourceVersionError(wanted, current, tooLargeRetryAfterSeconds)
}

// invalidResourceVersion: cause says how text is no number.
func invalidResourceVersion(text string, cause error) error {
	return apierrors.NewBadRequest(
		"invalid resource version: " + field.Invalid(field.NewPath("resourceVersion"), text, cause.Error()).Error(),
	)
}

func expired(message string) *apierrors.StatusError { return apierrors.NewResourceExpired(message) }

// fenceStale answers controllers whose leadership ended while they wrote.
func fenceStale() error {
	return apierrors.NewConflict(leaseResource, "", errors.New("the leadership under which this write was decided has ended"))
}

// contended answers who found an object changed each time that a write was tried. It is no conflict: that is what a precondition is
// answered with, and who deletes by UID takes it for the object's end.
func contended() error {
	return apierrors.NewTooManyRequests("the object is changing too fast: try again", contendedRetryAfterSeconds)
}
