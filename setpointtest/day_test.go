package setpointtest_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/setpointtest"
)

var (
	hours    = flag.Int("hours", 1, "how many virtual hours pass in TestHours")
	cronJobs = flag.Int("cronjobs", 1, "how many CronJobs run in each of them")
	daily    = flag.Bool("daily", false, "they run at midnight only")
)

// TestHours: virtual hours pass, with jobs in each; with -v it says how long that took. The day of docs/go-test.md is
// -hours 24 -cronjobs 100 -daily.
func TestHours(t *testing.T) {
	began := time.Now()
	synctest.Test(t, func(t *testing.T) {
		schedule, want := "0 * * * *", *hours**cronJobs
		if *daily {
			schedule, want = "0 0 * * *", *hours/24**cronJobs
		}
		c := setpointtest.Start(t, setpointtest.Config{Nodes: 1})
		c.Apply(manyCronJobs(*cronJobs, schedule))
		c.Advance(time.Duration(*hours)*time.Hour + time.Minute)
		jobs, err := c.Kubernetes().BatchV1().Jobs("default").List(t.Context(), metav1.ListOptions{})
		if err != nil || len(jobs.Items) != want {
			t.Fatalf("%d jobs, want %d; %v", len(jobs.Items), want, err)
		}
		for _, job := range jobs.Items {
			if job.Status.Succeeded != 1 {
				t.Errorf("%s has not succeeded", job.Name)
			}
		}
	})
	t.Logf("%d hours with %d CronJobs took %v", *hours, *cronJobs, time.Since(began).Round(time.Millisecond))
}

func manyCronJobs(n int, schedule string) string {
	var all strings.Builder
	for i := range n {
		fmt.Fprintf(&all, `---
apiVersion: batch/v1
kind: CronJob
metadata: {name: c%d}
spec:
  schedule: %q
  successfulJobsHistoryLimit: 100
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}}
`, i, schedule)
	}
	return all.String()
}
