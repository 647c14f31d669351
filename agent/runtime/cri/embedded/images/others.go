package images

import (
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// othersTime is how long a pull may be about other nodes: what they have not given by then comes from the registry. No node can delay a
// pull by more, whatever it says.
const othersTime = 2 * time.Minute

// askOthers gives what other nodes send as the tar of a digest, "sha256:…", until the caller has what it should be. It waits for nodes that
// are about to have it, and says by claim whether it is this node's to fetch.
type askOthers = func(ctx context.Context, digest string, claim func(fetching bool)) iter.Seq[io.ReadCloser]

// SetLayerPeers says who is asked for layers before a registry is, from the next pull on. What they give is checked against the digest that
// the registry's answers name, so they cannot change an image; and nobody gets a layer here whom the registry gives no manifest.
func (s *Store) SetLayerPeers(peers askOthers) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.peers = peers
}

// others are the peers for one pull; nil: there are none.
type others struct {
	ask  askOthers
	ctx  context.Context // of what they are asked: it ends before the pull's
	pull *pulling
}

// others may be asked until end.
func (s *Store) others(ctx context.Context, p *pulling) (o *others, end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.peers == nil {
		return nil, func() {}
	}
	ctx, cancel := context.WithDeadline(ctx, p.since.Add(othersTime))
	return &others{s.peers, ctx, p}, cancel
}

// fromOthers fills a layer's directory, or says that the registry is to be asked; then the directory is empty.
func (s *Store) fromOthers(others *others, coming *arrival, dir string, layer v1.Layer) (size uint64, ok bool, err error) {
	if others == nil {
		return 0, false, nil
	}
	for content := range others.ask(others.ctx, coming.diffID.String(), coming.claim) {
		size, err := s.unpackVerified(dir, coming.diffID, content)
		if err == nil {
			if bytes, err := layer.Size(); err == nil {
				others.pull.bytes.Add(bytes) // as if they had come
			}
			return size, true, nil
		}
		if errors.Is(err, errNoRoom) {
			return 0, false, err
		}
		s.config.Logger.Warn("another node did not give a layer as it should", "layer", coming.diffID.String(), "err", err)
		if err := emptyFolder(dir); err != nil {
			return 0, false, err
		}
	}
	return 0, false, nil
}

func emptyFolder(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, entry.Name())))
	}
	return err
}
