package images

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// SetLayerPeers says who is asked for layers before a registry is, by the digest of the tar ("sha256:…"), from the next pull on. What
// they give is checked against the digest that the registry's answers name, so they cannot change an image; and nobody gets a layer
// here whom the registry gives no manifest.
func (s *Store) SetLayerPeers(peers func(ctx context.Context, digest string) (io.ReadCloser, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.peers = peers
}

// tarBytesMax is more than the tar of a layer has that may be unpacked: each file takes a header and some padding beside its content.
const tarBytesMax = 2 * layerBytesMax

// others are the peers for one pull; nil: there are none.
type others struct {
	layer func(v1.Hash) (io.ReadCloser, error)
	pull  *pulling
}

func (s *Store) others(ctx context.Context, p *pulling) *others {
	s.mu.Lock()
	defer s.mu.Unlock()
	peers := s.peers
	if peers == nil {
		return nil
	}
	return &others{func(diffID v1.Hash) (io.ReadCloser, error) { return peers(ctx, diffID.String()) }, p}
}

// fromOthers fills a layer's directory; if it is not ok, the directory is empty and the registry is to be asked.
func (s *Store) fromOthers(others *others, dir string, diffID v1.Hash, layer v1.Layer) (size uint64, ok bool, err error) {
	if others == nil {
		return 0, false, nil
	}
	content, err := others.layer(diffID)
	if err != nil {
		s.config.Logger.Debug("no other node gives the layer", "layer", diffID.String(), "err", err)
		return 0, false, nil
	}
	size, err = s.unpackVerified(dir, diffID, &bounded{io.LimitReader(content, s.tarBytesMax), content})
	if err != nil {
		s.config.Logger.Warn("the registry is asked for a layer that another node did not give as it should", "layer", diffID.String(), "err", err)
		return 0, false, emptyFolder(dir)
	}
	if bytes, err := layer.Size(); err == nil {
		others.pull.bytes.Add(bytes) // as if they had come
	}
	return size, true, nil
}

// bounded is a tar of another node, which may have no end: only its digest says what it should be.
type bounded struct {
	io.Reader
	io.Closer
}

func emptyFolder(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, entry.Name())))
	}
	return err
}
