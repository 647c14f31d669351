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
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// network is a namespace for each server and each agent, and one hub with a bridge between them from
// which the clients dial. Its addresses are known nowhere else, so that many of
// them can be on one machine. Servers filter what comes in, by where it comes from.
type network struct {
	servers int
	prefix  string
	made    []string // namespaces beside the hub
}

const (
	hubIP     = "10.213.0.254"
	tableName = "inet nemesis"

	namespaces = "/var/run/netns" // where ip keeps them
	namePrefix = "setpoint-"
)

func serverIP(i int) string { return fmt.Sprintf("10.213.0.%d", i+1) }

func newNetwork(servers int) (*network, error) {
	n := &network{servers: servers, prefix: namePrefix + strconv.Itoa(os.Getpid())}
	if err := sweep(); err != nil {
		return nil, err
	}
	err := run("",
		"ip netns add "+n.hub(),
		"ip -n "+n.hub()+" link set lo up",
		"ip -n "+n.hub()+" link add hub type bridge",
		"ip -n "+n.hub()+" addr add "+hubIP+"/24 dev hub",
		"ip -n "+n.hub()+" link set hub up")
	for i := range n.servers {
		if err == nil {
			err = n.connect(n.server(i), port(i), serverIP(i))
		}
	}
	if err == nil {
		err = n.mend()
	}
	if err != nil {
		_ = n.close() // of what was made; err says why the rest was not
		return nil, err
	}
	return n, nil
}

func (n *network) hub() string         { return n.prefix + "-hub" }
func (n *network) server(i int) string { return n.prefix + "-" + strconv.Itoa(i+1) }

// connect makes a namespace and plugs it into a port of the hub.
func (n *network) connect(namespace, port, ip string) error {
	n.made = append(n.made, namespace)
	return run("",
		"ip netns add "+namespace,
		"ip -n "+namespace+" link set lo up",
		"ip -n "+namespace+" link add eth0 type veth peer name "+port+" netns "+n.hub(),
		"ip -n "+namespace+" addr add "+ip+"/24 dev eth0",
		"ip -n "+namespace+" link set eth0 up",
		"ip -n "+n.hub()+" link set "+port+" master hub up")
}

// inside is what runs a command in a server's namespace.
func (n *network) inside(i int) []string { return []string{"ip", "netns", "exec", n.server(i)} }

// plug sets a server's port at the hub up or down.
func (n *network) plug(i int, state string) error {
	return run("", "ip -n "+n.hub()+" link set "+port(i)+" "+state)
}

func port(i int) string { return "port" + strconv.Itoa(i+1) }

// rules replaces a server's rules.
func (n *network) rules(i int, rules []string) error {
	text := "add table " + tableName + "\ndelete table " + tableName + "\ntable " + tableName + ` {
  chain input {
    type filter hook input priority 0;
    ` + strings.Join(rules, "\n    ") + "\n  }\n}\n"
	return run(text, strings.Join(n.inside(i), " ")+" nft -f -")
}

func (n *network) cut(pairs []Pair) error {
	var err error
	for i := range n.servers {
		var rules []string
		for _, pair := range pairs {
			if pair.To == i {
				rules = append(rules, "ip saddr "+serverIP(pair.From)+" drop")
			}
		}
		err = errors.Join(err, n.rules(i, rules))
	}
	return err
}

func (n *network) lose(percent int) error {
	var servers []string
	for i := range n.servers {
		servers = append(servers, serverIP(i))
	}
	rule := fmt.Sprintf("ip saddr { %s } numgen random mod 100 < %d drop", strings.Join(servers, ", "), percent)
	var err error
	for i := range n.servers {
		err = errors.Join(err, n.rules(i, []string{rule}))
	}
	return err
}

func (n *network) mend() error { return n.cut(nil) }

func (n *network) close() error {
	err := run("", "ip netns del "+n.hub())
	for _, namespace := range n.made {
		err = errors.Join(err, run("", "ip netns del "+namespace))
	}
	return err
}

// dial connects from the hub: a socket belongs to the namespace in which it is made.
func (n *network) dial(ctx context.Context, dialer *net.Dialer, proto, address string) (conn net.Conn, err error) {
	err = within(n.hub(), func() (err error) {
		conn, err = dialer.DialContext(ctx, proto, address)
		return err
	})
	return conn, err
}

// within runs a function on a thread in a namespace; what it starts or opens stays there. It is not
// `ip netns exec`, which also copies all mounts: a copy would keep a file system alive.
func within(namespace string, do func() error) error {
	runtime.LockOSThread()
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer home.Close()
	if err = enter(namespace); err == nil {
		err = do()
	}
	if back := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); back != nil {
		return errors.Join(err, back) // locked for good: nobody else may find himself in there
	}
	runtime.UnlockOSThread()
	return err
}

func enter(namespace string) error {
	file, err := os.Open(filepath.Join(namespaces, namespace))
	if err != nil {
		return err
	}
	defer file.Close()
	return unix.Setns(int(file.Fd()), unix.CLONE_NEWNET)
}

// sweep removes what a run that was killed has left.
func sweep() error {
	entries, err := os.ReadDir(namespaces)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		var pid int
		if _, bad := fmt.Sscanf(entry.Name(), namePrefix+"%d-", &pid); bad != nil {
			continue
		}
		if _, gone := os.Stat(fmt.Sprintf("/proc/%d", pid)); gone != nil {
			err = errors.Join(err, run("", "ip netns del "+entry.Name()))
		}
	}
	return err
}

// run runs commands until one fails.
func run(input string, commands ...string) error {
	for _, command := range commands {
		fields := strings.Fields(command)
		cmd := exec.Command(fields[0], fields[1:]...)
		cmd.Stdin = strings.NewReader(input)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", command, err, out)
		}
	}
	return nil
}
