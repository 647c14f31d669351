package storagemigration

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	migrationv1 "k8s.io/api/storagemigration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var pods, nodes = metav1.GroupResource{Resource: "pods"}, metav1.GroupResource{Resource: "nodes"}

// of is a migration of some age with conditions that hold.
func of(name string, resource metav1.GroupResource, age time.Duration, holds ...migrationv1.MigrationConditionType) *migration {
	m := &migration{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC).Add(-age))}}
	m.Spec.Resource = resource
	for _, kind := range holds {
		m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{Type: string(kind), Status: metav1.ConditionTrue})
	}
	return m
}

func TestPlan(t *testing.T) {
	const running, succeeded, failed = migrationv1.MigrationRunning, migrationv1.MigrationSucceeded, migrationv1.MigrationFailed
	over := of("over", pods, 0, succeeded)
	over.Status.Conditions = append(over.Status.Conditions, metav1.Condition{Type: string(running), Status: metav1.ConditionFalse})
	for name, c := range map[string]struct {
		all           []*migration
		finish        []string
		active, begin string
	}{
		"none":                       {nil, nil, "", ""},
		"of another resource":        {[]*migration{of("a", nodes, 0)}, nil, "", ""},
		"the oldest begins":          {[]*migration{of("a", pods, 0), of("b", pods, time.Hour), of("c", pods, time.Minute)}, nil, "", "b"},
		"of one age, by name":        {[]*migration{of("b", pods, 0), of("a", pods, 0)}, nil, "", "a"},
		"one runs":                   {[]*migration{of("a", pods, time.Hour), of("b", pods, 0, running)}, nil, "b", ""},
		"one runs, seen first":       {[]*migration{of("b", pods, 0, running), of("a", pods, time.Hour)}, nil, "b", ""},
		"one has ended":              {[]*migration{of("a", pods, 0, succeeded), of("b", pods, 0, failed), over}, nil, "", ""},
		"one ended, still marked":    {[]*migration{of("a", pods, 0, running, succeeded), of("b", pods, 0, running, failed)}, []string{"a", "b"}, "", ""},
		"the next begins meanwhile":  {[]*migration{of("a", pods, 0, running, succeeded), of("b", pods, 0)}, []string{"a"}, "", "b"},
		"two run: the older goes on": {[]*migration{of("a", pods, 0, running), of("b", pods, time.Hour, running)}, nil, "b", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := planOf(pods, c.all)
			name := func(m *migration) string {
				if m == nil {
					return ""
				}
				return m.Name
			}
			var finish []string
			for _, m := range p.finish {
				finish = append(finish, m.Name)
			}
			if diff := cmp.Diff(c.finish, finish); diff != "" || name(p.active) != c.active || name(p.begin) != c.begin {
				t.Errorf("finish %v, active %q, begin %q", finish, name(p.active), name(p.begin))
			}
		})
	}
}

func TestCandidates(t *testing.T) {
	for version, want := range map[string]bool{"9": true, "10": true, "11": false, "100": false, "1": true} {
		if got, err := isCandidate(object{version: version}, "10"); err != nil || got != want {
			t.Errorf("%s: %v, %v", version, got, err)
		}
	}
	for _, version := range []string{"", "a", "-1"} {
		if got, err := isCandidate(object{version: version}, "10"); err == nil || got {
			t.Errorf("%q: %v", version, got)
		}
	}
}

// TestMessages are upstream's.
func TestMessages(t *testing.T) {
	for want, p := range map[string]progress{
		"The migration is running":                                {0, 0},
		"The migration is running, 2/3 objects not yet migrated":  {2, 3},
		"The migration is running, 3 objects verified migrated":   {0, 3},
		"The migration is running, 3/3 objects not yet migrated":  {3, 3},
		"The migration is running, 1 objects verified migrated":   {0, 1},
		"The migration is running, 1/10 objects not yet migrated": {1, 10},
	} {
		if got := p.message(nil); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := (progress{1, 2}).message(errors.New("slow")); got != "The migration is running, 1/2 objects not yet migrated; transient error: slow" {
		t.Error(got)
	}
}
