package trust

import (
	"encoding/json"
	"slices"
	"sync"
)

// formerMax is how many dropped authorities a CA remembers: the last ones.
const formerMax = 256

// pinList are the hashes of authorities that a CA has and had, in the order in which it got them. It is safe for concurrent use.
type pinList struct {
	mu  sync.Mutex
	all []string
}

func (l *pinList) add(pins ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, pin := range pins {
		if !slices.Contains(l.all, pin) {
			l.all = append(l.all, pin)
		}
	}
	l.all = l.all[max(0, len(l.all)-formerMax-ringKeysMax):]
}

func (l *pinList) has(pin string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(l.all, pin)
}

// except are all but those of some authorities.
func (l *pinList) except(held []*Authority) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	isHeld := func(pin string) bool {
		return slices.ContainsFunc(held, func(a *Authority) bool { return a.ID() == pin })
	}
	former := slices.DeleteFunc(slices.Clone(l.all), isHeld)
	return former[max(0, len(former)-formerMax):]
}

// Dropped reports whether an authority with the hash was one of the cluster's, and is believed no more. What is known is looked at before
// what is held, or a new one would be taken for a dropped one while it comes.
func (ca *CA) Dropped(pin string) bool {
	wasOurs := ca.founding != nil && ca.founding.ID() == pin || ca.known.has(pin)
	return wasOurs && !ca.Holds(pin)
}

// former are the hashes of those that were dropped, if some are held. The founding one is the cluster's in any case.
func (ca *CA) former(held []*Authority) []string {
	if ca.founding != nil {
		ca.known.add(ca.founding.ID())
	}
	return ca.known.except(held)
}

// remember takes what a text of ca.ring says of those that were dropped: another server may share the file.
func (ca *CA) remember(text []byte) {
	var whole authoritiesText
	if json.Unmarshal(text, &whole) == nil {
		ca.known.add(whole.Former...)
	}
}
