package setpointtest

import (
	"errors"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// pollMin and pollMax are the pauses between two looks.
	pollMin = 2 * time.Millisecond
	pollMax = 50 * time.Millisecond
)

// Eventually waits until the object is all that is asked of it, and returns it. The target is named as kubectl does:
// deployment/shop, deploy/shop, shops.example.com/blue. A failure says how it is, and what holds it.
func (c *Cluster) Eventually(target string, conditions ...Condition) *unstructured.Unstructured {
	c.t.Helper()
	c.alive()
	deadline, pause := time.Now().Add(c.timeout), pollMin
	for {
		object, missing, how := c.look(target, conditions)
		if how == "" {
			return object
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("setpointtest: %s is not %s after %v: %s%s", target, missing, c.timeout, how, c.why(target))
		}
		time.Sleep(pause)
		pause = min(2*pause, pollMax)
	}
}

// Never fails the test if the object becomes so within the cluster's patience; give it with Within.
func (c *Cluster) Never(target string, condition Condition) {
	c.t.Helper()
	c.alive()
	for deadline := time.Now().Add(c.timeout); time.Now().Before(deadline); time.Sleep(pollMax) {
		if _, _, how := c.look(target, []Condition{condition}); how == "" {
			c.t.Fatalf("setpointtest: %s is %s, and should never be", target, condition)
		}
	}
}

// look returns the object, and of the first condition that it does not meet the name and how it is instead.
func (c *Cluster) look(target string, conditions []Condition) (object *unstructured.Unstructured, missing, how string) {
	c.t.Helper()
	object, err := c.get(target)
	if err != nil && !apierrors.IsNotFound(err) {
		var unknown *unknownKindError
		if !errors.As(err, &unknown) {
			c.t.Fatalf("setpointtest: %s: %v", target, err)
		}
		return nil, "there", err.Error() // its CRD may come
	}
	if len(conditions) == 0 {
		conditions = []Condition{Exists}
	}
	for _, condition := range conditions {
		if is, how := condition.judge(object); !is {
			return object, condition.name, orElse(how, "it is not so")
		}
	}
	return object, "", ""
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// get returns an object, or nil with an error.
func (c *Cluster) get(target string) (*unstructured.Unstructured, error) {
	client, name, err := c.target(target)
	if err != nil {
		return nil, err
	}
	object, err := client.Get(c.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return nil, err // not an object without content
	}
	return object, nil
}

// why is what the control plane says about an object, to be appended to a failure.
func (c *Cluster) why(target string) string {
	kind, name, _ := strings.Cut(target, "/")
	lines, err := c.current.Load().Why(c.t.Context(), kind, c.namespace, name)
	if err != nil || len(lines) == 0 {
		return ""
	}
	return "\n\t" + strings.Join(lines, "\n\t")
}
