package host

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/api/kubeletapi"
	"github.com/setpoint-io/setpoint/agent/api/kubeletapi/access"
	"github.com/setpoint-io/setpoint/agent/runtime/cri"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/images"
	"github.com/setpoint-io/setpoint/agent/runtime/images/peers"
	"github.com/setpoint-io/setpoint/internal/trust"
)

// TestLayersAreFetchedOnce: five nodes that pull at once have each layer from the registry once, and a sixth that comes later none.
func TestLayersAreFetchedOnce(t *testing.T) {
	registry := newLayerRegistry(t, 200_000, 3)
	cluster := newCA(t)
	nodes := startNodes(t, cluster, 6)
	pullAll(t, registry.ref, nodes[:5])
	pullAll(t, registry.ref, nodes[5:])
	counts := registry.counts()
	if len(counts) != 3 {
		t.Errorf("layers were fetched: %v", counts)
	}
	for digest, n := range counts {
		if n != 1 {
			t.Errorf("%s was fetched %d times", digest, n)
		}
	}
	for who, authority := range map[string]*trust.CA{"a node of another cluster": newCA(t), "nobody": nil} {
		client := peerOf(t, authority, "other:1", nodes[0].address)
		for range client.Layer(t.Context(), registry.layers[0].String(), func(bool) {}) {
			t.Errorf("%s got a layer", who)
		}
	}
}

// TestTheNodeThatFetchesDies in the middle of a layer: another one begins, and the rest have it from that one.
func TestTheNodeThatFetchesDies(t *testing.T) {
	registry := newLayerRegistry(t, 200_000, 1)
	var once sync.Once
	begun := make(chan struct{})
	registry.begins = func(r *http.Request) {
		once.Do(func() {
			close(begun)
			<-r.Context().Done()
		})
	}
	nodes := startNodes(t, newCA(t), 5)
	for _, n := range nodes {
		n.pull(registry.ref)
	}
	<-begun
	for _, n := range nodes {
		if n.store.LayerState(registry.layers[0].String()) == peers.Fetching {
			n.die()
		}
	}
	died := 0
	for _, n := range nodes {
		switch err := <-n.pulled; {
		case errors.Is(err, context.Canceled):
			died++
		case err != nil:
			t.Error(err)
		}
	}
	if counts := registry.counts(); died != 1 || len(counts) != 1 || slices.Max(slices.Collect(maps.Values(counts))) != 2 {
		t.Errorf("%d died, layers were fetched: %v", died, counts)
	}
}

// layersNode is what of a node has to do with layers. die ends its pull and its port.
type layersNode struct {
	store   *images.Store
	address string
	ctx     context.Context
	die     func()
	pulled  chan error
}

func (n *layersNode) pull(ref string) {
	go func() {
		_, err := n.store.Pull(n.ctx, ref, images.Auth{})
		n.pulled <- err
	}()
}

func pullAll(t testing.TB, ref string, nodes []*layersNode) {
	t.Helper()
	for _, n := range nodes {
		n.pull(ref)
	}
	for _, n := range nodes {
		if err := <-n.pulled; err != nil {
			t.Fatal(err)
		}
	}
}

// startNodes starts nodes of a cluster that know each other.
func startNodes(t testing.TB, cluster *trust.CA, count int) (all []*layersNode) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: files of layers have owners")
	}
	var addresses []string
	for range count {
		ctx, die := context.WithCancel(t.Context())
		n := &layersNode{store: openStore(t), ctx: ctx, die: die, pulled: make(chan error, 1)}
		n.address = serveLayers(t, ctx, cluster, n.store)
		all, addresses = append(all, n), append(addresses, n.address)
		t.Cleanup(die) // before it is waited for
	}
	for i, n := range all {
		n.store.SetLayerPeers(peerOf(t, cluster, n.address, slices.Delete(slices.Clone(addresses), i, i+1)...).Layer)
	}
	return all
}

func newCA(t testing.TB) *trust.CA {
	t.Helper()
	ca, err := trust.NewCA(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return ca
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

// serveLayers is the port of a node's agent, until ctx ends.
func serveLayers(t testing.TB, ctx context.Context, cluster *trust.CA, store *images.Store) (address string) {
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
	var served sync.WaitGroup
	served.Go(func() {
		guard := access.New(access.Config{ServersOnly: kubeletapi.ServersOnly, Nodes: kubeletapi.NodesToo, NoTokens: true})
		_ = kubeletapi.Run(ctx, listener, kubeletapi.Config{Runtime: idle{}, Layers: store, TLS: config, Guard: guard})
	})
	t.Cleanup(served.Wait)
	return listener.Addr().String()
}

// peerOf is another node of the cluster, or somebody without a certificate.
func peerOf(t testing.TB, cluster *trust.CA, self string, others ...string) *peers.Client {
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
	nodes := func() (string, []string) { return self, slices.Clone(others) }
	return peers.New(peers.Config{Nodes: nodes, Path: kubeletapi.LayersPath, TLS: config})
}

// layerRegistry has one image, and counts how often each layer of it is fetched.
type layerRegistry struct {
	handler http.Handler
	ref     string
	layers  []v1.Hash           // as a node names them
	begins  func(*http.Request) // if there is one, it is called when the first bytes of a layer have been sent

	mu      sync.Mutex
	fetched map[string]int
}

func newLayerRegistry(t testing.TB, layerBytes, layers int64) *layerRegistry {
	t.Helper()
	image, err := random.Image(layerBytes, layers)
	if err != nil {
		t.Fatal(err)
	}
	file, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	r := &layerRegistry{handler: registry.New(registry.Logger(log.New(io.Discard, "", 0))), layers: file.RootFS.DiffIDs, fetched: map[string]int{}}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	ref, err := name.ParseReference(strings.TrimPrefix(server.URL, "http://") + "/team/app:v1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, image); err != nil {
		t.Fatal(err)
	}
	r.ref = ref.Name()
	return r
}

// ServeHTTP implements http.Handler.
func (l *layerRegistry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		w = &sizeWriter{ResponseWriter: w, large: func() { l.count(r) }}
	}
	l.handler.ServeHTTP(w, r)
}

func (l *layerRegistry) count(r *http.Request) {
	l.mu.Lock()
	l.fetched[r.URL.Path]++
	l.mu.Unlock()
	if l.begins != nil {
		l.begins(r)
	}
}

func (l *layerRegistry) counts() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.fetched)
}

const configBytesMax = 20_000

// sizeWriter tells of an answer that is larger than what an image has beside layers.
type sizeWriter struct {
	http.ResponseWriter
	large func()
	bytes int
}

// Write implements io.Writer, in parts, so that large is called in the middle.
func (w *sizeWriter) Write(p []byte) (written int, err error) {
	for part := range slices.Chunk(p, configBytesMax) {
		n, err := w.ResponseWriter.Write(part)
		before := w.bytes
		written, w.bytes = written+n, before+n
		if err != nil {
			return written, err
		}
		if before <= configBytesMax && w.bytes > configBytesMax {
			w.large()
		}
	}
	return written, nil
}
