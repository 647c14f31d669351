package host

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/cri"
	"github.com/setpoint-io/setpoint/agent/cri/embedded/images"
	"github.com/setpoint-io/setpoint/agent/images/peers"
	"github.com/setpoint-io/setpoint/agent/kubeletapi"
	"github.com/setpoint-io/setpoint/agent/kubeletapi/access"
	"github.com/setpoint-io/setpoint/internal/trust"
)

// TestLayersComeFromOtherNodes: the second node has all layers from the first one's port, by its certificate; a machine without one has
// nothing there. The registry gives what an image is made of to both, and its layers once.
func TestLayersComeFromOtherNodes(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: files of layers have owners")
	}
	server := &layerCounter{handler: registry.New(registry.Logger(log.New(io.Discard, "", 0)))}
	remoteSide := httptest.NewServer(server)
	defer remoteSide.Close()
	image, err := random.Image(200_000, 3)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := name.ParseReference(strings.TrimPrefix(remoteSide.URL, "http://") + "/team/app:v1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, image); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	cluster, err := trust.NewCA(now)
	if err != nil {
		t.Fatal(err)
	}
	first, second := openStore(t), openStore(t)
	at := serveLayers(t, cluster, first)
	second.SetLayerPeers(peerOf(t, cluster, at).Layer)
	for _, store := range []*images.Store{first, second} {
		if _, err := store.Pull(t.Context(), ref.Name(), images.Auth{}); err != nil {
			t.Fatal(err)
		}
	}
	if counts := server.counts(); len(counts) != 3 {
		t.Errorf("layers were fetched: %v", counts)
	} else {
		for digest, n := range counts {
			if n != 1 {
				t.Errorf("%s was fetched %d times", digest, n)
			}
		}
	}
	stranger, err := trust.NewCA(now)
	if err != nil {
		t.Fatal(err)
	}
	file, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	for who, authority := range map[string]*trust.CA{"a node of another cluster": stranger, "nobody": nil} {
		if _, err := peerOf(t, authority, at).Layer(t.Context(), file.RootFS.DiffIDs[0].String()); err == nil {
			t.Errorf("%s got a layer", who)
		}
	}
}

func openStore(t testing.TB) *images.Store {
	t.Helper()
	store, err := images.Open(images.Config{Dir: filepath.Join(t.TempDir(), "images"), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// idle is a runtime without containers.
type idle struct{ cri.Runtime }

func (idle) ListContainerStats(context.Context, *runtimeapi.ContainerStatsFilter) ([]*runtimeapi.ContainerStats, error) {
	return nil, nil
}

func (idle) ListPodSandboxStats(context.Context, *runtimeapi.PodSandboxStatsFilter) ([]*runtimeapi.PodSandboxStats, error) {
	return nil, nil
}

// serveLayers is the port of a node's agent.
func serveLayers(t testing.TB, cluster *trust.CA, store *images.Store) (address string) {
	t.Helper()
	authority, err := cluster.NodeServing()
	if err != nil {
		t.Fatal(err)
	}
	identity, err := authority.IssueNodeServing("first", cluster, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	live, err := trust.NewLive(identity)
	if err != nil {
		t.Fatal(err)
	}
	config, err := live.AgentConfig(cluster.CertPEM())
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var served sync.WaitGroup
	served.Go(func() {
		guard := access.New(access.Config{ServersOnly: kubeletapi.ServersOnly, Nodes: kubeletapi.NodesToo, NoTokens: true})
		_ = kubeletapi.Run(ctx, listener, kubeletapi.Config{Runtime: idle{}, Layers: store, TLS: config, Guard: guard})
	})
	t.Cleanup(func() {
		cancel()
		served.Wait()
	})
	return listener.Addr().String()
}

// peerOf is another node of the cluster, or somebody without a certificate.
func peerOf(t testing.TB, cluster *trust.CA, at string) *peers.Client {
	t.Helper()
	config := &tls.Config{InsecureSkipVerify: true}
	if cluster != nil {
		identity, err := cluster.IssueNode("second", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		live, err := trust.NewLive(identity)
		if err != nil {
			t.Fatal(err)
		}
		if config, err = live.PeerConfig(); err != nil {
			t.Fatal(err)
		}
	}
	return peers.New(peers.Config{Nodes: func() []string { return []string{at} }, Path: kubeletapi.LayersPath, TLS: config})
}

// layerCounter counts how often each large blob is fetched.
type layerCounter struct {
	handler http.Handler
	mu      sync.Mutex
	fetched map[string]int
}

const configBytesMax = 20_000

func (c *layerCounter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	sent := &sizeWriter{ResponseWriter: w}
	c.handler.ServeHTTP(sent, r)
	if r.Method == http.MethodGet && sent.bytes > configBytesMax {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.fetched == nil {
			c.fetched = map[string]int{}
		}
		c.fetched[r.URL.Path]++
	}
}

func (c *layerCounter) counts() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fetched
}

type sizeWriter struct {
	http.ResponseWriter
	bytes int
}

func (w *sizeWriter) Write(p []byte) (int, error) {
	w.bytes += len(p)
	return w.ResponseWriter.Write(p)
}
