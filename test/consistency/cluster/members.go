package cluster

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// joinTries and joinPause bound how long a new server may take until it can be asked in, and the others until they have a leader.
	joinTries = 60
	joinPause = 500 * time.Millisecond
)

// Remove implements Cluster, by `setpoint cluster remove`.
func (p *Processes) Remove(i int) error {
	err := again(func() error { return p.setpoint("cluster", "remove", Name(i), "--kubeconfig", p.admin()) })
	return errors.Join(err, p.Kill(i), empty(p.DataDir(i)))
}

// Join implements Cluster, by `setpoint cluster join`.
func (p *Processes) Join(i int) error {
	p.mu.Lock()
	p.replaced[i] = true
	p.mu.Unlock()
	if err := p.Start(i); err != nil {
		return err
	}
	return again(func() error { return p.setpoint("cluster", "join", p.peers[i], "--kubeconfig", p.admin()) })
}

// again does what may be refused for a while.
func again(do func() error) error {
	err := do()
	for n := 1; n < joinTries && err != nil; n++ {
		time.Sleep(joinPause)
		err = do()
	}
	return err
}

func (p *Processes) admin() string { return filepath.Join(p.trust(), "admin.kubeconfig") }

// place says who the others are: a founder is one of --initial-servers, a new server is not.
func (p *Processes) place(i int) []string {
	if !p.replaced[i] {
		return []string{"--initial-servers", strings.Join(p.peers, ",")}
	}
	others := slices.Delete(slices.Clone(p.peers), i, i+1)
	return []string{"--initial-servers", strings.Join(others, ","), "--advertise-address", strings.TrimPrefix(p.peers[i], Name(i)+"=")}
}

// binary is what a server runs.
func (p *Processes) binary(i int) string {
	if p.cfg.Other != "" && i%2 == 1 {
		return p.cfg.Other
	}
	return p.cfg.Binary
}

var errServers = fmt.Errorf("a cluster has from %d to %d servers", ServersMin, ServersMax)
