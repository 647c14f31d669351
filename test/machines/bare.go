package machines

import (
	_ "embed"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// systemctl stands in for systemd's: it runs ExecStart of a unit with its EnvironmentFile.
//
//go:embed testdata/systemctl
var systemctl string

// journalctl shows the last line of what a unit has said.
const journalctl = "#!/bin/sh\ntail -n 1 /run/${1#--unit=}.log 2>/dev/null\n"

// NewBare boots three machines with nothing but the binary, which is not installed. The first two have what passes for systemd.
func NewBare(t *testing.T, binary string) *Cluster {
	t.Helper()
	return boot3(t, &Cluster{binary: binary, bare: true}, 1, 1, 1)
}

func (c *Cluster) startBare() error {
	for _, m := range c.Machines {
		if err := errors.Join(os.MkdirAll(m.configDir(), 0o755), m.PowerOn()); err != nil {
			return err
		}
	}
	for _, m := range c.Machines {
		if err := m.awaitBoot(); err != nil {
			return err
		}
	}
	return nil
}

// idle is what a bare machine runs.
const idle = "idle"

// awaitBoot returns when a bare machine has its files and its network: its command is started after them, with a log of its own.
func (m *Machine) awaitBoot() error {
	for end := time.Now().Add(endLimit); ; time.Sleep(pollInterval) {
		_, err := os.Stat(filepath.Join(m.dir, idle+".log"))
		if err == nil || time.Now().After(end) {
			return err
		}
	}
}

// configDir becomes /etc/setpoint of a bare machine.
func (m *Machine) configDir() string { return filepath.Join(m.dir, "etc") }

func (m *Machine) hasSystemd() bool { return m.number < machineCount }

func (m *Machine) bareSpec() bootSpec {
	files := map[string]string{
		// What an administrator wants of his nodes stands there before: the machines share the disk of this one.
		"/etc/setpoint/agent.env": "SETPOINT_KUBELET_CONFIG=/etc/kubelet.yaml\n", "/etc/kubelet.yaml": kubeletConfig,
	}
	if m.hasSystemd() {
		files["/run/systemd/system/README"] = ""
		files["/usr/local/bin/systemctl"], files["/usr/local/bin/journalctl"] = systemctl, journalctl
	}
	return bootSpec{
		Hostname: m.Node, Addresses: []string{m.IP + networkBits}, Gateway: m.cluster.gateway(m.segment), Bare: true, Files: files,
		DataDir: m.dataDir(), TrustDir: m.configDir(), LogDir: m.dir,
		Commands: map[string][]string{idle: {"sleep", "infinity"}},
	}
}

// Type runs a line in a shell of the machine, as somebody who has the binary in his folder.
func (m *Machine) Type(line string) (string, error) {
	return m.Command("sh", "-c", "PATH=/usr/local/bin:"+filepath.Dir(m.cluster.binary)+":$PATH; "+line)
}

// Leave is Type for a line that does not end.
func (m *Machine) Leave(line string) error {
	_, err := m.Type("setsid sh -c '" + line + "' >>/run/left.log 2>&1 </dev/null &")
	return err
}
