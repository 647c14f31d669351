package nodefaults

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// measure has the tenant read, create and exec some times, one after the other, and says how long that took. It judges no times: only that
// everything is answered.
func (a *tenant) measure(t *testing.T) string {
	t.Helper()
	configMaps := a.client.CoreV1().ConfigMaps(a.name)
	made := ""
	steps := []struct {
		name string
		do   func(ctx context.Context) error
	}{
		{"create", func(ctx context.Context) error {
			created, err := configMaps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "c-"}}, metav1.CreateOptions{})
			made = created.GetName()
			return err
		}},
		{"GET", func(ctx context.Context) error { _, err := configMaps.Get(ctx, made, metav1.GetOptions{}); return err }},
		{"exec by SPDY", func(ctx context.Context) error { return a.tell(ctx, false, a.pod(0)) }},
		{"exec by WebSocket", func(ctx context.Context) error { return a.tell(ctx, true, a.pod(0)) }},
	}
	took := make([][]time.Duration, len(steps))
	for range victimRounds {
		for i, step := range steps {
			began := time.Now()
			if err := step.do(t.Context()); err != nil {
				t.Errorf("%s of tenant %s: %v", step.name, a.name, err)
			}
			took[i] = append(took[i], time.Since(began))
		}
	}
	var told []string
	for i, step := range steps {
		slices.Sort(took[i])
		told = append(told, fmt.Sprintf("%s p50 %s p99 %s", step.name, rounded(took[i][len(took[i])/2]), rounded(took[i][len(took[i])*99/100])))
	}
	return strings.Join(told, ", ")
}

func rounded(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }

var resident = regexp.MustCompile(`(?m)^VmRSS:\s+(\d+) kB$`)

// memory is what server and agent have.
func (n *node) memory(t *testing.T) string {
	t.Helper()
	var told []string
	for name, process := range map[string]*exec.Cmd{"server": n.server, "agent": n.agent} {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", process.Process.Pid))
		check(t, err)
		found := resident.FindSubmatch(status)
		if found == nil {
			t.Fatalf("no memory of the %s: %s", name, status)
		}
		kib, err := strconv.Atoi(string(found[1]))
		check(t, err)
		told = append(told, fmt.Sprintf("%s %d MiB", name, kib>>10))
	}
	slices.Sort(told)
	return strings.Join(told, ", ")
}
