package ui

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// cluster is a cluster of three servers and three simulated nodes, and the page of it.
type cluster struct {
	t          *testing.T
	binary     string
	kubeconfig string
	page       string
	stop       func()

	// advance lets time pass for a cluster with a clock of its own.
	advance func(by string)
}

// startCluster starts the binary that $SETPOINT names, twice; both processes end with the test.
func startCluster(t *testing.T) *cluster {
	binary := os.Getenv("SETPOINT")
	if binary == "" {
		t.Fatal("$SETPOINT names no binary of setpoint: run 'make ui-test'")
	}
	dir := t.TempDir()
	c := &cluster{t: t, binary: binary, kubeconfig: filepath.Join(dir, "admin.kubeconfig")}
	_, c.stop = c.start(regexp.MustCompile(`Setpoint is (ready)`), "dev", "--data-dir", dir, "--port", "0", "--servers", "3", "--simulated-nodes", "3")
	c.page, _ = c.start(regexp.MustCompile(`^ +(http://\S+)`), "ui", "--kubeconfig", c.kubeconfig)
	return c
}

// start starts a command and returns what it has said when it is ready.
func (c *cluster) start(ready *regexp.Regexp, args ...string) (said string, stop func()) {
	c.t.Helper()
	cmd := exec.Command(c.binary, args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	var faults bytes.Buffer
	cmd.Stderr = &faults
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	ended := false
	stop = func() {
		if ended {
			return
		}
		ended = true
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		_ = cmd.Wait()                          // how it ends is no matter
	}
	c.t.Cleanup(stop)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if found := ready.FindStringSubmatch(lines.Text()); found != nil {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return found[1], stop
		}
	}
	stop()
	c.t.Fatalf("setpoint %v ended before it was ready:\n%s", args, faults.String())
	return "", stop
}

// setpoint runs a command and returns what it says.
func (c *cluster) setpoint(args ...string) string {
	c.t.Helper()
	cmd := exec.Command(c.binary, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.kubeconfig)
	out, err := cmd.CombinedOutput()
	if err != nil {
		c.t.Fatalf("setpoint %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// ownTime starts a cluster in memory, which has a clock of its own, and the page of it; all ends with the test.
func ownTime(t *testing.T) *cluster {
	dir := t.TempDir()
	c := &cluster{t: t, binary: os.Getenv("SETPOINT"), kubeconfig: filepath.Join(dir, "kubeconfig")}
	socket := filepath.Join(dir, "s")
	_, c.stop = c.start(regexp.MustCompile(`(curl)`), "testserver", "--socket", socket)
	test := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	made := struct{ Cluster string }{}
	answered(t, test, "POST", "/clusters", `{"nodes": 2}`, func(answer io.Reader) error { return json.NewDecoder(answer).Decode(&made) })
	answered(t, test, "GET", "/clusters/"+made.Cluster+"/kubeconfig", "", func(answer io.Reader) error {
		text, err := io.ReadAll(answer)
		return errors.Join(err, os.WriteFile(c.kubeconfig, text, 0o600))
	})
	c.advance = func(by string) {
		t.Helper()
		answered(t, test, "POST", "/clusters/"+made.Cluster+"/advance/"+by, "", func(io.Reader) error { return nil })
	}
	c.page, _ = c.start(regexp.MustCompile(`^ +(http://\S+)`), "ui", "--kubeconfig", c.kubeconfig)
	return c
}

func answered(t *testing.T, client *http.Client, method, path, body string, read func(io.Reader) error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "http://test"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if err := read(response.Body); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %s, %v", method, path, response.Status, err)
	}
}
