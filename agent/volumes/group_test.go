package volumes

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// slowContext makes each step of a walk take its time.
type slowContext struct {
	context.Context
	takes time.Duration
}

func (c slowContext) Err() error { time.Sleep(c.takes); return nil }

// TestSlowGroupsAreTold: a pod that waits until all files are its fsGroup's has an event that says so, and how to do without.
func TestSlowGroupsAreTold(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "uid", "volumes", "data")
	if err := os.MkdirAll(filepath.Join(dir, "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "uid"}, Spec: corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{
		FSGroup: new(int64(os.Getgid()))}}}
	for takes, want := range map[time.Duration]string{
		time.Second: "", time.Minute: "VolumePermissionChangeInProgress Setting volume ownership for uid/volumes/data is taking longer",
	} {
		synctest.Test(t, func(t *testing.T) {
			told := ""
			m := &Manager{Config: Config{Warn: func(_ *corev1.Pod, reason, message string) { told = reason + " " + message }}}
			err := m.setGroup(slowContext{t.Context(), takes}, pod, dir)
			synctest.Wait() // for a timer's goroutine
			if err != nil || told != want && (want == "" || !strings.HasPrefix(told, want)) {
				t.Errorf("each file takes %v: %v, told %q, want %q", takes, err, told, want)
			}
		})
	}
}
