package machines

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

const (
	cardName = "eth0"
	// endLimit is how long a part may take to end.
	endLimit = time.Minute
)

var errNotRunning = errors.New("it does not run")

// Machine is one of the three. Its methods are for one goroutine.
type Machine struct {
	// Server is the name of its server, Node that of its node and its host name, IP its address.
	Server, Node, IP string
	// NodeIP, if not empty, is another address, which the agent has from the next start on.
	NodeIP string
	// PodNetwork, if not empty, is the agent's --pod-network, from the next start on.
	PodNetwork string

	// joins: it has no agent, and its server was not there when the cluster was founded.
	joins   bool
	cluster *Cluster
	number  int // from 1 on
	dir     string
	segment segment
	port    netlink.Link // its cable's end at the bridge
	init    *exec.Cmd    // nil: turned off
}

// PowerOn boots the machine with the data that it had.
func (m *Machine) PowerOn() error {
	spec, err := json.Marshal(m.spec())
	if err != nil {
		return err
	}
	for _, dir := range []string{m.dataDir(), m.dir} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := m.putImages(); err != nil {
		return err
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Stdout, cmd.Stderr, cmd.Env = os.Stdout, os.Stderr, append(os.Environ(), bootEnv+"="+string(spec))
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWUTS, Pdeathsig: syscall.SIGKILL,
	}
	plugged, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w", m.Node, err)
	}
	m.init = cmd
	return errors.Join(m.plug(), plugged.Close())
}

// putImages links the archives into the agent's folder: they are large.
func (m *Machine) putImages() error {
	folder := filepath.Join(m.dataDir(), "images")
	for _, archive := range m.cluster.archives {
		err := errors.Join(os.MkdirAll(folder, 0o755), os.Link(archive, filepath.Join(folder, filepath.Base(archive))))
		if err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	return nil
}

func (m *Machine) spec() bootSpec {
	if m.cluster.bare {
		return m.bareSpec()
	}
	servers, endpoints := m.cluster.servers()
	agent := []string{m.cluster.binary, "agent", "--servers", endpoints, "--token-file", "/etc/setpoint/join/node.token",
		"--kubelet-config", "/etc/setpoint/kubelet.yaml"}
	server := []string{m.cluster.binary, "server", "--name", m.Server, "--trust-dir", "/etc/setpoint", "--initial-servers", servers}
	addresses := []string{m.IP + networkBits}
	if m.cluster.dual {
		server = append(server, "--pod-cidr=10.42.0.0/16,fd42::/56", "--service-cidr=10.96.0.0/16,fd96::/112")
		addresses = append(addresses, m.segment.second(m.number)+secondBits)
	}
	if m.NodeIP != "" {
		agent, addresses = append(agent, "--node-ip", m.NodeIP), append(addresses, m.NodeIP+networkBits)
	}
	if m.PodNetwork != "" {
		agent = append(agent, "--pod-network", m.PodNetwork)
	}
	commands := map[string][]string{"server": server, "agent": agent}
	if m.joins {
		commands = map[string][]string{"server": append(server, "--advertise-address", m.endpoint())}
	}
	return bootSpec{
		Hostname: m.Node, Addresses: addresses, Gateway: m.cluster.gateway(m.segment),
		DataDir: m.dataDir(), TrustDir: m.cluster.trustDir(), LogDir: m.dir, Commands: commands,
	}
}

// endpoint is where its server is.
func (m *Machine) endpoint() string { return m.IP + ":6443" }

// EndServer stops the machine's server as systemd does, and leaves all else.
func (m *Machine) EndServer() error { return m.end("server") }

// end stops the machine's "server" or "agent" and waits until it is gone.
func (m *Machine) end(part string) error {
	for _, pid := range m.processes() {
		if partOf(pid) != part {
			continue
		}
		if err := unix.Kill(pid, unix.SIGTERM); err != nil {
			return err
		}
		for end := time.Now().Add(endLimit); partOf(pid) == part; time.Sleep(pollInterval) {
			if time.Now().After(end) {
				return fmt.Errorf("%s: its %s does not end", m.Node, part)
			}
		}
		return nil
	}
	return fmt.Errorf("%s: %w: %s", m.Node, errNotRunning, part)
}

// partOf is the command of Setpoint that a process runs, "" if none, or if it has ended.
func partOf(pid int) string {
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if args := strings.Split(string(line), "\x00"); len(args) > 1 && filepath.IsAbs(args[0]) {
		return args[1]
	}
	return ""
}

// Upgrade stops the machine's "server" or "agent" and starts it as another binary with further flags.
func (m *Machine) Upgrade(part, binary string, flags ...string) error {
	if err := m.end(part); err != nil {
		return err
	}
	command := append(m.spec().Commands[part], flags...)
	command[0] = binary
	log := filepath.Join(m.dir, part+".log")
	out, err := m.Command("sh", append([]string{"-c", `log=$1; shift; "$@" >>"$log" 2>&1 </dev/null &`, "sh", log}, command...)...)
	if err != nil {
		return fmt.Errorf("%s: %w: %s", m.Node, err, out)
	}
	return nil
}

func (m *Machine) dataDir() string { return filepath.Join(m.dir, "data") }

// plug lays a cable from the bridge to the machine.
func (m *Machine) plug() error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = m.Server
	cable := &netlink.Veth{LinkAttrs: attrs, PeerName: cardName, PeerNamespace: netlink.NsPid(m.init.Process.Pid)}
	if err := netlink.LinkAdd(cable); err != nil {
		return fmt.Errorf("a cable to %s: %w", m.Node, err)
	}
	m.port = cable
	return errors.Join(m.Heal(), netlink.LinkSetUp(cable))
}

// Cut separates the machine from the others, and from the test, without any sign: its packets are lost.
func (m *Machine) Cut() error { return netlink.LinkSetNoMaster(m.port) }

// Heal undoes Cut.
func (m *Machine) Heal() error {
	bridge, err := netlink.LinkByName(m.segment.bridge())
	if err != nil {
		return err
	}
	return netlink.LinkSetMaster(m.port, bridge)
}

// Pause stops every process of the machine, as a hypervisor that moves it does.
func (m *Machine) Pause() error {
	stopped := map[int]bool{}
	for news := true; news; { // a process may start another before it stops
		news = false
		for _, pid := range m.processes() {
			if !stopped[pid] {
				stopped[pid], news = true, true
				_ = unix.Kill(pid, unix.SIGSTOP) // it may have ended
			}
		}
	}
	return nil
}

// Resume undoes Pause.
func (m *Machine) Resume() error {
	for _, pid := range m.processes() {
		_ = unix.Kill(pid, unix.SIGCONT) // it may have been killed
	}
	return nil
}

// PowerOff ends everything on the machine at once, and takes its cable away: the kernel does so only when it finds the time to remove
// the machine's namespace.
func (m *Machine) PowerOff() error {
	if m.init == nil {
		return nil
	}
	err := m.init.Process.Kill()
	_ = m.init.Wait() // it was killed
	m.init = nil
	return errors.Join(err, m.unplug())
}

func (m *Machine) unplug() error {
	if m.port == nil {
		return nil
	}
	err := netlink.LinkDel(m.port)
	m.port = nil
	if errors.Is(err, unix.ENODEV) || errors.Is(err, unix.EINVAL) {
		return nil // the kernel was faster
	}
	return err
}

// Command runs a command on the machine and returns what it prints.
func (m *Machine) Command(name string, args ...string) (string, error) {
	inside := append([]string{"--target", strconv.Itoa(m.init.Process.Pid), "--net", "--mount", "--pid", "--uts", name}, args...)
	out, err := exec.Command("nsenter", inside...).CombinedOutput()
	return string(out), err
}

// processes are the machine's, its first one first, containers included.
func (m *Machine) processes() []int {
	children := map[int][]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is good
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		pid, parent := parseStat(string(text))
		children[parent] = append(children[parent], pid)
	}
	all := []int{m.init.Process.Pid}
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i]]...)
	}
	return all
}

// parseStat reads "pid (name) state parent ..."; a name may have spaces and parentheses.
func parseStat(text string) (pid, parent int) {
	pid, _ = strconv.Atoi(text[:strings.Index(text, " ")])
	fields := strings.Fields(text[strings.LastIndex(text, ")")+1:])
	parent, _ = strconv.Atoi(fields[1])
	return pid, parent
}

// removeCgroups removes the control groups that the machine's pods have left.
func (m *Machine) removeCgroups() {
	for _, pattern := range []string{"/sys/fs/cgroup/setpoint-", "/sys/fs/cgroup/*/setpoint-"} {
		roots, _ := filepath.Glob(pattern + m.Node) // the pattern is good
		for _, root := range roots {
			removeTree(root)
		}
	}
}

// removeTree removes directories only: what looks like a file in there belongs to the kernel.
func removeTree(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		if entry.IsDir() {
			removeTree(filepath.Join(dir, entry.Name()))
		}
	}
	_ = os.Remove(dir)
}
