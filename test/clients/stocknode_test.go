package clients

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"text/template"
	"time"

	"golang.org/x/sys/unix"
)

const (
	stockName = "stock"
	// goneTimeout bounds how long a kubelet tidies up after its last pod: it looks once a minute, and leaves young sandboxes.
	goneTimeout = 3 * time.Minute
	// lookInterval is between two looks at what nobody can watch: folders, mounts, and what a kubelet measures.
	lookInterval = 200 * time.Millisecond
)

// stockNode is a machine with upstream's kubelet on `setpoint cri`.
type stockNode struct {
	dir, cgroup, version string
	kubelet              *process
}

// newStockNode starts the runtime. The kubelet starts with what the files in testdata/kubelet say.
func newStockNode(t *testing.T, c *cluster, version string) *stockNode {
	t.Helper()
	n := &stockNode{version: version, dir: t.TempDir(), cgroup: fmt.Sprintf("/setpoint-clients-%d", time.Now().UnixNano())}
	for _, dir := range []string{"images", "static", "root", "logs", "volumeplugins"} {
		mustf(t, os.Mkdir(n.path(dir), 0o755), "making a folder")
	}
	mustf(t, writeBoxImage(n.path("images/box.tar"), "example.com/box:v1"), "writing an image")
	mustf(t, n.makeCgroup(), "making a control group")
	t.Cleanup(func() { n.remove(t) })
	mustStart(t, "CRI runtime ready", nil, "setpoint", "cri", "--listen", n.endpoint(), "--data-dir", n.path("runtime"),
		"--images-dir", n.path("images"), "--name", stockName, "--log-level", "warn")
	authority := c.kubectl(t, "", "-n", "kube-system", "get", "configmap", "kube-root-ca.crt", "-o", `jsonpath={.data.ca\.crt}`)
	mustf(t, os.WriteFile(n.path("ca.crt"), []byte(authority), 0o644), "writing the authority")
	mustf(t, os.WriteFile(n.path("resolv.conf"), []byte("nameserver 127.0.0.1\n"), 0o644), "naming nobody to ask for names")
	n.writeConfig(t)
	return n
}

func (n *stockNode) path(name string) string { return filepath.Join(n.dir, name) }

func (n *stockNode) endpoint() string { return "unix://" + n.path("cri/cri.sock") }

func (n *stockNode) writeConfig(t *testing.T) {
	t.Helper()
	text, err := template.ParseFiles("testdata/kubelet/config.yaml")
	mustf(t, err, "reading the kubelet's configuration")
	var config bytes.Buffer
	mustf(t, text.Execute(&config, map[string]string{"Dir": n.dir, "Cgroup": n.cgroup, "Endpoint": n.endpoint()}), "writing it")
	mustf(t, os.WriteFile(n.path("config.yaml"), config.Bytes(), 0o644), "writing it")
}

// start runs the kubelet, which asks for its certificate if it has none.
func (n *stockNode) start(t *testing.T) {
	t.Helper()
	n.kubelet = mustStart(t, "Started kubelet", nil, "kubelet-"+n.version, "--config", n.path("config.yaml"), "--root-dir", n.path("root"), "--cert-dir", n.path("root/pki"),
		"--bootstrap-kubeconfig", n.path("bootstrap.kubeconfig"), "--kubeconfig", n.path("kubelet.kubeconfig"),
		"--hostname-override", stockName, "--node-ip", aloneAddress, "--v=2")
}

// mountPoint is where something of a kind is mounted.
type mountPoint struct{ path, kind string }

// mountPoints are this machine's, in the order in which they were mounted.
func mountPoints() (all []mountPoint) {
	table, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(table)) {
		before, after, _ := strings.Cut(line, " - ")
		kind, _, _ := strings.Cut(after, " ")
		all = append(all, mountPoint{strings.Fields(before)[4], kind})
	}
	return all
}

// hierarchies are where control groups are: old ones of one controller each, the unified one of all or none.
func hierarchies() (all []string) {
	for _, m := range mountPoints() {
		if m.kind == "cgroup" || m.kind == "cgroup2" {
			all = append(all, m.path)
		}
	}
	return all
}

// makeCgroup makes the group below which all of the node's are, so that they disturb no others and are found.
func (n *stockNode) makeCgroup() (err error) {
	for _, hierarchy := range hierarchies() {
		controllers, _ := os.ReadFile(filepath.Join(hierarchy, "cgroup.controllers")) // old ones have none
		for name := range strings.FieldsSeq(string(controllers)) {
			err = errors.Join(err, os.WriteFile(filepath.Join(hierarchy, "cgroup.subtree_control"), []byte("+"+name), 0o644))
		}
		err = errors.Join(err, os.Mkdir(hierarchy+n.cgroup, 0o755))
	}
	return err
}

// cgroups are the node's, those inside others first.
func (n *stockNode) cgroups() (found []string) {
	for _, hierarchy := range hierarchies() {
		var below []string
		_ = filepath.WalkDir(hierarchy+n.cgroup, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				below = append([]string{path}, below...)
			}
			return nil
		})
		found = append(found, below...)
	}
	return found
}

// remove ends what a test that failed has left, and takes away what a kubelet leaves.
func (n *stockNode) remove(t *testing.T) {
	out, err := exec.Command(program("setpoint"), "reset", "--yes", "--data-dir", n.path("runtime")).CombinedOutput()
	if err != nil {
		t.Errorf("setpoint reset: %v\n%s", err, out)
	}
	for _, path := range n.mounts() {
		mustf(t, unix.Unmount(path, unix.MNT_DETACH), "unmounting %s", path)
	}
	for _, path := range n.cgroups() {
		mustf(t, os.Remove(path), "removing a control group")
	}
}

// mounts are those below the node's folder, those inside others first.
func (n *stockNode) mounts() (found []string) {
	for _, m := range mountPoints() {
		if strings.HasPrefix(m.path, n.dir+"/") {
			found = append([]string{m.path}, found...)
		}
	}
	return found
}

// left is what there still is of pods: sandboxes, their control groups, folders and mounts.
func (n *stockNode) left() (found []string) {
	for _, pattern := range []string{"runtime/runtime/sandboxes/*", "root/pods/*", "logs/*"} {
		matches, _ := filepath.Glob(n.path(pattern))
		found = append(found, matches...)
	}
	for _, path := range n.cgroups() {
		if strings.HasPrefix(filepath.Base(path), "pod") {
			found = append(found, path)
		}
	}
	for _, path := range n.mounts() {
		if path != n.path("root") { // which a kubelet mounts on itself
			found = append(found, path)
		}
	}
	return found
}

// awaitEmpty waits until nothing is left.
func (n *stockNode) awaitEmpty(t *testing.T) {
	t.Helper()
	look(t, goneTimeout, "nothing left on the node", func() (string, bool) {
		left := n.left()
		return strings.Join(left, "\n"), len(left) == 0
	})
}

// look asks again and again for what nobody can watch.
func look(t *testing.T, limit time.Duration, want string, is func() (string, bool)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	for {
		said, ok := is()
		if ok {
			return
		}
		select {
		case <-time.After(lookInterval):
		case <-ctx.Done():
			t.Fatalf("%s: not in time:\n%s", want, said)
		}
	}
}

// try is cluster.kubectl for what may not work yet.
func (c *cluster) try(args ...string) (string, error) {
	out, err := c.command("kubectl", args...).CombinedOutput()
	return string(out), err
}

// setpoint runs one of its commands, as the administrator.
func (c *cluster) setpoint(t *testing.T, args ...string) string {
	t.Helper()
	out, err := c.command("setpoint", args...).Output()
	mustf(t, err, "setpoint %s", strings.Join(args, " "))
	return string(out)
}

func (c *cluster) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(program(name), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.kubeconfig, "HOME="+filepath.Dir(c.kubeconfig))
	return cmd
}
