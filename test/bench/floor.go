package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// floorServers is how many servers the floor has: as many as the cluster it is
// compared with.
const floorServers = 3

// runFloor measures servers that do nothing: net/http with HTTP/2 and TLS, which read
// a request and answer always the same object. The same clients drive them as the
// real ones, so a real server's figures can be told as a multiple of what any Go
// server takes on this machine at this hour.
func runFloor(ctx context.Context, args []string) {
	o := newOptions("floor")
	serve := o.Bool("serve", false, "be one of the servers: print the address, answer until standard input ends")
	clients := o.Int("clients", 64, "concurrent clients")
	duration := o.Duration("duration", 4*time.Second, "length of a run")
	runs := o.Int("runs", 3, "runs of each case")
	if err := o.Parse(args); err != nil {
		fatalf("%v", err)
	}
	c := &cluster{target: *o.target, content: *o.content, maxConns: *o.conns}
	if *serve {
		serveFloor(c.contentType())
		return
	}
	for range floorServers {
		defer c.addFloorServer(ctx)()
	}
	byCase := map[string][]metrics{}
	for range *runs {
		cs := c.clients(*clients)
		writers := make([]*writer, len(cs))
		for i := range cs {
			writers[i] = &writer{id: i, cs: cs[i]}
		}
		warm(ctx, writers, "floor")
		byCase["get"] = append(byCase["get"], getRun(ctx, c, cs, "floor", *duration))
		byCase["create"] = append(byCase["create"], writePhase(ctx, c, "create", "floor", writers, *duration, 1024))
	}
	hc, base := c.rawHTTP(0)
	for range *runs {
		byCase["list"] = append(byCase["list"], floorList(ctx, hc, base))
	}
	emit("floor", "list", c.target, nil, byCase["list"])
	params := map[string]any{"clients": *clients, "content": c.content, "size": 1024, "replicas": floorServers}
	for _, name := range []string{"get", "create"} {
		emit("floor", name, c.target, params, byCase[name])
	}
}

// floorListPath is answered with floorListBytes, as much as 10,000 pods.
const (
	floorListPath  = "/list"
	floorListBytes = 16 << 20
)

func floorList(ctx context.Context, hc *http.Client, base string) metrics {
	n, d, err := fetch(ctx, hc, base+floorListPath, contentJSON)
	if err != nil {
		fatalf("floor: %v", err)
	}
	return rate(n, d)
}

// serveFloor is the whole server.
func serveFloor(contentType string) {
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), contentType)
	object := configMap("floor", "one", 1024, 'a')
	answer, err := runtime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion), object)
	if err != nil {
		fatalf("floor: %v", err)
	}
	long := bytes.Repeat([]byte{'x'}, floorListBytes)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == floorListPath {
			_, _ = w.Write(long)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", contentType)
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusCreated)
		}
		_, _ = w.Write(answer) // the client has gone, if this fails
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	fmt.Println(server.URL)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// addFloorServer starts a server in a process of its own; stop ends it.
func (c *cluster) addFloorServer(ctx context.Context) (stop func()) {
	self, err := os.Executable()
	if err != nil {
		fatalf("floor: %v", err)
	}
	server := exec.CommandContext(ctx, self, "floor", "-serve", "-content", c.content)
	server.Stderr = os.Stderr
	in, inErr := server.StdinPipe()
	out, outErr := server.StdoutPipe()
	if inErr != nil || outErr != nil {
		fatalf("floor: %v %v", inErr, outErr)
	}
	if err := server.Start(); err != nil {
		fatalf("floor: %v", err)
	}
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		fatalf("floor: a server did not start: %v", err)
	}
	c.pids = append(c.pids, server.Process.Pid)
	c.configs = append(c.configs, &rest.Config{
		Host: strings.TrimSpace(url), QPS: -1, DisableCompression: true, UserAgent: "bench",
		TLSClientConfig: rest.TLSClientConfig{Insecure: true}, // a certificate made for tests; only its handshake would differ
	})
	return func() {
		_ = in.Close()
		_ = server.Wait()
	}
}
