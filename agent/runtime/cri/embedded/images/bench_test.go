package images

import (
	"fmt"
	"io"
	"log"
	"log/slog"
	"math/rand/v2"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// BenchmarkPull fetches and unpacks a layer of small files and one of large ones from a registry in this process.
func BenchmarkPull(b *testing.B) {
	b.Run("small", func(b *testing.B) { benchmarkPull(b, 10_000, 4<<10) })
	b.Run("large", func(b *testing.B) { benchmarkPull(b, 10, 4<<20) })
}

func benchmarkPull(b *testing.B, files, size int) {
	random := rand.New(rand.NewPCG(1, 2))
	words := make([]string, 4096)
	for i := range words {
		words[i] = fmt.Sprintf("%x ", random.Uint32())
	}
	var entries []entry
	for i := range files {
		var text strings.Builder
		for text.Len() < size {
			text.WriteString(words[random.IntN(len(words))])
		}
		entries = append(entries, entry{name: fmt.Sprintf("usr/lib/modules/%d/parts/%d.txt", i/20, i), content: text.String()})
	}
	content := layerTar(b, entries...)
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	ref, err := name.ParseReference(strings.TrimPrefix(server.URL, "http://") + "/team/app:v1")
	if err != nil {
		b.Fatal(err)
	}
	if err := remote.Write(ref, imageOf(b, content)); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(content)))
	b.ReportAllocs()
	for b.Loop() {
		s, err := Open(Config{Dir: b.TempDir(), Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := s.Pull(b.Context(), ref.Name(), Auth{}); err != nil {
			b.Fatal(err)
		}
	}
}
