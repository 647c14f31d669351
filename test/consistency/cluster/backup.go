package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Backup writes all objects to a file, by `setpoint backup create`.
func (p *Processes) Backup(file string) error {
	return p.setpoint("backup", "create", file, "--kubeconfig", p.admin())
}

// Restore makes all servers anew from a file, by `setpoint backup restore`, and
// starts them. Their data is gone.
func (p *Processes) Restore(file string) error {
	var err error
	for i := range p.cfg.Servers {
		err = errors.Join(err, p.Stop(i), empty(p.DataDir(i)))
	}
	p.replaced = [ServersMax]bool{} // a restored cluster has the servers that it began with
	for i := range p.cfg.Servers {
		err = errors.Join(err, p.setpoint("backup", "restore", file, "--name", Name(i), "--data-dir", p.DataDir(i),
			"--initial-servers", strings.Join(p.peers, ","), "--trust-dir", p.trust()))
	}
	for i := range p.cfg.Servers {
		err = errors.Join(err, p.Start(i))
	}
	return err
}

func (p *Processes) trust() string { return filepath.Join(p.cfg.Dir, "trust") }

// setpoint runs the program as a user does, from the hub if there is one.
func (p *Processes) setpoint(args ...string) error {
	args = append([]string{p.cfg.Binary}, args...)
	if p.network != nil {
		args = append([]string{"ip", "netns", "exec", p.network.hub()}, args...)
	}
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%v: %w: %s", args, err, out)
	}
	return nil
}

func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, entry.Name())))
	}
	return err
}
