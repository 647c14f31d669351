package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/setpoint-io/setpoint/agent/base/machine/machinetest"
	"github.com/setpoint-io/setpoint/agent/base/machine/machinetest/nodestate"
	"github.com/setpoint-io/setpoint/agent/net/network"
	"github.com/setpoint-io/setpoint/agent/volumes/csi/csitest"
)

const (
	// readyTimeout bounds a start, on a machine that does much else.
	readyTimeout = 60 * time.Second
	// stopTimeout bounds an orderly end.
	stopTimeout = 30 * time.Second
	// pollInterval is how often what is waited for is looked at.
	pollInterval = 50 * time.Millisecond
	// eventually asks less and less often, for each question is a process that takes a twentieth of a second of a processor, or a
	// tenth: it rests for this share of what it has waited, at least for pollInterval and at most for pollIntervalMax.
	pollShare       = 4
	pollIntervalMax = time.Second
	// binaryVariable is the absolute path of a binary to test instead of one built here;
	// with the race detector, of the one that commands run.
	binaryVariable = "SETPOINT_TEST_BINARY"
)

// binaries are in a folder of their own: the one that commands run, named setpoint, and
// the one that servers are.
type binaries struct{ dir, command, server string }

// underTest builds the real binary once. With the race detector and a binary given, only
// servers have the detector: a command with it takes a second to begin.
var underTest = sync.OnceValues(func() (binaries, error) {
	dir, err := os.MkdirTemp("", "setpoint-script")
	if err != nil {
		return binaries{}, err
	}
	b := binaries{dir: dir, command: filepath.Join(dir, "setpoint"), server: filepath.Join(dir, "setpoint")}
	given := os.Getenv(binaryVariable)
	if given == "" {
		return b, build(b.command)
	}
	if err := os.Symlink(given, b.command); err != nil || !raceEnabled {
		return b, err
	}
	b.server = filepath.Join(dir, "server")
	return b, build(b.server)
})

// build has the race detector if the test has it, so that both share what is compiled.
func build(path string) error {
	args := []string{"build", "-o", path}
	if raceEnabled {
		args = append(args, "-race")
	}
	if out, err := exec.Command("go", append(args, ".")...).CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

func TestMain(m *testing.M) {
	if kubeconfig := os.Getenv(extensionVariable); kubeconfig != "" {
		panic(serveExtension(kubeconfig))
	}
	if err := shareDisk(); err != nil {
		panic(err)
	}
	if err := moreAtOnce(); err != nil {
		panic(err)
	}
	code := m.Run()
	if b, err := underTest(); err == nil {
		_ = os.RemoveAll(b.dir)
	}
	os.Exit(code)
}

// moreAtOnce lets more scripts run beside each other than there are processors, unless -parallel says how many: they mostly wait.
func moreAtOnce() error {
	flag.Parse()
	const name = "test.parallel"
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	if given {
		return nil
	}
	return flag.Set(name, strconv.Itoa(runtime.GOMAXPROCS(0)*3/2))
}

// shareDisk keeps scripts from depending on how full the machine's disk is.
func shareDisk() error {
	path, err := filepath.Abs(filepath.Join("..", "..", "deploy", "kubelet-shared-disk.yaml"))
	if err != nil {
		return err
	}
	return os.Setenv("SETPOINT_KUBELET_CONFIG", path)
}

// detectedScripts are those that run with the race detector in short: servers together, and an agent. Without it all run.
var detectedScripts = []string{"dev", "evicted", "members", "minority"}

// TestScripts runs the stories in testdata/script. Beside testscript's own
// commands they have:
//
//	start-dev FLAGS...       setpoint dev on free ports, data in $WORK/data, until it is ready;
//	                         $KUBECONFIG and $PORT name it
//	stop-dev, kill-dev       end it by SIGTERM (it must end well) or SIGKILL
//	init-servers N           trust folder and free addresses $ADDR1.. for server-1 to
//	                         server-3, which are $SERVERS, and for N-3 more
//	start-server NAME FLAGS...
//	                         a server of them, or with its own --advertise-address
//	start-alone NAME         a server that begins a cluster by itself at $ADDR1, its data in a folder of its name
//	start-joining NAME ADDRESS FLAGS...
//	                         a server there that joins the one at $ADDR1 with server.token
//	stop-server, kill-server NAME
//	gives-up NAME            a server ends by itself, soon and with an error
//	said NAME REGEXP         a server, running or not, logs or has logged a line that matches
//	service-manager          what starts from now on has a service manager, with a watchdog of a second
//	told REGEXP [PREFIX]     the service manager is told something that matches, and nothing before that begins so
//	kubectl ARGS...          the embedded kubectl
//	exits CODE COMMAND...    the command ends with this code
//	eventually TIME REGEXP COMMAND...
//	                         until the output of setpoint COMMAND matches; ! until it does not
//	walk PAGE HEADING        the commands below a heading of a page print what the page says
//	own-network              a network namespace for what follows (root)
//	forbid input|nothing     a firewall of the machine there that drops what others send it, or none
//	start-cri FLAGS...       setpoint cri on $WORK/run/cri.sock, data in $WORK/data, until it is ready
//	stop-cri, kill-cri       end it by SIGTERM (it must end well) or SIGKILL
//	cri STEP                 one step of a pod's life, asked of that socket (cri_test.go)
//	visit TIME REGEXP URL    until the answer of this machine, "200 text" or "308 location", matches; of https
//	                         URLs "200 text subject", the certificate's
//	box-image ARCHIVE NAME   an image with cat, echo, ls, tar and a few more
//	mirror FILE IMAGE        a registry that has the image; FILE, for --registries, says that it is a mirror of the image's own
//	device-plugin DATA ID... example.com/dongle has these devices on the node with this data directory; !ID is ill
//	start-extension          words.example.com/v1 at 192.0.2.10:8443 of the own network, by upstream's library for aggregated
//	                         servers, until its certificate is in extension.crt
//	dra-driver DATA          the driver dev.example.com is there
//
// $REPOSITORY is the root of this repository.
func TestScripts(t *testing.T) {
	binary, err := underTest()
	if err != nil {
		t.Fatal(err)
	}
	repository, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	dir, files := filepath.Join("testdata", "script"), []string(nil)
	if raceEnabled && testing.Short() {
		for _, name := range detectedScripts {
			files = append(files, filepath.Join(dir, name+".txtar"))
		}
		dir = ""
	}
	testscript.Run(t, testscript.Params{
		Dir: dir, Files: files,
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", binary.dir+string(os.PathListSeparator)+os.Getenv("PATH"))
			env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
			env.Setenv("REPOSITORY", repository)
			env.Defer(func() { machinetest.UnmountBelow(env.WorkDir) })
			env.Values[clusterKey{}] = &cluster{}
			env.Values[criPodKey{}] = &criPod{}
			env.Values[csiKey{}] = &csitest.Driver{}
			env.Values[serversKey{}] = map[string]*cluster{}
			env.Values[managerKey{}] = &managerSocket{}
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"start-dev":  startDev,
			"stop-dev":   stopDev,
			"kill-dev":   killDev,
			"kubectl":    kubectl,
			"exits":      exits,
			"eventually": eventually,
			"as-told":    asTold,

			"init-servers":  initServers,
			"start-server":  startServer,
			"start-alone":   startAlone,
			"start-joining": startJoining,
			"stop-server":   stopServer,
			"kill-server":   killServer,
			"gives-up":      givesUp,
			"said":          said,

			"service-manager": manager,
			"told":            told,

			"start-cri": startCRI,
			"stop-cri":  stopDev,
			"kill-cri":  killDev,
			"cri":       criStep,

			"walk":        walk,
			"own-network": ownNetwork,
			"forbid":      forbid,
			"box-image":   boxImage,
			"mirror":      mirror,
			"visit":       visit,

			"device-plugin": devicePlugin(t),
			"dra-driver":    draDriver(t),
			"csi-driver":    csiDriver(t),
			"csi-calls":     csiCalls,

			"start-extension": startExtension,

			"object-store": objectStore(t),
			"age-keys":     ageKeys,
		},
		Condition:           condition,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

// condition knows [root], and [given]: that servers and commands are people's binary, of
// make build. One built here does not know its version, and with the race detector it
// needs more memory.
func condition(name string) (bool, error) {
	switch name {
	case "root":
		return os.Geteuid() == 0, nil
	case "given":
		return os.Getenv(binaryVariable) != "" && !raceEnabled, nil
	case "ipv6":
		return network.HasIPv6(), nil
	default:
		return false, fmt.Errorf("unknown condition %q", name)
	}
}

type clusterKey struct{}

// cluster is the background process of one script.
type cluster struct {
	cmd    *exec.Cmd
	ended  chan struct{}
	err    error // valid when ended is closed
	output lockedBuffer
}

func startDev(ts *testscript.TestScript, neg bool, args []string) {
	c := ts.Value(clusterKey{}).(*cluster)
	if neg || c.cmd != nil {
		ts.Fatalf("start-dev: not with !, and one at a time")
	}
	data := filepath.Join(ts.Getenv("WORK"), "data")
	args = append([]string{"dev", "--port", "0", "--data-dir", data, "--simulated-nodes", "3"}, args...)
	c.output.Reset()
	ts.Check(c.start(ts, args))
	ts.Defer(func() { c.end(syscall.SIGKILL) })
	if !c.awaitOutput("Setpoint is ready") {
		ts.Fatalf("start-dev: not ready:\n%s", c.output.String())
	}
	kubeconfig := filepath.Join(data, "admin.kubeconfig")
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	ts.Check(err)
	server, err := url.Parse(config.Host)
	ts.Check(err)
	ts.Setenv("KUBECONFIG", kubeconfig)
	ts.Setenv("PORT", server.Port())
}

func (c *cluster) start(ts *testscript.TestScript, args []string) error {
	binary, err := underTest()
	if err != nil {
		return err
	}
	c.cmd = exec.Command(binary.server, args...)
	c.cmd.Dir = ts.Getenv("WORK")
	c.cmd.Env = append(os.Environ(), "HOME="+ts.Getenv("HOME"))
	for _, name := range []string{"NOTIFY_SOCKET", "WATCHDOG_USEC"} { // of service-manager
		c.cmd.Env = append(c.cmd.Env, name+"="+ts.Getenv(name))
	}
	c.cmd.Stdout, c.cmd.Stderr = &c.output, &c.output
	c.ended = make(chan struct{})
	if err := c.cmd.Start(); err != nil {
		return err
	}
	go func() {
		c.err = c.cmd.Wait()
		close(c.ended)
	}()
	return nil
}

// awaitOutput reports whether text was printed before the process ended or
// readyTimeout passed.
func (c *cluster) awaitOutput(text string) bool {
	deadline := time.After(readyTimeout)
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for !strings.Contains(c.output.String(), text) {
		select {
		case <-c.ended:
			return false
		case <-deadline:
			return false
		case <-tick.C:
		}
	}
	return true
}

var errNotEnded = errors.New("did not end in time")

// end sends the signal and returns how the process ended.
func (c *cluster) end(signal syscall.Signal) error {
	if c.cmd == nil {
		return nil
	}
	_ = c.cmd.Process.Signal(signal) // it may have ended
	c.cmd = nil
	select {
	case <-c.ended:
		return c.err
	case <-time.After(stopTimeout):
		return errNotEnded
	}
}

func stopDev(ts *testscript.TestScript, _ bool, _ []string) {
	c := ts.Value(clusterKey{}).(*cluster)
	process := c.cmd
	if err := c.end(syscall.SIGTERM); err != nil {
		_ = process.Process.Kill()
		ts.Fatalf("stop-dev: %v\n%s", err, c.output.String())
	}
	if strings.Contains(c.output.String(), "WARNING: DATA RACE") {
		ts.Fatalf("stop-dev: a data race:\n%s", c.output.String())
	}
}

func killDev(ts *testscript.TestScript, _ bool, _ []string) {
	if err := ts.Value(clusterKey{}).(*cluster).end(syscall.SIGKILL); errors.Is(err, errNotEnded) {
		ts.Fatalf("kill-dev: %v", err)
	}
}

func kubectl(ts *testscript.TestScript, neg bool, args []string) {
	err := ts.Exec("setpoint", append([]string{"kubectl"}, args...)...)
	if (err != nil) != neg {
		ts.Fatalf("kubectl: unexpected result: %v\n%s", err, nodesUnwell(ts))
	}
}

// nodesUnwell says what is wrong with the nodes of the script's cluster: the usual reason why pods do not come.
func nodesUnwell(ts *testscript.TestScript) string {
	if ts.Getenv("KUBECONFIG") == "" {
		return ""
	}
	out, err := capture(ts, []string{"kubectl", "--request-timeout=5s", "get", "nodes", "-o", "json"})
	var nodes corev1.NodeList
	if err == nil {
		err = json.Unmarshal([]byte(out), &nodes)
	}
	if err != nil {
		return fmt.Sprintf("the nodes are not known: %v", err)
	}
	return nodestate.Unwell(nodes.Items)
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		code = ended.ExitCode()
	} else {
		ts.Check(err)
	}
	if got := fmt.Sprint(code); got != args[0] {
		ts.Fatalf("exit code %s, want %s", got, args[0])
	}
}

// unexpected is output that no check waits for: a regular expression that is found in it cannot fail.
const unexpected = "something/else\n"

func eventually(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 3 {
		ts.Fatalf("usage: eventually TIME REGEXP COMMAND...")
	}
	limit, err := time.ParseDuration(args[0])
	ts.Check(err)
	want, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	if want.MatchString(unexpected) {
		ts.Fatalf("eventually: %s is found in any output: no output is \\A\\z", args[1])
	}
	begin := time.Now()
	for {
		out, err := capture(ts, args[2:])
		if err == nil && want.MatchString(out) != neg {
			return
		}
		waited := time.Since(begin)
		if waited > limit {
			ts.Fatalf("eventually: not within %s: %v\n%s\n%s", limit, err, nodesUnwell(ts), out)
		}
		time.Sleep(min(max(pollInterval, waited/pollShare), pollIntervalMax))
	}
}

// capture runs one command of the binary, outside the script's log.
func capture(ts *testscript.TestScript, args []string) (string, error) {
	binary, err := underTest()
	if err != nil {
		return "", err
	}
	cmd := exec.Command(binary.command, args...)
	cmd.Dir = ts.Getenv("WORK")
	cmd.Env = append(os.Environ(), "HOME="+ts.Getenv("HOME"), "KUBECONFIG="+ts.Getenv("KUBECONFIG"))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// lockedBuffer is written by a process and read by the script.
type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

func (b *lockedBuffer) Reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.buffer.Reset()
}
