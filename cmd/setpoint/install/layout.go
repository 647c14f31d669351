package install

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/setpoint-io/setpoint/deploy/systemd"
	"github.com/setpoint-io/setpoint/internal/durable"
)

// role is what a machine becomes: a server, or a node with an agent. It may be both.
type role string

const (
	ofServer role = "server"
	ofAgent  role = "agent"
)

// Where everything is on a machine.
const (
	binaryFile   = "/usr/local/bin/setpoint"
	unitFolder   = "/etc/systemd/system"
	configFolder = "/etc/setpoint"
	// systemdFolder is there while systemd runs the machine.
	systemdFolder = "/run/systemd/system"
)

// unit is the name of the role's unit.
func (r role) unit() string { return "setpoint-" + string(r) + ".service" }

// unitText is the unit of a role. A server may write its trust folder, wherever that is.
func (r role) unitText(env *environment) string {
	if r == ofAgent {
		return systemd.Agent
	}
	writes := systemd.ServerWrites
	if dir := env.get(keyTrust); dir != "" && dir != configFolder {
		writes += " " + strconv.Quote("-"+strings.ReplaceAll(dir, "%", "%%"))
	}
	return strings.Replace(systemd.Server, "ReadWritePaths="+systemd.ServerWrites+"\n", "ReadWritePaths="+writes+"\n", 1)
}

// environmentFile is what the role's unit reads.
func (r role) environmentFile() string { return filepath.Join(configFolder, string(r)+".env") }

// command is what runs the role without systemd.
func (r role) command() string {
	return fmt.Sprintf("(set -a; . %s; exec %s %s)", r.environmentFile(), binaryFile, r)
}

const (
	secretMode = 0o600
	folderMode = 0o700
	unitMode   = 0o644
	binaryMode = 0o755
)

// folder is where the root of the machine's files is: "/", but in tests.
type folder string

func (f folder) path(file string) string { return filepath.Join(string(f), file) }

// write replaces a file whole or not at all, also if the power fails.
func (f folder) write(file string, mode os.FileMode, content io.Reader) error {
	path := f.path(file)
	return durable.Replace(filepath.Join(filepath.Dir(path), ".setpoint-"+filepath.Base(path)), path, secretMode, func(part *os.File) error {
		_, err := io.Copy(part, content)
		return errors.Join(err, part.Chmod(mode)) // whatever the umask
	})
}

// writeBinary puts the program that runs where the units expect it, unless it is that one.
func (f folder) writeBinary() error {
	own, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer own.Close()
	info, err := own.Stat()
	if err != nil {
		return err
	}
	if there, err := os.Stat(f.path(binaryFile)); err == nil && os.SameFile(info, there) {
		return nil
	}
	if err := durable.MkdirAll(filepath.Dir(f.path(binaryFile)), 0o755); err != nil {
		return err
	}
	return f.write(binaryFile, binaryMode, own)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
