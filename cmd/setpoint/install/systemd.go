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

// start has a unit run from now on and with each start of the machine, with its newest text and binary.
func (m *manager) start(ctx context.Context, unit string) error {
	// The unit says when it is ready, which await waits for with words. What it failed of before does not count.
	for _, args := range [][]string{{"daemon-reload"}, {"enable", unit}, {"reset-failed", unit}, {"restart", "--no-block", unit}} {
		if _, err := m.run(ctx, "systemctl", args...); err != nil {
			return err
		}
	}
	return nil
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

// state is that of a unit: active, activating, failed, and others.
func (m *manager) state(ctx context.Context, unit string) string {
	state, _ := m.run(ctx, "systemctl", "show", "--property=ActiveState", "--value", unit) // no state is none of these
	return state
}

// runs reports whether a unit has a process, which may not be ready.
func (m *manager) runs(ctx context.Context, unit string) bool {
	switch m.state(ctx, unit) {
	case "active":
		return true
	case "activating": // or between two starts
		sub, _ := m.run(ctx, "systemctl", "show", "--property=SubState", "--value", unit) // no state is not this one
		return sub == "start"
	}
	return false
}

// ended reports whether a unit ended with the exit status of a wrong flag, which is that of a crash too, and is about to start again.
func (m *manager) ended(ctx context.Context, unit string) bool {
	if m.state(ctx, unit) != "activating" {
		return false
	}
	status, _ := m.run(ctx, "systemctl", "show", "--property=ExecMainStatus", "--value", unit) // no status is not this one
	return status == mistakeStatus
}

// lastLine is what a unit has said last.
func (m *manager) lastLine(ctx context.Context, unit string) string {
	line, err := m.run(ctx, "journalctl", "--unit="+unit, "--lines=1", "--output=cat", "--quiet", "--no-pager")
	if err != nil {
		return ""
	}
	return line
}
