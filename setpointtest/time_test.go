package setpointtest_test

import (
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/setpointtest"
)

// TestAdvanceOutsideABubble: minutes pass for one cluster, and not for its fork.
func TestAdvanceOutsideABubble(t *testing.T) {
	t.Parallel()
	c := setpointtest.Start(t, setpointtest.Config{Nodes: 2})
	c.Apply("testdata/web.yaml")
	c.Eventually("deployment/web", setpointtest.Available)
	beside := c.Fork(t)
	c.KillNode("sim-2")
	// 40 seconds until it counts as lost, five minutes until its pods are evicted; twice that, since the loop that judges nodes counts
	// anew when it stood still for seconds, as it may where many tests run.
	c.Advance(12 * time.Minute)
	c.Eventually("deployment/web", setpointtest.Available)
	for _, pod := range podsOf(t, c) {
		if pod.Spec.NodeName != "sim-1" && pod.DeletionTimestamp == nil {
			t.Errorf("%s is left on the node that is lost", pod.Name)
		}
	}
	if !isReady(t, c, "sim-1") || isReady(t, c, "sim-2") || !isReady(t, beside, "sim-2") {
		t.Error("not the node that was killed is lost, or another one too")
	}
	if ahead, besides := time.Until(c.Clock().Now()), time.Until(beside.Clock().Now()); ahead < 11*time.Minute || besides > time.Minute {
		t.Errorf("the clock is ahead by %v, and that of the fork by %v", ahead, besides)
	}
}

// TestWhatGoesByTheClock: what is made has the cluster's time, tokens end in it, and schedules follow it. A fork goes on
// from there, and a cluster that is reset goes back.
func TestWhatGoesByTheClock(t *testing.T) {
	t.Parallel()
	c := setpointtest.Start(t, setpointtest.Config{Nodes: 1})
	c.Eventually("serviceaccount/default", setpointtest.Exists)
	token, mark := tokenOf(t, c), c.Mark()
	now := c.Clock().Now()
	c.Advance(now.Truncate(5 * time.Minute).Add(6 * time.Minute).Sub(now)) // so that the schedule comes three times in what follows
	c.Apply(manyCronJobs(2, "*/5 * * * *"))
	c.Advance(15 * time.Minute)
	jobs, err := c.Kubernetes().BatchV1().Jobs("default").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(jobs.Items) != 6 {
		t.Fatalf("%d jobs in a quarter of an hour, want 6: %v", len(jobs.Items), err)
	}
	for _, job := range jobs.Items {
		if job.Status.Succeeded != 1 || job.Status.CompletionTime.Sub(job.CreationTimestamp.Time) > time.Minute {
			t.Errorf("%s: made %v, %+v", job.Name, job.CreationTimestamp, job.Status)
		}
		for _, event := range c.Events("job/" + job.Name) {
			if late := event.FirstTimestamp.Sub(job.CreationTimestamp.Time); late < -time.Second || late > time.Minute {
				t.Errorf("%s: %s is told %v after the job was made", job.Name, event.Reason, late)
			}
		}
	}
	if admits(t, c, token) || !admits(t, c, tokenOf(t, c)) {
		t.Error("a token of ten minutes does not end with them")
	}
	if f := c.Fork(t); admits(t, f, token) || f.Clock().Now().Sub(c.Clock().Now()).Abs() > time.Minute {
		t.Error("a fork has another time")
	}
	if c.Reset(mark); !admits(t, c, token) {
		t.Error("a cluster that was reset to before still is in its future")
	}
}

func podsOf(t *testing.T, c *setpointtest.Cluster) []corev1.Pod {
	t.Helper()
	list, err := c.Kubernetes().CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func isReady(t *testing.T, c *setpointtest.Cluster, name string) bool {
	t.Helper()
	node, err := c.Kubernetes().CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// tokenOf is a token of ten minutes.
func tokenOf(t *testing.T, c *setpointtest.Cluster) string {
	t.Helper()
	asked := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(600))}}
	got, err := c.Kubernetes().CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "default", asked, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return got.Status.Token
}

func admits(t *testing.T, c *setpointtest.Cluster, token string) bool {
	t.Helper()
	asked := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	got, err := c.Kubernetes().AuthenticationV1().TokenReviews().Create(t.Context(), asked, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return got.Status.Authenticated
}
