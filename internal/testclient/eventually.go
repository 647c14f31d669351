package testclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// pollMin and PollMax are the pauses between two looks.
	pollMin = 2 * time.Millisecond
	PollMax = 50 * time.Millisecond
)

// Eventually waits until the object is all that is asked of it, and returns it. An error says how it is, and what holds it.
func (c *Client) Eventually(ctx context.Context, target string, conditions ...Condition) (*unstructured.Unstructured, error) {
	deadline, pause := time.Now().Add(c.Timeout), pollMin
	for {
		object, missing, how, err := c.look(ctx, target, conditions)
		if how == "" || err != nil {
			return object, err
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("%s is not %s after %v: %s%s", target, missing, c.Timeout, how, c.why(ctx, target))
		}
		time.Sleep(pause)
		pause = min(2*pause, PollMax)
	}
}

// Never returns an error if the object becomes so within the timeout.
func (c *Client) Never(ctx context.Context, target string, condition Condition) error {
	for deadline := time.Now().Add(c.Timeout); time.Now().Before(deadline); time.Sleep(PollMax) {
		_, _, how, err := c.look(ctx, target, []Condition{condition})
		if err != nil {
			return err
		}
		if how == "" {
			return fmt.Errorf("%s is %s, and should never be", target, condition)
		}
	}
	return nil
}

// Get returns an object, or nil if there is none.
func (c *Client) Get(ctx context.Context, target string) (*unstructured.Unstructured, error) {
	object, _, _, err := c.look(ctx, target, nil)
	return object, err
}

// look returns the object, and of the first condition that it does not meet the name and how it is instead.
func (c *Client) look(
	ctx context.Context, target string, conditions []Condition,
) (object *unstructured.Unstructured, missing, how string, err error) {
	object, err = c.get(ctx, target)
	if err != nil && !apierrors.IsNotFound(err) {
		if _, unknown := errors.AsType[*unknownKindError](err); !unknown {
			return nil, "", "", fmt.Errorf("%s: %w", target, err)
		}
		return nil, "there", err.Error(), nil // its CRD may come
	}
	if len(conditions) == 0 {
		conditions = []Condition{Exists}
	}
	for _, condition := range conditions {
		if is, how := condition.judge(object); !is {
			return object, condition.name, cmp.Or(how, "it is not so"), nil
		}
	}
	return object, "", "", nil
}

// get returns an object, or nil with an error.
func (c *Client) get(ctx context.Context, target string) (*unstructured.Unstructured, error) {
	client, name, err := c.target(target)
	if err != nil {
		return nil, err
	}
	object, err := client.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err // not an object without content
	}
	return object, nil
}

// why is what the control plane says about an object, to be appended to a failure.
func (c *Client) why(ctx context.Context, target string) string {
	kind, name, _ := strings.Cut(target, "/")
	lines, err := c.Why(ctx, kind, c.Namespace, name)
	if err != nil || len(lines) == 0 {
		return ""
	}
	return "\n\t" + strings.Join(lines, "\n\t")
}
