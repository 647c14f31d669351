package host

import (
	"crypto/rand"
	"crypto/tls"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/images"
	"github.com/setpoint-io/setpoint/internal/trust"
)

// layerBytes is the size of the image that a node gets from another one.
const layerBytes = 100 << 20

// BenchmarkLayerFromPeer compares how fast a layer's tar comes from another node's port with a plain copy by TLS, as "x-tls-copy"; the
// reader reads, and unpacks nothing.
func BenchmarkLayerFromPeer(b *testing.B) {
	if os.Geteuid() != 0 {
		b.Skip("needs root: files of layers have owners")
	}
	cluster := newCA(b)
	registry := newLayerRegistry(b, layerBytes, 1)
	store, digest := openStore(b), registry.layers[0].String()
	if _, err := store.Pull(b.Context(), registry.ref, images.Auth{}); err != nil {
		b.Fatal(err)
	}
	client := peerOf(b, cluster, "", serveLayers(b, b.Context(), cluster, store))
	var fromPeer, copied time.Duration
	for b.Loop() {
		began := time.Now()
		for content := range client.Layer(b.Context(), digest, func(bool) {}) {
			if n, err := io.Copy(io.Discard, content); err != nil || n < layerBytes {
				b.Fatal(n, err)
			}
			_ = content.Close()
			break
		}
		fromPeer += time.Since(began)
		copied += copyByTLS(b, cluster)
	}
	b.ReportMetric(copied.Seconds()/fromPeer.Seconds(), "x-tls-copy")
	b.ReportMetric(layerBytes/1e6*float64(b.N)/fromPeer.Seconds(), "MB/s")
}

// copyByTLS is how long as many bytes take from memory to nowhere.
func copyByTLS(b *testing.B, cluster *trust.CA) time.Duration {
	b.Helper()
	identity, err := cluster.IssueServer(trust.Server{Name: "server-1", Endpoint: "127.0.0.1:6443"}, time.Now())
	if err != nil {
		b.Fatal(err)
	}
	pair, err := tls.X509KeyPair(identity.CertPEM, identity.KeyPEM)
	if err != nil {
		b.Fatal(err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}})
	if err != nil {
		b.Fatal(err)
	}
	defer listener.Close()
	content := make([]byte, layerBytes)
	_, _ = rand.Read(content)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		_, _ = conn.Write(content)
		_ = conn.Close()
	}()
	began := time.Now()
	conn, err := tls.DialWithDialer(&net.Dialer{}, "tcp", listener.Addr().String(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	if n, err := io.Copy(io.Discard, conn); err != nil || n != layerBytes {
		b.Fatal(n, err)
	}
	return time.Since(began)
}
