package machines

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	machineCount = 3
	networkBits  = "/24"
	secondBits   = "/64"
	// requestLimit bounds one request to one server.
	requestLimit = 2 * time.Second
	pollInterval = 50 * time.Millisecond
)

// Cluster is three machines and a client for each of their servers.
type Cluster struct {
	Machines []*Machine
	// Clients are in the order of Machines, each for one server.
	Clients []kubernetes.Interface

	// joined are machines with a server alone that came later.
	joined      []*Machine
	binary, dir string
	// segments are the links to which machines are connected.
	segments []segment
	// dual: addresses are of both families.
	dual bool
	// archives are loaded as images by all agents, from when they start.
	archives []string
	// bare machines have nothing but the binary.
	bare bool
}

// New boots three machines on one link with the binary given. They end with the test.
func New(t *testing.T, binary string) *Cluster {
	t.Helper()
	return boot3(t, &Cluster{binary: binary}, 1, 1, 1)
}

// NewWithImages boots machines as New does, with archives of images in their agents' folders.
func NewWithImages(t *testing.T, binary string, archives ...string) *Cluster {
	t.Helper()
	return boot3(t, &Cluster{binary: binary, archives: archives}, 1, 1, 1)
}

// NewRouted boots three machines, the last one behind a router; dual, with addresses of both families.
func NewRouted(t *testing.T, binary string, dual bool) *Cluster {
	t.Helper()
	return boot3(t, &Cluster{binary: binary, dual: dual}, 1, 1, 2)
}

func boot3(t *testing.T, c *Cluster, at ...segment) *Cluster {
	t.Helper()
	c.dir, c.segments = t.TempDir(), slices.Compact(slices.Clone(at))
	for i := range machineCount {
		c.Machines = append(c.Machines, &Machine{
			Server: fmt.Sprintf("server-%d", i+1), IP: at[i].address(i + 1), segment: at[i],
			// Control groups bear the node's name, and all tests of this host share them.
			Node:    fmt.Sprintf("machine-%d-%d", os.Getpid(), i+1),
			cluster: c, number: i + 1, dir: filepath.Join(c.dir, fmt.Sprintf("machine-%d", i+1)),
		})
	}
	t.Cleanup(func() {
		if t.Failed() {
			c.logTo(t)
		}
		if err := c.close(); err != nil {
			t.Error(err)
		}
	})
	if err := c.start(); err != nil {
		t.Fatal(err)
	}
	return c
}

// kubeletConfig is that of deploy/kubelet-shared-disk.yaml: the machines share the disk of this one, which may be full.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
evictionHard: {memory.available: 100Mi}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
`

func (c *Cluster) start() error {
	if err := addSegments(c.segments); err != nil {
		return err
	}
	if c.bare {
		return c.startBare()
	}
	servers, _ := c.servers()
	out, err := exec.Command(c.binary, "cluster", "init", "--out", c.trustDir(), "--servers", servers).CombinedOutput()
	if err != nil {
		return fmt.Errorf("cluster init: %w: %s", err, out)
	}
	if err := os.WriteFile(filepath.Join(c.trustDir(), "kubelet.yaml"), []byte(kubeletConfig), 0o644); err != nil {
		return err
	}
	for _, m := range c.Machines {
		if err := errors.Join(m.PowerOn(), c.connect(m)); err != nil {
			return err
		}
	}
	return nil
}

// AddServer boots a machine with a server alone, which waits to be a member.
func (c *Cluster) AddServer() (*Machine, error) {
	number, at := len(c.Machines)+len(c.joined)+1, c.segments[0]
	m := &Machine{
		Server: fmt.Sprintf("server-%d", number), IP: at.address(number), segment: at, joins: true,
		Node: fmt.Sprintf("machine-%d-%d", os.Getpid(), number), cluster: c, number: number,
		dir: filepath.Join(c.dir, fmt.Sprintf("machine-%d", number)),
	}
	c.joined = append(c.joined, m)
	return m, errors.Join(m.PowerOn(), c.connect(m))
}

// servers are --initial-servers and --servers.
func (c *Cluster) servers() (initial, endpoints string) {
	var named, plain []string
	for _, m := range c.Machines {
		plain = append(plain, m.endpoint())
		named = append(named, m.Server+"="+m.endpoint())
	}
	return strings.Join(named, ","), strings.Join(plain, ",")
}

func (c *Cluster) trustDir() string { return filepath.Join(c.dir, "trust") }

// Kubeconfig is the administrator's, with one context for each server.
func (c *Cluster) Kubeconfig() string { return filepath.Join(c.trustDir(), "admin.kubeconfig") }

func (c *Cluster) connect(m *Machine) error {
	config, err := clientcmd.BuildConfigFromFlags("https://"+m.endpoint(), c.Kubeconfig())
	if err != nil {
		return err
	}
	config.QPS, config.Timeout = -1, requestLimit
	client, err := kubernetes.NewForConfig(config)
	c.Clients = append(c.Clients, client)
	return err
}

// Machine returns the machine whose server or node has the name, nil if none has.
func (c *Cluster) Machine(name string) *Machine {
	for _, m := range c.Machines {
		if m.Server == name || m.Node == name {
			return m
		}
	}
	return nil
}

// Ask returns the answer of the first server that gives one.
func Ask[T any](c *Cluster, ask func(kubernetes.Interface) (T, error)) (answer T, err error) {
	for _, client := range c.Clients {
		if answer, err = ask(client); err == nil || apierrors.IsNotFound(err) {
			return answer, err
		}
	}
	return answer, err
}

// Until polls until check returns "", and returns how long that took. It ends the test with the last answer of
// check when the limit has passed.
func Until(t *testing.T, limit time.Duration, check func(ctx context.Context) string) time.Duration {
	t.Helper()
	for start := time.Now(); ; time.Sleep(pollInterval) {
		last := check(t.Context())
		switch took := time.Since(start); {
		case last == "":
			return took
		case took > limit:
			t.Fatalf("after %v: %s", limit, last)
		}
	}
}

// logTo shows what servers and agents have said.
func (c *Cluster) logTo(t *testing.T) {
	logs, _ := filepath.Glob(filepath.Join(c.dir, "machine-*", "*.log")) // the pattern is good
	for _, path := range logs {
		text, _ := os.ReadFile(path)
		t.Logf("%s:\n%s", strings.TrimPrefix(path, c.dir), text)
	}
}

func (c *Cluster) close() error {
	var err error
	for _, m := range slices.Concat(c.Machines, c.joined) {
		err = errors.Join(err, m.PowerOff())
		m.removeCgroups()
	}
	return errors.Join(err, removeSegments(c.segments))
}
