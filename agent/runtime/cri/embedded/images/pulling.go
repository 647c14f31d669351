package images

import (
	"cmp"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Pulling is a pull under way.
type Pulling struct {
	// Image is the normalised name.
	Image string    `json:"image"`
	Since time.Time `json:"since"`
	// Bytes have come of TotalBytes, compressed; TotalBytes is 0 until the registry has said what there is.
	Bytes      int64 `json:"bytes"`
	TotalBytes int64 `json:"totalBytes"`
}

// pulling is what the registry's answers count up.
type pulling struct {
	image        string
	since        time.Time
	bytes, total atomic.Int64
}

// Pulling lists the pulls under way, the oldest first.
func (s *Store) Pulling() []Pulling {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []Pulling{}
	for p := range s.pulling {
		total := p.total.Load()
		// What the registry says beside layers was counted too.
		list = append(list, Pulling{Image: p.image, Since: p.since, Bytes: min(p.bytes.Load(), total), TotalBytes: total})
	}
	slices.SortFunc(list, func(a, b Pulling) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Image, b.Image)) })
	return list
}

// Progress of the oldest pull of an image, by any of its spellings.
func (s *Store) Progress(ref string) (bytes, total int64, underway bool) {
	normal, err := Normalize(ref)
	if err != nil {
		return 0, 0, false
	}
	for _, p := range s.Pulling() {
		if p.Image == normal {
			return p.Bytes, p.TotalBytes, true
		}
	}
	return 0, 0, false
}

func (s *Store) beginPull(normal string) *pulling {
	p := &pulling{image: normal, since: time.Now()}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pulling[p] = true
	return p
}

func (s *Store) endPull(p *pulling) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pulling, p)
}

// expect adds up the layers that are not here yet.
func (s *Store) expect(p *pulling, image v1.Image) error {
	manifest, err := image.Manifest()
	if err != nil {
		return err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return err
	}
	var total int64
	for i, layer := range manifest.Layers {
		if i < len(file.RootFS.DiffIDs) {
			if _, err := os.Stat(filepath.Join(s.LayersDir(), layerName(file.RootFS.DiffIDs[i]))); err == nil {
				continue
			}
		}
		total += max(layer.Size, 0)
	}
	p.total.Store(total)
	return nil
}

// counting adds what comes in bodies to a pull.
type counting struct {
	http.RoundTripper
	pull *pulling
}

// RoundTrip implements http.RoundTripper.
func (c counting) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := c.RoundTripper.RoundTrip(request)
	if err == nil {
		response.Body = countingBody{response.Body, c.pull}
	}
	return response, err
}

type countingBody struct {
	io.ReadCloser
	pull *pulling
}

// Read implements io.Reader.
func (b countingBody) Read(buffer []byte) (int, error) {
	n, err := b.ReadCloser.Read(buffer)
	b.pull.bytes.Add(int64(n))
	return n, err
}
