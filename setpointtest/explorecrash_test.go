package setpointtest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/setpointtest"
)

// pause is how long the mirror rests after its watch has ended.
const pause = 10 * time.Second

// mirror is an operator: for each ConfigMap with the label copy it makes another one, and deletes it with its origin.
// When its watch ends it watches again. The careful one looks then for origins that were deleted meanwhile; the
// careless one does so only when it starts.
type mirror struct {
	client   kubernetes.Interface
	careless bool
}

// Start implements setpointtest.Runnable.
func (m mirror) Start(ctx context.Context) error {
	for first := true; ctx.Err() == nil; first = false {
		if first || !m.careless {
			m.untilDone(ctx, m.prune)
		}
		m.follow(ctx)
		wait(ctx, pause)
	}
	return nil
}

// follow makes and deletes copies until the watch ends.
func (m mirror) follow(ctx context.Context) {
	watch, err := m.client.CoreV1().ConfigMaps("default").Watch(ctx, metav1.ListOptions{LabelSelector: "copy"})
	if err != nil {
		return
	}
	defer watch.Stop()
	for event := range watch.ResultChan() {
		object, ok := event.Object.(metav1.Object)
		switch {
		case !ok:
		case event.Type == "DELETED":
			m.untilDone(ctx, func(ctx context.Context) error { return m.remove(ctx, object.GetName()) })
		default:
			o := copier{client: m.client}
			m.untilDone(ctx, func(ctx context.Context) error { return o.copy(ctx, object.GetName()) })
		}
	}
}

func (m mirror) remove(ctx context.Context, origin string) error {
	err := m.client.CoreV1().ConfigMaps("default").Delete(ctx, origin+"-copy", metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// prune deletes the copies whose origin is gone.
func (m mirror) prune(ctx context.Context) error {
	maps := m.client.CoreV1().ConfigMaps("default")
	copies, err := maps.List(ctx, metav1.ListOptions{LabelSelector: "copy-of"})
	if err != nil {
		return err
	}
	for _, one := range copies.Items {
		origin := one.Labels["copy-of"]
		if _, err = maps.Get(ctx, origin, metav1.GetOptions{}); apierrors.IsNotFound(err) {
			err = m.remove(ctx, origin)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (mirror) untilDone(ctx context.Context, do func(context.Context) error) {
	for do(ctx) != nil && ctx.Err() == nil {
		wait(ctx, time.Second)
	}
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// mirroring is a scenario in which an origin is deleted soon after its copy was made.
func mirroring(careless bool) setpointtest.Exploration {
	return setpointtest.Exploration{
		Config: setpointtest.Config{Loops: setpointtest.APIOnly, Replicas: 3},
		Program: func(c *setpointtest.Cluster) setpointtest.Runnable {
			return mirror{c.Kubernetes(), careless}
		},
		Scenario: func(c *setpointtest.Cluster) {
			c.Apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {copy: please}}}")
			c.Eventually("configmap/a-copy", setpointtest.Exists)
			c.Delete("configmap/a")
		},
	}
}

// firstCrash is a fault under which the careless operator leaves a copy.
const firstCrash = "LeaderCrash at write 1, create configmaps"

// TestExploreFindsALeaderCrash: a copy that is left over when the leader crashes after it was made, because the watch
// ends with the leader and the origin is deleted before the next one begins.
func TestExploreFindsALeaderCrash(t *testing.T) {
	e := mirroring(true)
	if testing.Short() {
		e.Only = firstCrash // one world of the dozens with three servers each
	}
	findings := findInSomeTries(t, e)
	if len(findings) == 0 {
		t.Fatal("the careless operator was not found out")
	}
	for _, finding := range findings {
		t.Log(finding)
		if !strings.Contains(finding.Fault, "LeaderCrash") || !strings.Contains(finding.What, "name: a-copy") {
			t.Errorf("another finding: %s", finding)
		}
	}
	e.Only = findings[0].Fault
	again := findInSomeTries(t, e)
	if len(again) != 1 || again[0] != findings[0] {
		t.Errorf("repeated by its name it is %v", again)
	}
}

// triesMax is how often worlds are played until there is a finding.
const triesMax = 5

// findInSomeTries plays the worlds until there are findings: whether the watch ends before the origin is deleted is a race, which a busy
// machine may lose.
func findInSomeTries(t *testing.T, e setpointtest.Exploration) (findings []setpointtest.Finding) {
	t.Helper()
	for range triesMax {
		if findings = setpointtest.Find(t, e); len(findings) > 0 {
			break
		}
	}
	return findings
}

// TestExploreOnly: the careful operator passes where the careless one fails.
func TestExploreOnly(t *testing.T) {
	e := mirroring(false)
	e.Only = firstCrash
	setpointtest.Explore(t, e)
}
