package images

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
)

// TestProgressOfAPull: a short pull tells nothing, a long one less and less often, and one of which nothing is known not at all.
func TestProgressOfAPull(t *testing.T) {
	for name, tc := range map[string]struct {
		took time.Duration
		size int64
		want []string
	}{
		"short":   {9 * time.Second, 100, nil},
		"long":    {80 * time.Second, 100, []string{"10 of 100 bytes after 10s", "30 of 100 bytes after 30s", "70 of 100 bytes after 1m10s"}},
		"unknown": {80 * time.Second, 0, nil},
		"endless": {24 * time.Hour, 100, []string{"10 of 100 bytes after 10s", "30 of 100 bytes after 30s", "70 of 100 bytes after 1m10s",
			"150 of 100 bytes after 2m30s", "310 of 100 bytes after 5m10s", "630 of 100 bytes after 10m30s"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newPuller(t, &registry{took: tc.took}, nil)
			began := time.Now()
			p.Progress = func(image string) (bytes, total int64, underway bool) {
				return int64(time.Since(began).Seconds()), tc.size, image == "far"
			}
			if _, err := p.Ensure(t.Context(), &corev1.Pod{}, &corev1.Container{Name: "c", Image: "far"}, nil); err != nil {
				t.Fatal(err)
			}
			var got []string
			for list := p.Events.(*record.FakeRecorder).Events; len(list) > 0; {
				if _, part, ok := strings.Cut(<-list, `Pulling image "far": `); ok {
					got = append(got, part)
				}
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("%s: %q", name, got)
			}
		})
	}
}
