package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"time"
)

// Compose is a Cluster of containers, brought up by `make compose-up` and taken down by who did that.
type Compose struct {
	*access
	prefix  string // of the containers' names, before the servers'
	network string // theirs
}

// errNotHere is the answer to what Can does not list.
var errNotHere = errors.New("containers cannot do that")

// NewCompose finds the containers, whose names are the servers' with a prefix (in Compose
// none). Keys and kubeconfigs are in trust (.compose).
func NewCompose(trust, prefix string) (*Compose, error) {
	a, err := readAccess(trust, ServersMin)
	if err != nil {
		return nil, err
	}
	networks, err := docker("inspect", "-f", "{{range $name, $_ := .NetworkSettings.Networks}}{{$name}} {{end}}", prefix+Name(0))
	if err != nil {
		return nil, err
	}
	return &Compose{access: a, prefix: prefix, network: strings.TrimSpace(networks)}, nil
}

func docker(args ...string) (string, error) {
	out, err := exec.Command("docker", args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("docker %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// Can implements Cluster.
func (*Compose) Can(a Ability) bool { return a == Unplug || a == Agents }

// Dial implements Cluster.
func (*Compose) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, network, address)
}

// Start implements Cluster.
func (c *Compose) Start(i int) error {
	if c.Running(i) {
		return nil
	}
	_, err := docker("start", c.prefix+Name(i))
	return err
}

// Kill implements Cluster.
func (c *Compose) Kill(i int) error {
	if !c.Running(i) {
		return nil
	}
	_, err := docker("kill", c.prefix+Name(i))
	return err
}

// Stop implements Cluster.
func (c *Compose) Stop(i int) error {
	_, err := docker("stop", "-t", fmt.Sprint(int(stopTimeout.Seconds())), c.prefix+Name(i))
	return err
}

func (c *Compose) state(i int) string {
	state, err := docker("inspect", "-f", "{{.State.Status}}", c.prefix+Name(i))
	if err != nil {
		return err.Error()
	}
	return state
}

// Pause implements Cluster.
func (c *Compose) Pause(i int) error {
	if c.state(i) != "running" {
		return nil
	}
	_, err := docker("pause", c.prefix+Name(i))
	return err
}

// Resume implements Cluster.
func (c *Compose) Resume(i int) error {
	if c.state(i) != "paused" {
		return nil
	}
	_, err := docker("unpause", c.prefix+Name(i))
	return err
}

// Running implements Cluster: a container that is paused runs.
func (c *Compose) Running(i int) bool {
	state := c.state(i)
	return state == "running" || state == "paused"
}

// Unplug implements Cluster.
func (c *Compose) Unplug(i int) error {
	_, err := docker("network", "disconnect", c.network, c.prefix+Name(i))
	return err
}

// Plug implements Cluster.
func (c *Compose) Plug(i int) error {
	_, err := docker("network", "connect", "--alias", Name(i), c.network, c.prefix+Name(i))
	return err
}

// Cut implements Cluster.
func (*Compose) Cut([]Pair) error { return errNotHere }

// Lose implements Cluster.
func (*Compose) Lose(int) error { return errNotHere }

// Mend implements Cluster.
func (*Compose) Mend() error { return nil }

// Remove implements Cluster.
func (*Compose) Remove(int) error { return errNotHere }

// Join implements Cluster.
func (*Compose) Join(int) error { return errNotHere }

// CutPower implements Cluster.
func (*Compose) CutPower(uint64) error { return errNotHere }

// SlowSyncs implements Cluster.
func (*Compose) SlowSyncs(time.Duration) error { return errNotHere }

// FailSyncs implements Cluster.
func (*Compose) FailSyncs(bool) error { return errNotHere }

// DataDir implements Cluster.
func (*Compose) DataDir(int) string { return "" }

// PID implements Cluster.
func (*Compose) PID(int) int { return 0 }

// Close implements Cluster. The containers stay, all running.
func (c *Compose) Close() error {
	var err error
	for i := range c.Size() {
		err = errors.Join(err, c.Resume(i), c.Start(i))
	}
	return err
}
