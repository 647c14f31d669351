package install

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// mistakeStatus is the exit status of a mistake on the command line, and that of Go's panics.
const mistakeStatus = "2"

// manager is the systemd of a machine.
type manager struct {
	// run runs systemctl or journalctl, and returns what it prints.
	run func(ctx context.Context, name string, args ...string) (string, error)
	// before is the run of the unit that start ends, "" if it had none.
	before string
}

// newManager returns nil where systemd does not run the machine.
func newManager(f folder) *manager {
	if !exists(f.path(systemdFolder)) {
		return nil
	}
	return &manager{run: func(ctx context.Context, name string, args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
		text := strings.TrimSpace(string(out))
		if err != nil {
			err = fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, text)
		}
		return text, err
	}}
}

// start has a unit run from now on and with each start of the machine, with its newest text and binary. It waits for neither the end of the
// run before nor the new one: await does, with words.
func (m *manager) start(ctx context.Context, unit string) error {
	for _, args := range [][]string{{"daemon-reload"}, {"enable", unit}} {
		if _, err := m.run(ctx, "systemctl", args...); err != nil {
			return err
		}
	}
	// What it failed of before does not count. It cannot be forgotten of a unit that is not loaded, which has not failed.
	_, _ = m.run(ctx, "systemctl", "reset-failed", unit)
	m.before = m.invocation(ctx, unit)
	_, err := m.run(ctx, "systemctl", "restart", "--no-block", unit)
	return err
}

// invocation is another one for each run of a unit, "" if it has never run.
func (m *manager) invocation(ctx context.Context, unit string) string {
	return m.show(ctx, unit, "InvocationID")
}

// isNew reports whether what a unit is and answers is no more that of its run before start.
func (m *manager) isNew(ctx context.Context, unit string) bool {
	return m.before == "" || m.invocation(ctx, unit) != m.before
}

// stop undoes start.
func (m *manager) stop(ctx context.Context, unit string) error {
	_, err := m.run(ctx, "systemctl", "disable", "--now", unit)
	return err
}

func (m *manager) reload(ctx context.Context) error {
	_, err := m.run(ctx, "systemctl", "daemon-reload")
	return err
}

// show is one property of a unit, "" if systemd does not say.
func (m *manager) show(ctx context.Context, unit, property string) string {
	value, err := m.run(ctx, "systemctl", "show", "--property="+property, "--value", unit)
	if err != nil {
		return ""
	}
	return value
}

// state is that of a unit: active, activating, failed, and others.
func (m *manager) state(ctx context.Context, unit string) string {
	return m.show(ctx, unit, "ActiveState")
}

// runs reports whether a unit has a process, which may not be ready, or about to end.
func (m *manager) runs(ctx context.Context, unit string) bool {
	pid := m.show(ctx, unit, "MainPID")
	return pid != "" && pid != "0"
}

// ended reports whether a unit ended with the exit status of a wrong flag, which is that of a crash too, and is about to start again.
func (m *manager) ended(ctx context.Context, unit string) bool {
	if m.state(ctx, unit) != "activating" {
		return false
	}
	return m.show(ctx, unit, "ExecMainStatus") == mistakeStatus
}

// lastLine is what a unit has said last.
func (m *manager) lastLine(ctx context.Context, unit string) string {
	line, err := m.run(ctx, "journalctl", "--unit="+unit, "--lines=1", "--output=cat", "--quiet", "--no-pager")
	if err != nil {
		return ""
	}
	return line
}
