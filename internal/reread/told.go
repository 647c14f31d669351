package reread

import "sync"

// Told remembers the error that was told last of each thing that can go wrong. The zero value is ready; any goroutine may use it.
type Told struct {
	mu   sync.Mutex
	last map[string]string // an entry for each thing that is wrong
}

// IsNew reports whether err is to be told: it is not the one that was told last of this thing. No error is not told, and makes the next
// one new.
func (t *Told) IsNew(thing string, err error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		delete(t.last, thing)
		return false
	}
	if last, wrong := t.last[thing]; wrong && last == err.Error() {
		return false
	}
	if t.last == nil {
		t.last = map[string]string{}
	}
	t.last[thing] = err.Error()
	return true
}

// Keep forgets the things for which there is not.
func (t *Told) Keep(there func(thing string) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for thing := range t.last {
		if !there(thing) {
			delete(t.last, thing)
		}
	}
}
