package past

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/raftstore/history"
	"github.com/setpoint-io/setpoint/server/past"
)

// TestSpanOf: one time or two, and a kind; what stands second and is no time is a kind.
func TestSpanOf(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	hour := now.Add(-time.Hour)
	for text, want := range map[string]past.Span{
		"1h": {From: hour}, "1h ago,now": {From: hour}, "1h,pods": {From: hour, Kind: "pods"}, "1h,now,pods": {From: hour, Kind: "pods"},
		"1h,30m": {From: hour, To: now.Add(-30 * time.Minute)}, "1h,30m,cm": {From: hour, To: now.Add(-30 * time.Minute), Kind: "cm"},
	} {
		if got, err := spanOf(strings.Split(text, ","), now); err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", text, got, err, want)
		}
	}
	for text, want := range map[string]error{"yesterday": errTime, "1h,pods,cm": errTime, "1h,2h,cm,x": errDiffArgs, "pods": errTime} {
		if got, err := spanOf(strings.Split(text, ","), now); !errors.Is(err, want) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	if _, err := spanOf(nil, now); !errors.Is(err, errDiffArgs) {
		t.Error(err)
	}
}

// TestPrintDiff: by namespace and kind, who wrote, what differs, and what was left out.
func TestPrintDiff(t *testing.T) {
	d := past.Difference{
		Missing: []history.Hole{{After: 3, Until: 5}}, Left: 7, LeftKinds: []string{"events"}, Forbidden: []string{"secrets"},
		Groups: []past.Group{{Namespace: "n", Kind: "Deployment", APIGroup: "apps", Objects: []past.Changed{
			{Name: "a", Did: "changed", Writes: 3, By: []storage.Writer{{User: "eve\x1b[2J", FieldManager: "vi"}, {User: "bob"}}, ByMore: true,
				Fields: []past.Field{{Path: "x", Before: 1, After: 2}}},
			{Name: "b", Did: "deleted", Writes: 1, By: []storage.Writer{{}}},
			{Name: "c", Did: "changed", Writes: 2},
			{Name: "d", Did: "changed", Writes: 1, Unknown: "why"},
		}}},
	}
	want := `this server's history is missing the changes after 3 up to 5
Deployment.apps in n
  a changed by eve^[[2J with vi, bob, others, in 3 writes
    - x: 1
    + x: 2
  b deleted
  c changed, in 2 writes
    and is as it was
  d changed
    ? why
7 more objects changed and are left out: ask for one kind, one namespace or a shorter time
left out unless they are named: events
left out because you may not list them: secrets
`
	var out strings.Builder
	p := diffPrinter{lines{escaped: func(w io.Writer) io.Writer { return marked{w} }}}
	if err := p.print(&out, &d); err != nil || out.String() != want {
		t.Error(err, cmp.Diff(want, out.String()))
	}
	if names := DeletedNames(&d); !slices.Equal(names, []string{"b"}) {
		t.Errorf("deleted: %v", names)
	}
}
