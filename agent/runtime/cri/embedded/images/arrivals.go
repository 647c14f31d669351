package images

import (
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/setpoint-io/setpoint/agent/runtime/images/peers"
)

// newsTime is how long a registry may send nothing before another node may try: no node waits for this one any longer.
const newsTime = 15 * time.Second

// arrival is a layer that a pull is about to have, as other nodes are told.
type arrival struct {
	diffID   v1.Hash
	fetching atomic.Bool
	news     atomic.Int64 // when something came of it, nanoseconds of the epoch
}

// arrives tells others of the layer until end.
func (s *Store) arrives(diffID v1.Hash) (coming *arrival, end func()) {
	coming = &arrival{diffID: diffID}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.coming[layerName(diffID)] = coming
	return coming, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.coming, layerName(diffID))
	}
}

// claim says whether this node fetches the layer from its registry.
func (a *arrival) claim(fetching bool) {
	a.news.Store(time.Now().UnixNano())
	a.fetching.Store(fetching)
}

func (a *arrival) state() peers.State {
	switch {
	case a == nil:
		return peers.None
	case !a.fetching.Load():
		return peers.Wanted
	case time.Since(time.Unix(0, a.news.Load())) > newsTime:
		return peers.None
	}
	return peers.Fetching
}

// fetched is the layer as it comes from the registry.
type fetched struct {
	io.ReadCloser
	*arrival
}

// Read implements io.Reader.
func (f fetched) Read(p []byte) (int, error) {
	n, err := f.ReadCloser.Read(p)
	if n > 0 {
		f.news.Store(time.Now().UnixNano())
	}
	return n, err
}

// LayerState says what others can have from here of the layer whose tar has this digest, "sha256:…".
func (s *Store) LayerState(digest string) peers.State {
	diffID, err := v1.NewHash(digest)
	if err != nil || diffID.Algorithm != "sha256" {
		return peers.None
	}
	name := layerName(diffID)
	if _, err := os.Stat(filepath.Join(s.LayersDir(), name)); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.coming[name].state()
	}
	if _, err := os.Stat(s.tarPath(name)); err != nil {
		return peers.Unshared
	}
	return peers.Here
}
