package revocation

import (
	"log/slog"
	"sync"
	"sync/atomic"
)

// Judge knows what is revoked now, and what is open. The zero value revokes nobody, as does nil. It is safe for concurrent use.
type Judge struct {
	list atomic.Pointer[List] // nil: nothing is revoked
	// believed are the authorities that were and are believed, nil: none was dropped.
	believed atomic.Pointer[map[string]bool]
	// former notes who shows certificates of an authority that does not sign any more, nil: nobody is noted.
	former atomic.Pointer[former]

	mu   sync.Mutex
	open map[*opened]struct{}
}

// opened is a connection, or a request that lasts.
type opened struct {
	who Identity
	end func()
	// ended is closed when end has returned, nil while it was not called.
	ended chan struct{}
}

// Revoked fails with an *Error if somebody is revoked, and with ErrAuthority if his certificate's authority was dropped.
func (j *Judge) Revoked(who Identity) error {
	if j == nil {
		return nil
	}
	if j.dropped(who) {
		return ErrAuthority
	}
	j.former.Load().note(who)
	list := j.list.Load()
	if list == nil {
		return nil
	}
	if found := list.find(who); found != nil {
		return &Error{found}
	}
	return nil
}

// Opened notes what somebody has open. end is called, once at most, when he is revoked, or at once if he is already; it must not wait,
// nor close what calls the function that Opened returns. That function must be called when it is closed: when it returns, end does not
// run, and is not called any more.
func (j *Judge) Opened(who Identity, end func()) (closed func()) {
	if j == nil {
		return func() {}
	}
	o := &opened{who: who, end: end}
	j.mu.Lock()
	if j.open == nil {
		j.open = map[*opened]struct{}{}
	}
	j.open[o] = struct{}{}
	j.mu.Unlock()
	if j.Revoked(who) != nil { // since it was judged
		j.endAll([]*opened{o})
	}
	return func() { j.close(o) }
}

// close forgets what was open, and waits for its end if that has begun.
func (j *Judge) close(o *opened) {
	j.mu.Lock()
	delete(j.open, o)
	ended := o.ended
	j.mu.Unlock()
	if ended != nil {
		<-ended
	}
}

// End ends what is open of those whom match names, though they are not revoked: they have to show again who they are. Opened knows only of
// who is revoked: whoever calls it for one of them judges him again afterwards.
func (j *Judge) End(match func(Identity) bool) {
	var ending []*opened
	j.mu.Lock()
	for o := range j.open {
		if match(o.who) {
			ending = append(ending, o)
		}
	}
	j.mu.Unlock()
	j.endAll(ending)
}

// Use takes another list, and ends what is open of those whom it revokes.
func (j *Judge) Use(list *List) {
	j.list.Store(list)
	j.End(func(who Identity) bool { return list.find(who) != nil })
}

// UseData takes the data of the ConfigMap as another list, and says how many entries it has. What cannot be read of it was written by
// another version, and is told of; the rest counts.
func (j *Judge) UseData(data map[string]string, logger *slog.Logger) (entries int) {
	read, err := Read(data)
	if err != nil {
		logger.Error("the list of what is revoked cannot be read as a whole", "err", err)
	}
	j.Use(NewList(read))
	return len(read)
}

// endAll ends each once.
func (j *Judge) endAll(all []*opened) {
	for _, o := range all {
		j.mu.Lock()
		_, still := j.open[o]
		delete(j.open, o)
		if still {
			o.ended = make(chan struct{})
		}
		j.mu.Unlock()
		if still {
			o.end()
			close(o.ended)
		}
	}
}
