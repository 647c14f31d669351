package machines

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestInstallOnThreeMachines types the three lines of `setpoint install` as they stand, each on a machine that has the binary and nothing
// else. On the machine without systemd what it prints is run.
func TestInstallOnThreeMachines(t *testing.T) {
	if err := Missing(); err != nil {
		t.Skip("needs root:", err)
	}
	c := NewBare(t, binaryNamed(t))
	first, second, third := c.Machines[0], c.Machines[1], c.Machines[2]
	begun := first.types(t, "setpoint install server", `(?m)^server-\S+ is ready at `+first.IP+`:6443$`)
	line := func(after string) string {
		found := regexp.MustCompile(`(?m)^` + after + `: +(setpoint install .*)$`).FindStringSubmatch(begun)
		if found == nil {
			t.Fatalf("it does not say what to type on %s:\n%s", after, begun)
		}
		return found[1]
	}
	servers, nodes := line("other servers"), line("nodes for pods")
	second.types(t, servers, `(?m)^server-\S+ is ready at `+second.IP+`:6443$`)
	third.runs(t, third.types(t, servers, `nothing was started`))
	first.types(t, nodes, `(?m)^node \S+ is ready$`)
	second.types(t, nodes, `(?m)^node \S+ is ready$`)
	third.runs(t, third.types(t, nodes, `nothing was started`))
	Until(t, patience, first.says("setpoint kubectl get nodes", `(?s)(\bReady\b.*){3}`))
	Until(t, patience, first.says("setpoint cluster members", `(?s)((leader|voter) +true.*){3}`))
	t.Run("again", func(t *testing.T) { again(t, first, second, servers, nodes) })
	t.Run("refused", func(t *testing.T) { refused(t, third, servers, nodes) })
	t.Run("undone", func(t *testing.T) { undone(t, first, second) })
}

// again: installing over what is there is an upgrade, whichever line is typed.
func again(t *testing.T, first, second *Machine, servers, nodes string) {
	if out := first.types(t, "setpoint install server", `is ready`); strings.Contains(out, "--token") {
		t.Errorf("it made other tokens:\n%s", out)
	}
	second.types(t, servers, `is ready`)
	second.types(t, "setpoint install server", `is ready`)
	second.types(t, nodes, `is ready`)
	second.types(t, "setpoint install agent", `is ready`)
	second.types(t, "stat -c %a /etc/setpoint/pki /etc/setpoint/pki/ca.key /etc/setpoint/server.env /var/lib/setpoint/pki/node.key", `^700\n600\n600\n600\n$`)
	second.types(t, "! grep -rE '(server|node)[.][0-9a-f]{64}[.]' /etc/setpoint/*.env && ! ls /etc/setpoint/*.token", ``)
}

// refused: what belongs to another cluster, or to another program, is left alone and told in one sentence.
func refused(t *testing.T, m *Machine, servers, nodes string) {
	pin := regexp.MustCompile(`\.[0-9a-f]{64}\.`)
	other := "." + strings.Repeat("0", 64) + "."
	for line, want := range map[string]string{
		pin.ReplaceAllString(servers, other):                       `^setpoint: this machine belongs to another cluster than the token: `,
		pin.ReplaceAllString(nodes, other):                         `^setpoint: this machine belongs to another cluster than the token: `,
		servers:                                                    `^setpoint: :6443: the port is taken: `,
		"setpoint install server --name another":                   `^setpoint: this machine has other settings: SETPOINT_NAME is server-`,
		"setpoint install server":                                  `^setpoint: :6443: the port is taken: `,
		"setpoint install server --join a":                         `^setpoint: this machine is a server of a cluster already: `,
		"setpoint install server --token x":                        `^setpoint: --token is for --join: `,
		"setpoint install agent --join a --token x --token-file y": `^setpoint: --token and --token-file exclude each other`,
	} {
		if out, err := m.Type(line); err == nil || !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("%s: %v, want %s\n%s", line, err, want, out)
		}
	}
}

// undone: a machine is taken out, and its keys stay until --purge.
func undone(t *testing.T, first, second *Machine) {
	first.types(t, "setpoint cluster remove $(sed -n s/^SETPOINT_NAME=//p /etc/setpoint/server.env | sed s/"+first.Node+"/"+second.Node+"/)", `removed`)
	second.types(t, "setpoint uninstall", `(?s)stay: 'setpoint uninstall --purge'.*removed /usr/local/bin/setpoint`)
	second.types(t, "! test -e /etc/systemd/system/setpoint-server.service && test -e /etc/setpoint/pki/ca.key", ``)
	if out, err := second.Type("echo no | setpoint uninstall --purge"); err == nil || !strings.Contains(out, "This deletes /var/lib/setpoint") {
		t.Errorf("not confirmed: %v\n%s", err, out)
	}
	second.types(t, "test -e /etc/setpoint/pki/ca.key", ``)
}

// types fails the test unless the line ends well and what it prints matches.
func (m *Machine) types(t *testing.T, line, want string) string {
	t.Helper()
	out, err := m.Type(line)
	if err != nil || !regexp.MustCompile(want).MatchString(out) {
		logs, _ := m.Type("tail -n 20 /run/*.log")
		t.Fatalf("%s: %s: %v, want %s\n%s\n%s", m.Node, line, err, want, out, logs)
	}
	return out
}

// says is for Until: what a line prints matches.
func (m *Machine) says(line, want string) func(context.Context) string {
	return func(context.Context) string {
		if out, err := m.Type(line); err != nil || !regexp.MustCompile(want).MatchString(out) {
			return fmt.Sprintf("%s: %v\n%s", line, err, out)
		}
		return ""
	}
}

// runs has the machine run what an installation without systemd printed.
func (m *Machine) runs(t *testing.T, out string) {
	t.Helper()
	_, command, found := strings.Cut(strings.TrimSpace(out), "To run it:\n")
	if !found {
		t.Fatalf("%s: it does not say what to run:\n%s", m.Node, out)
	}
	if err := m.Leave(command); err != nil {
		t.Fatal(err)
	}
}

// binaryNamed is a binary that is called setpoint.
func binaryNamed(t *testing.T) string {
	made := binary(t)
	if filepath.Base(made) != "setpoint" {
		t.Fatalf("%s is not called setpoint", made)
	}
	return made
}
