package offline

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/raftstore/founded"
)

// Options say which server's data directory is worked on, as the flags of `setpoint server`.
type Options struct {
	Name, DataDir, AdvertiseAddress string
	// InitialServers are all servers of the cluster, "name=host:port,..."; "": this one alone.
	InitialServers string
	// TrustDir is what `cluster init` wrote; "": DataDir.
	TrustDir string
	Logger   *slog.Logger
}

var (
	errNoName    = errors.New("--name must not be empty")
	errNoDataDir = errors.New("--data-dir must not be empty")
)

// Validate says what is wrong with the flags.
func (o *Options) Validate() error {
	switch {
	case o.Name == "":
		return errNoName
	case o.DataDir == "":
		return errNoDataDir
	}
	_, err := o.servers()
	return err
}

func (o *Options) servers() ([]trust.Server, error) {
	return trust.ServersOf(o.Name, o.AdvertiseAddress, o.InitialServers)
}

// founded is where the trust folder says that the cluster was founded, nil if there is no such folder.
func (o *Options) founded() founded.Keeper {
	if _, err := os.Stat(filepath.Join(o.trustDir(), "pki")); err != nil {
		return nil
	}
	return trust.FoundedIn(o.trustDir())
}

func (o *Options) trustDir() string {
	if o.TrustDir != "" {
		return o.TrustDir
	}
	return o.DataDir
}
