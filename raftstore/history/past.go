package history

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/setpoint-io/setpoint/raftstore/state"
)

const (
	// pastListsMax is how many lists are kept for their next page, pastBytesMax what they may take, but for one, and pastAgeMax for how
	// long: as long as a list's pages are one cut.
	pastListsMax = 8
	pastBytesMax = 64 << 20
	pastAgeMax   = 5 * time.Minute
)

// pastLists keeps the lists made last, newest last. Single objects are not kept: they have no pages.
type pastLists struct {
	mu    sync.Mutex
	lists []pastList
}

type pastList struct {
	prefix string
	root   *state.Root
	made   time.Time
}

func (p *pastLists) find(prefix string, revision uint64) *state.Root {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, list := range p.lists {
		if list.prefix == prefix && list.root.Revision == revision {
			return list.root
		}
	}
	return nil
}

func (p *pastLists) keep(prefix string, root *state.Root) {
	if prefix != "" && !strings.HasSuffix(prefix, "/") {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lists = append(p.lists, pastList{prefix, root, time.Now()})
	for len(p.lists) > pastListsMax || p.bytes() > pastBytesMax && len(p.lists) > 1 {
		p.lists = slices.Delete(p.lists, 0, 1)
	}
}

func (p *pastLists) bytes() (n int64) {
	for _, list := range p.lists {
		n += list.root.Bytes()
	}
	return n
}

// expire forgets what nobody will go on with.
func (p *pastLists) expire(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lists = slices.DeleteFunc(p.lists, func(list pastList) bool { return now.Sub(list.made) > pastAgeMax })
}

func (p *pastLists) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lists = nil
}
