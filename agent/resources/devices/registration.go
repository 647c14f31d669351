package devices

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/setpoint-io/setpoint/agent/base/registration"
	"github.com/setpoint-io/setpoint/agent/resources/devices/ledger"
)

// socketName is where plugins register, in the folder.
const socketName = "kubelet.sock"

// requestBytesMax bounds what a plugin may send to register.
const requestBytesMax = 64 << 10

var _ registration.Handler = (*Manager)(nil)

// Run lets plugins register until ctx ends. The error is about the folder.
func (m *Manager) Run(ctx context.Context) error {
	defer m.children.Wait()
	listener, err := net.Listen("unix", filepath.Join(m.Dir, socketName))
	if err != nil {
		return fmt.Errorf("device plugins: %w", err)
	}
	server := grpc.NewServer(grpc.MaxRecvMsgSize(requestBytesMax))
	pluginapi.RegisterRegistrationServer(server, &service{m: m})
	stop := context.AfterFunc(ctx, server.Stop)
	defer stop()
	if err := server.Serve(listener); err != nil && ctx.Err() == nil {
		return fmt.Errorf("device plugins: %w", err)
	}
	return nil
}

// removeSockets: plugins watch theirs, and register again when it is gone.
func removeSockets(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Type()&fs.ModeSocket != 0 {
			err = errors.Join(err, os.Remove(filepath.Join(dir, entry.Name())))
		}
	}
	return err
}

// service is the Registration service.
type service struct {
	pluginapi.UnimplementedRegistrationServer
	m *Manager
}

// Register takes in a plugin whose socket is in the folder. It is spoken to after this call.
func (s *service) Register(_ context.Context, r *pluginapi.RegisterRequest) (*pluginapi.Empty, error) {
	err := s.m.register(r)
	if err != nil {
		s.m.Logger.Warn("refused a device plugin", "resource", r.GetResourceName(), "err", err)
	}
	return &pluginapi.Empty{}, err
}

func (m *Manager) register(r *pluginapi.RegisterRequest) error {
	if r.Version != pluginapi.Version {
		return fmt.Errorf("requested API version %q is not supported by kubelet. Supported version is %q", r.Version, pluginapi.SupportedVersions)
	}
	if !isExtended(r.ResourceName) {
		return invalidName(r.ResourceName)
	}
	if name := r.Endpoint; name == "" || name != filepath.Base(name) || name == ".." || name == "." || name == socketName {
		return fmt.Errorf("the endpoint %q is not the name of a socket in the folder of device plugins", name)
	}
	return m.connect(r.ResourceName, filepath.Join(m.Dir, r.Endpoint))
}

func invalidName(name string) error { return fmt.Errorf("the ResourceName %q is invalid", name) }

// isExtended: a name in a domain that is not Kubernetes' own, and also with the prefix of quotas a good name.
func isExtended(name string) bool {
	if !strings.Contains(name, "/") || strings.Contains(name, corev1.ResourceDefaultNamespacePrefix) ||
		strings.HasPrefix(name, corev1.DefaultResourceRequestsPrefix) {
		return false
	}
	return len(utilvalidation.IsQualifiedName(corev1.DefaultResourceRequestsPrefix+name)) == 0
}

// Validate says what is wrong with a plugin that was found by its socket.
func (m *Manager) Validate(name, _ string, versions []string) error {
	if !slices.Contains(versions, pluginapi.Version) {
		return fmt.Errorf("manager version, %s, is not among plugin supported versions %v", pluginapi.Version, versions)
	}
	if !isExtended(name) {
		return fmt.Errorf("invalid name of device plugin socket: %w", invalidName(name))
	}
	return nil
}

// Register begins to use it.
func (m *Manager) Register(_ context.Context, name, endpoint string, _ []string) error {
	return m.connect(name, endpoint)
}

// Deregister ends that.
func (m *Manager) Deregister(name, endpoint string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.stocks[name]; s != nil && s.plugin != nil && s.plugin.endpoint == endpoint {
		s.plugin.cancel()
	}
}

// connect follows a plugin in place of an earlier one for the same resource, whose devices stay until this one tells of its own.
func (m *Manager) connect(resource, endpoint string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ctx.Err() != nil {
		return errors.New("the agent ends")
	}
	s := m.stocks[resource]
	if s == nil && len(m.stocks) >= resourcesMax {
		return fmt.Errorf("there are %d resources of device plugins on this node, which is the limit", resourcesMax)
	}
	if s == nil {
		s = &stock{devices: map[string]ledger.Device{}, gone: time.Now()}
		m.stocks[resource] = s
	}
	p, err := dial(m.ctx, resource, endpoint)
	if err != nil {
		return err
	}
	if s.plugin != nil {
		s.plugin.cancel()
	}
	s.plugin = p
	m.Logger.Info("a device plugin has registered", "resource", resource, "endpoint", endpoint)
	m.children.Go(func() { m.follow(p) })
	return nil
}
