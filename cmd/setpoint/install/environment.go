package install

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/setpoint-io/setpoint/internal/durable"
)

// Settings that an installation makes; each is a flag of the command.
const (
	keyName    = "SETPOINT_NAME"
	keyAddress = "SETPOINT_ADVERTISE_ADDRESS"
	keyJoin    = "SETPOINT_JOIN"
	keyTrust   = "SETPOINT_TRUST_DIR"
	keyData    = "SETPOINT_DATA_DIR"
	keyInitial = "SETPOINT_INITIAL_SERVERS"
	keyServers = "SETPOINT_SERVERS"
	keyNodeIP  = "SETPOINT_NODE_IP"
	keyPort    = "SETPOINT_PORT"
)

// environment is a file of systemd's EnvironmentFile=, which a shell can read too. Lines that it does not know stay as they are.
type environment struct{ lines []string }

func readEnvironment(path string) (*environment, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &environment{}, nil
	}
	if err != nil {
		return nil, err
	}
	e := &environment{}
	if trimmed := strings.TrimRight(string(text), "\n"); trimmed != "" {
		e.lines = strings.Split(trimmed, "\n")
	}
	return e, nil
}

// get is the value of a key, without quotes; the last line counts.
func (e *environment) get(key string) (value string) {
	for _, line := range e.lines {
		if name, text, ok := strings.Cut(strings.TrimSpace(line), "="); ok && name == key {
			value = strings.Trim(text, `"'`)
		}
	}
	return value
}

// set gives a key a value if it has none.
func (e *environment) set(key, value string) {
	if value != "" && e.get(key) == "" {
		e.lines = append(e.lines, key+"="+value)
	}
}

func (e *environment) text() string { return strings.Join(e.lines, "\n") + "\n" }

// save writes the file of a role. It may hold what users wrote there, so nobody else reads it.
func (e *environment) save(f folder, r role) error {
	if err := durable.MkdirAll(filepath.Dir(f.path(r.environmentFile())), folderMode); err != nil {
		return err
	}
	if err := f.write(r.environmentFile(), secretMode, strings.NewReader(e.text())); err != nil {
		return fmt.Errorf("%s: %w", r.environmentFile(), err)
	}
	return nil
}
