package revocation

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-io/setpoint/internal/trust"
)

// TestWhoShowsTheOldAuthorityIsNoted: users alone, when each was last seen, with a bound, and not of another authority.
func TestWhoShowsTheOldAuthorityIsNoted(t *testing.T) {
	var j Judge
	now := time.Unix(1000, 0)
	judge := func(user, authority string) {
		if err := j.Revoked(Identity{User: user, Authority: authority}); err != nil {
			t.Fatal(err)
		}
	}
	judge("anna", "old")
	j.NoteFormer([]string{"old", "old serving"}, func() time.Time { return now })
	judge("ben", "new")
	judge("carl", "")
	judge(trust.NodeUser("n"), "old")
	judge(trust.ServerUser("s"), "old")
	if got := j.Former(); len(got) > 0 {
		t.Errorf("noted: %v", got)
	}
	judge("anna", "old")
	now = now.Add(time.Hour)
	judge("anna", "old")
	j.NoteFormer([]string{"old", "old serving"}, time.Now)
	if got := j.Former(); !cmp.Equal(got, map[string]time.Time{"anna": now}) {
		t.Errorf("noted: %v", got)
	}
	for i := range 2 * FormerMax {
		judge(fmt.Sprint("user-", i), "old")
	}
	if got := len(j.Former()); got != FormerMax {
		t.Errorf("%d are noted", got)
	}
	j.NoteFormer([]string{"new"}, time.Now)
	if got := j.Former(); len(got) > 0 {
		t.Errorf("noted of another: %v", got)
	}
	j.NoteFormer(nil, nil)
	judge("anna", "new")
	if got := j.Former(); got != nil {
		t.Errorf("noted of none: %v", got)
	}
}
