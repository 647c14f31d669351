package setpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/setpoint-io/setpoint/apiserver/auditlog"
	"github.com/setpoint-io/setpoint/apiserver/auth/authconfig"
	"github.com/setpoint-io/setpoint/apiserver/auth/pki"
	"github.com/setpoint-io/setpoint/pace"
)

// readyTimeout bounds how long a start may take before it is reported; the
// server goes on trying.
const readyTimeout = 30 * time.Second

// ServerOptions are the flags of `setpoint server`.
type ServerOptions struct {
	Name, DataDir, AdvertiseAddress, InitialServers string
	TrustDir, TokenFile                             string
	GossipAddress                                   string
	Authentication                                  authconfig.Config
	Audit                                           auditlog.Config
	Logger                                          *slog.Logger
	Out                                             io.Writer
}

var (
	errNoName      = errors.New("--name must not be empty")
	errNotInitial  = errors.New("it is not one of --initial-servers: to join them, give --advertise-address too")
	errNoDataDir   = errors.New("--data-dir must not be empty")
	errTokenFile   = errors.New("the token does not belong to this cluster: copy node.token from the folder that 'setpoint cluster init' wrote")
	errNoTrust     = errors.New("no trust material: run 'setpoint cluster init --servers ... --out DIR' once and give each server --trust-dir DIR")
	errPortInUse   = errors.New("the port is taken: stop what uses it or choose another with --port or --advertise-address")
	defaultAddress = fmt.Sprintf("127.0.0.1:%d", DefaultPort)
)

// Validate says what is wrong with the flags.
func (o *ServerOptions) Validate() error {
	switch {
	case o.Name == "":
		return errNoName
	case o.DataDir == "":
		return errNoDataDir
	}
	servers, err := o.servers()
	if err != nil {
		return err
	}
	if !o.isInitial(servers) && o.AdvertiseAddress == "" {
		return fmt.Errorf("--name %q: %w", o.Name, errNotInitial)
	}
	return errors.Join(o.Authentication.Validate(), o.Audit.Validate())
}

// isInitial reports whether this server is one of the list. Another joins them.
func (o *ServerOptions) isInitial(servers []pki.Server) bool {
	return slices.ContainsFunc(servers, func(s pki.Server) bool { return s.Name == o.Name })
}

// servers are all replicas; without a list this one is alone.
func (o *ServerOptions) servers() ([]pki.Server, error) {
	if o.InitialServers != "" {
		return pki.ParseServers(o.InitialServers)
	}
	address := o.AdvertiseAddress
	if address == "" {
		address = defaultAddress
	}
	return pki.ParseServers(o.Name + "=" + address)
}

// RunServer runs one replica until ctx ends.
func RunServer(ctx context.Context, o ServerOptions) error {
	pace.GC()
	pace.WakeLess()
	servers, err := o.servers()
	if err != nil {
		return err
	}
	unlock, err := lockDataDir(o.DataDir, "server")
	if err != nil {
		return err
	}
	defer unlock()
	trust, err := o.trust(ctx, servers)
	if err != nil {
		return err
	}
	if err := checkPort(o.listenAddress(servers)); err != nil {
		return err
	}
	o.Audit.Logger = o.Logger
	audit, stopAudit, err := auditlog.Start(o.Audit)
	if err != nil {
		return err
	}
	server, err := StartServer(ctx, ServerConfig{
		Name: o.Name, DataDir: o.DataDir, Trust: trust, InitialServers: servers, AdvertiseAddress: o.AdvertiseAddress,
		ListenAddress: o.listenAddress(servers), Gossip: o.gossip(servers), Logger: o.Logger,
		Authentication: o.Authentication, AuditLog: audit,
	})
	if err != nil {
		return errors.Join(err, stopAudit())
	}
	o.announce(ctx, server)
	return errors.Join(server.Wait(ctx), server.Stop(), stopAudit())
}

func (o *ServerOptions) announce(ctx context.Context, server *Server) {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	if err := server.Ready(ctx); err != nil {
		o.Logger.Warn("no leader yet: are a majority of the servers running?", "error", err)
		return
	}
	fmt.Fprintf(o.Out, "server %s is ready; kubeconfig: %s\n", o.Name, filepath.Join(o.trustDir(), AdminKubeconfig))
}

func (o *ServerOptions) trustDir() string {
	if o.TrustDir != "" {
		return o.TrustDir
	}
	return o.DataDir
}

// trust loads what `cluster init` wrote. A server that is alone makes its own.
func (o *ServerOptions) trust(ctx context.Context, servers []pki.Server) (*pki.Cluster, error) {
	var trust *pki.Cluster
	var err error
	if len(servers) == 1 && o.isInitial(servers) {
		trust, err = pki.InitCluster(o.trustDir(), servers, time.Now())
	} else {
		trust, err = o.awaitTrust(ctx)
	}
	if err != nil {
		return nil, err
	}
	return trust, o.checkToken(trust)
}

// awaitTrust gives whoever runs `cluster init` a while: containers start together.
func (o *ServerOptions) awaitTrust(ctx context.Context) (*pki.Cluster, error) {
	var trust *pki.Cluster
	err := awaitFile(ctx, o.Logger, o.trustDir(), func() (err error) {
		trust, err = pki.LoadCluster(o.trustDir())
		return err
	})
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", o.trustDir(), errNoTrust)
	}
	return trust, err
}

const (
	fileTimeout      = 30 * time.Second
	filePollInterval = 200 * time.Millisecond
)

// awaitFile repeats read while it says that something does not exist yet.
func awaitFile(ctx context.Context, logger *slog.Logger, what string, read func() error) error {
	ctx, cancel := context.WithTimeout(ctx, fileTimeout)
	defer cancel()
	for told := false; ; told = true {
		err := read()
		if !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if !told {
			logger.Info("waiting for a file that another program writes", "path", what, "timeout", fileTimeout)
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(filePollInterval):
		}
	}
}

func (o *ServerOptions) checkToken(trust *pki.Cluster) error {
	if o.TokenFile == "" {
		return nil
	}
	text, err := os.ReadFile(o.TokenFile)
	if err != nil {
		return err
	}
	token, err := pki.ParseToken(string(text))
	if err != nil {
		return err
	}
	if !token.Equal(trust.NodeToken) {
		return fmt.Errorf("%s: %w", o.TokenFile, errTokenFile)
	}
	return nil
}

// listenAddress is every address of the machine at the advertised port, except
// that a loopback address stays on loopback.
func (o *ServerOptions) listenAddress(servers []pki.Server) string {
	address := o.AdvertiseAddress
	for _, server := range servers {
		if server.Name == o.Name && address == "" {
			address = server.Endpoint
		}
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address // ParseServers has refused anything else
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
		return address
	}
	return net.JoinHostPort("", port)
}

func (o *ServerOptions) gossip(servers []pki.Server) *GossipConfig {
	if o.GossipAddress == "" {
		return nil
	}
	g := &GossipConfig{BindAddress: o.GossipAddress}
	_, port, err := net.SplitHostPort(o.GossipAddress)
	if err != nil {
		return g
	}
	for _, server := range servers {
		host, _, _ := strings.Cut(server.Endpoint, ":")
		g.Seeds = append(g.Seeds, net.JoinHostPort(host, port))
	}
	return g
}

// checkPort says early whether the port is taken: it is opened when there is an answer.
func checkPort(address string) error {
	listener, err := listen(address)
	if err != nil {
		return err
	}
	return listener.Close()
}

// listen opens a TCP listener and says what to do when the port is taken.
func listen(address string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s: %w", address, errPortInUse)
	}
	return listener, err
}
