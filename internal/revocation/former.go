package revocation

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/setpoint-io/setpoint/internal/trust"
)

// FormerMax is how many users a Judge notes who show certificates of authorities that do not sign any more. More are left out.
const FormerMax = 64

// former are the users who have shown a certificate of one of the authorities, and when last.
type former struct {
	authorities []string
	now         func() time.Time

	mu   sync.Mutex
	last map[string]time.Time
}

// NoteFormer makes the Judge note who shows a certificate of one of these authorities (Identity.Authority), and when by now; of none, it
// notes nobody. Nodes and servers are not noted: others know whether they follow. What was noted of other authorities is forgotten.
func (j *Judge) NoteFormer(authorities []string, now func() time.Time) {
	before := j.former.Load()
	switch {
	case len(authorities) == 0:
		j.former.Store(nil)
	case before == nil || !slices.Equal(before.authorities, authorities):
		j.former.Store(&former{authorities: slices.Clone(authorities), now: now, last: map[string]time.Time{}})
	}
}

// Former are the users that were noted, FormerMax at most, and when each was judged last; nil if none was.
func (j *Judge) Former() map[string]time.Time {
	f := j.former.Load()
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.last)
}

// note does nothing for almost everybody.
func (f *former) note(who Identity) {
	if f == nil || who.Authority == "" || !slices.Contains(f.authorities, who.Authority) {
		return
	}
	_, isNode := trust.NodeOfUser(who.User)
	_, isServer := trust.ServerOfUser(who.User)
	if isNode || isServer || who.User == "" {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, known := f.last[who.User]; known || len(f.last) < FormerMax {
		f.last[who.User] = f.now()
	}
}
