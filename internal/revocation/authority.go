package revocation

import (
	"errors"
	"maps"
)

// ErrAuthority says that a certificate, which was verified when the connection began, is of an authority that was dropped since.
var ErrAuthority = errors.New("the certificate is of an authority that this cluster had before and has dropped: get another one")

// Believe tells which authorities are believed now (Identity.Authority), and ends what is open of who has shown a certificate of another
// one that was believed before. Authorities that never were are somebody else's.
func (j *Judge) Believe(authorities []string) {
	j.mu.Lock()
	next := map[string]bool{}
	if before := j.believed.Load(); before != nil {
		for authority := range maps.Keys(*before) {
			next[authority] = false
		}
	}
	for _, authority := range authorities {
		next[authority] = true
	}
	j.believed.Store(&next)
	j.mu.Unlock()
	j.End(j.dropped)
}

func (j *Judge) dropped(who Identity) bool {
	believed := j.believed.Load()
	if believed == nil || who.Authority == "" {
		return false
	}
	still, known := (*believed)[who.Authority]
	return known && !still
}
