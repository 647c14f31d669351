package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/internal/freeport"
	"github.com/setpoint-io/setpoint/test/powercut"
)

const (
	stopTimeout    = 20 * time.Second
	serverPort     = 6443
	dialTimeout    = time.Second
	smallDiskBytes = 192 << 20
)

// A Config says where processes live.
type Config struct {
	Binary  string // setpoint
	Servers int    // from ServersMin to ServersMax
	// Other, if not empty, is another build of setpoint, which every second server runs.
	Other string
	Dir   string // for data, logs and keys
	// Power puts the data of PowerServer on a file system that can lose its power,
	// which makes it slower.
	Power bool
	// KubeletConfig is the agents' file. Without it there are none.
	KubeletConfig string
}

// Processes is a Cluster of processes.
type Processes struct {
	*access
	// Lacks is why there is no network that can be cut; nil if there is.
	Lacks   error
	cfg     Config
	network *network // nil: all on the loopback address
	peers   []string // --initial-servers
	disk    bool     // SmallDisk has a file system of its own
	power   *powercut.FileSystem
	agents  []*process

	mu      sync.Mutex
	servers [ServersMax]*process
	// replaced are those that joined in the place of one that was removed.
	replaced [ServersMax]bool
}

// process is one run of a server or an agent.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// NewProcesses makes keys and, as root, the network and agents in it. Start starts the servers.
func NewProcesses(cfg Config) (*Processes, error) {
	if cfg.Servers < ServersMin || cfg.Servers > ServersMax {
		return nil, errServers
	}
	p := &Processes{cfg: cfg}
	addresses, err := p.lay()
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	p.peers = addresses
	out, err := exec.Command(cfg.Binary, "cluster", "init", "--servers="+strings.Join(p.peers, ","), "--out="+p.trust()).CombinedOutput()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %s", err, out), p.Close())
	}
	if p.access, err = readAccess(p.trust(), cfg.Servers); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	if p.Can(Agents) {
		if err := p.startAgents(); err != nil {
			return nil, errors.Join(err, p.Close())
		}
	}
	return p, nil
}

// lay lays the network and returns the servers' addresses. Without root, or where root may not do that, all
// share the loopback address, and the faults of networks and disks are left out.
func (p *Processes) lay() ([]string, error) {
	if os.Geteuid() != 0 {
		p.Lacks = errors.New("namespaces need root")
		return loopback(p.cfg.Servers)
	}
	if p.network, p.Lacks = newNetwork(p.cfg.Servers); p.Lacks != nil {
		return loopback(p.cfg.Servers)
	}
	if err := errors.Join(p.smallDisk(), p.powerOn()); err != nil {
		return nil, err
	}
	var addresses []string
	for i := range p.cfg.Servers {
		addresses = append(addresses, fmt.Sprintf("%s=%s:%d", Name(i), serverIP(i), serverPort))
	}
	return addresses, nil
}

func (p *Processes) smallDisk() error {
	small := p.DataDir(SmallDisk)
	if err := os.MkdirAll(small, 0o700); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", small, "tmpfs", 0, fmt.Sprintf("size=%d", smallDiskBytes)); err != nil {
		return fmt.Errorf("mounting a small disk: %w", err)
	}
	p.disk = true
	return nil
}

// loopback picks free ports.
func loopback(servers int) ([]string, error) {
	var addresses []string
	for i := range servers {
		address, err := freeport.Address()
		if err != nil {
			return nil, err
		}
		addresses = append(addresses, Name(i)+"="+address)
	}
	return addresses, nil
}

// Can implements Cluster.
func (p *Processes) Can(a Ability) bool {
	switch a {
	case Network, Unplug:
		return p.network != nil
	case Agents:
		return p.network != nil && p.cfg.KubeletConfig != ""
	case Disk:
		return p.disk
	case Members:
		return true
	case Spare:
		return p.cfg.Servers >= ServersMax
	case Power:
		return p.power != nil
	case Clock:
		return os.Geteuid() == 0 && runtime.GOARCH == "amd64"
	default:
		return a == Files
	}
}

// Dial implements Cluster.
func (p *Processes) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: dialTimeout}
	if p.network == nil {
		return dialer.DialContext(ctx, network, address)
	}
	return p.network.dial(ctx, dialer, network, address)
}

// DataDir implements Cluster.
func (p *Processes) DataDir(i int) string { return filepath.Join(p.cfg.Dir, Name(i)) }

// LogFile is where a server's log is.
func (p *Processes) LogFile(i int) string { return filepath.Join(p.cfg.Dir, Name(i)+".log") }

// Start implements Cluster.
func (p *Processes) Start(i int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running(i) {
		return nil
	}
	log, err := os.OpenFile(p.LogFile(i), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	args := append([]string{p.binary(i), "server", "--name", Name(i), "--data-dir", p.DataDir(i), "--trust-dir", p.trust()}, p.place(i)...)
	if p.network == nil {
		args = append(args, "--gossip-address", "")
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.launch(i, cmd); err != nil {
		return err
	}
	p.servers[i] = newProcess(cmd)
	return nil
}

// newProcess follows a command that was started.
func newProcess(cmd *exec.Cmd) *process {
	p := &process{cmd: cmd, ended: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // how it ended is in its log
		close(p.ended)
	}()
	return p
}

// launch starts a command in a server's namespace.
func (p *Processes) launch(i int, cmd *exec.Cmd) error {
	if p.network == nil {
		return cmd.Start()
	}
	return within(p.network.server(i), cmd.Start)
}

// running needs mu.
func (p *Processes) running(i int) bool {
	if p.servers[i] == nil {
		return false
	}
	select {
	case <-p.servers[i].ended:
		return false
	default:
		return true
	}
}

// Running implements Cluster.
func (p *Processes) Running(i int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running(i)
}

// PID implements Cluster.
func (p *Processes) PID(i int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running(i) {
		return 0
	}
	return p.servers[i].cmd.Process.Pid
}

func (p *Processes) signal(i int, signal syscall.Signal) *process {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running(i) {
		_ = p.servers[i].cmd.Process.Signal(signal) // it may have ended just now
	}
	return p.servers[i]
}

// Kill implements Cluster.
func (p *Processes) Kill(i int) error {
	if server := p.signal(i, syscall.SIGKILL); server != nil {
		<-server.ended
	}
	return nil
}

// Stop implements Cluster. A server that does not end in time is killed, and that is an error.
func (p *Processes) Stop(i int) error {
	server := p.signal(i, syscall.SIGTERM)
	if server == nil {
		return nil
	}
	select {
	case <-server.ended:
		return nil
	case <-time.After(stopTimeout):
		return errors.Join(fmt.Errorf("%s did not stop within %v", Name(i), stopTimeout), p.Kill(i))
	}
}

// Pause implements Cluster.
func (p *Processes) Pause(i int) error { p.signal(i, syscall.SIGSTOP); return nil }

// Resume implements Cluster.
func (p *Processes) Resume(i int) error { p.signal(i, syscall.SIGCONT); return nil }

var errNoNetwork = errors.New("without root all servers share one network")

// Cut implements Cluster.
func (p *Processes) Cut(pairs []Pair) error {
	if p.network == nil {
		return errNoNetwork
	}
	return p.network.cut(pairs)
}

// Lose implements Cluster.
func (p *Processes) Lose(percent int) error {
	if p.network == nil {
		return errNoNetwork
	}
	return p.network.lose(percent)
}

// Unplug implements Cluster.
func (p *Processes) Unplug(i int) error {
	if p.network == nil {
		return errNoNetwork
	}
	return p.network.plug(i, "down")
}

// Plug implements Cluster.
func (p *Processes) Plug(i int) error {
	if p.network == nil {
		return errNoNetwork
	}
	return p.network.plug(i, "up")
}

// Mend implements Cluster.
func (p *Processes) Mend() error {
	if p.network == nil {
		return nil
	}
	return p.network.mend()
}

// Close implements Cluster. Data and logs stay.
func (p *Processes) Close() error {
	err := p.stopAgents()
	for i := range p.cfg.Servers {
		err = errors.Join(err, p.Kill(i))
	}
	if p.power != nil {
		err = errors.Join(err, p.power.Unmount(), os.Remove(p.DataDir(PowerServer)), os.Rename(p.diskDir(), p.DataDir(PowerServer)))
	}
	if p.disk {
		err = errors.Join(err, p.keepDisk())
	}
	if p.network != nil {
		err = errors.Join(err, p.network.close())
	}
	return err
}

// keepDisk moves what is on the small disk below where it was mounted.
func (p *Processes) keepDisk() error {
	small, kept := p.DataDir(SmallDisk), p.DataDir(SmallDisk)+".kept"
	err := os.CopyFS(kept, os.DirFS(small))
	return errors.Join(err, unix.Unmount(small, unix.MNT_DETACH), os.Remove(small), os.Rename(kept, small))
}
