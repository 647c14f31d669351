package envtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/setpoint-io/setpoint"
	"github.com/setpoint-io/setpoint/cmd/setpoint/standin"
)

// mastersGroup may do everything.
const mastersGroup = "system:masters"

// ControlPlane is the API server of an Environment.
type ControlPlane struct {
	// APIServer has the options of kube-apiserver: its port, folder of certificates, flags (Configure), users (Authn),
	// output and timeouts. Path has no effect: no program is started.
	APIServer *APIServer
	// Etcd has no effect: the API server keeps its own store, in memory.
	Etcd *Etcd
	// KubectlPath is the kubectl of AuthenticatedUser.Kubectl; "": TEST_ASSET_KUBECTL, that of KUBEBUILDER_ASSETS, or the
	// first one in PATH.
	KubectlPath string

	cluster *setpoint.Cluster
	cancel  context.CancelFunc
	// madeDir: CertDir is ours to remove.
	madeDir bool
}

// GetAPIServer returns the API server, which it makes if there is none.
func (p *ControlPlane) GetAPIServer() *APIServer {
	if p.APIServer == nil {
		p.APIServer = &APIServer{}
	}
	return p.APIServer
}

// Start starts the API server and returns when it serves.
func (p *ControlPlane) Start() error {
	if p.cluster != nil {
		return errors.New("the control plane runs already: call Stop before")
	}
	if p.Etcd == nil {
		p.Etcd = &Etcd{}
	}
	args, err := p.prepare()
	if err == nil {
		err = p.run(args)
	}
	if err != nil {
		return errors.Join(err, p.Stop())
	}
	return nil
}

// prepare fills in what the suite left open, and returns the flags.
func (p *ControlPlane) prepare() ([]string, error) {
	api := p.GetAPIServer()
	if p.KubectlPath == "" {
		p.KubectlPath = kubectl()
	}
	if err := p.makeDir(); err != nil {
		return nil, err
	}
	if err := listenAddress(api); err != nil {
		return nil, err
	}
	if err := serveWith(api); err != nil {
		return nil, err
	}
	if api.SecureServing.Authn == nil {
		users, err := newCertificates()
		if err != nil {
			return nil, err
		}
		api.SecureServing.Authn = users
	}
	if err := api.Authn.Configure(api.CertDir, api.Configure()); err != nil {
		return nil, err
	}
	if err := api.Authn.Start(); err != nil {
		return nil, err
	}
	return arguments(api)
}

func (p *ControlPlane) makeDir() (err error) {
	if p.APIServer.CertDir == "" {
		p.APIServer.CertDir, err = os.MkdirTemp("", "setpoint-envtest-")
		p.madeDir = true
	}
	return err
}

func (p *ControlPlane) run(args []string) error {
	api := p.APIServer
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	limit := orDefault(api.StartTimeout)
	late := time.AfterFunc(limit, cancel)
	cluster, err := standin.StartAPIServer(ctx, args, orElse(api.Out, io.Discard), orElse(api.Err, os.Stderr))
	p.cluster = cluster
	switch {
	case !late.Stop():
		return fmt.Errorf("timeout waiting for the API server: it does not serve after %v", limit)
	case err != nil:
		return err
	case cluster == nil:
		return errors.New("the flags of the API server ask for help only")
	}
	return nil
}

// Stop ends the API server.
func (p *ControlPlane) Stop() (err error) {
	if p.cluster != nil {
		err = within(orDefault(p.APIServer.StopTimeout), p.cluster.Stop)
		p.cluster = nil
	}
	if p.cancel != nil {
		p.cancel()
	}
	if p.APIServer != nil && p.APIServer.Authn != nil {
		err = errors.Join(err, p.APIServer.Authn.Stop())
	}
	if p.madeDir {
		err = errors.Join(err, os.RemoveAll(p.APIServer.CertDir))
		p.APIServer.CertDir, p.madeDir = "", false // another Start makes another
	}
	return err
}

func within(limit time.Duration, stop func() error) error {
	done := make(chan error, 1)
	go func() { done <- stop() }()
	select {
	case err := <-done:
		return err
	case <-time.After(limit):
		return fmt.Errorf("timeout waiting for the API server to stop: it runs after %v", limit)
	}
}

// AddUser makes a user of the API server, by its Authn.
func (p *ControlPlane) AddUser(user User, base *rest.Config) (*AuthenticatedUser, error) {
	return (&envtest.ControlPlane{APIServer: p.GetAPIServer(), KubectlPath: p.KubectlPath}).AddUser(user, base)
}

func (p *ControlPlane) newConfig(user User, base *rest.Config) (*rest.Config, error) {
	added, err := p.AddUser(user, base)
	if err != nil {
		return nil, err
	}
	return added.Config(), nil
}

// RESTClientConfig is a client that may do everything.
//
// Deprecated: use AddUser and AuthenticatedUser.Config, as in controller-runtime.
func (p *ControlPlane) RESTClientConfig() (*rest.Config, error) {
	return p.newConfig(User{Name: "default", Groups: []string{mastersGroup}}, nil)
}

// APIURL is where the API server listens.
//
// Deprecated: use APIServer.SecureServing.URL, as in controller-runtime.
func (p *ControlPlane) APIURL() *url.URL { return p.APIServer.URL }

// arguments are the flags of the API server: those of Configure, or of the older Args, whose templates name fields of it.
func arguments(api *APIServer) ([]string, error) {
	defaults := map[string][]string{"authorization-mode": {"RBAC"}}
	if len(api.Args) == 0 { // older suites have them
		defaults["disable-admission-plugins"] = []string{"ServiceAccount"}
	}
	// What these say is known, whatever Args leave out.
	defaults["cert-dir"], defaults["bind-address"], defaults["secure-port"] = []string{api.CertDir}, []string{api.SecureServing.Address}, []string{api.SecureServing.Port}
	var rest []string
	for _, text := range api.Args {
		arg, err := render(text, api)
		if err != nil {
			return nil, err
		}
		name, value, isFlag := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		if isFlag && strings.HasPrefix(arg, "--") {
			api.Configure().AppendNoDefaults(name, value)
		} else if arg != "" {
			rest = append(rest, arg)
		}
	}
	return append(api.Configure().AsStrings(defaults), rest...), nil
}

func render(text string, api *APIServer) (string, error) {
	parsed, err := template.New(text).Parse(text)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	err = parsed.Execute(&b, api)
	return b.String(), err
}

// kubectl is where controller-runtime looks for it, then PATH.
func kubectl() string {
	if path := os.Getenv("TEST_ASSET_KUBECTL"); path != "" {
		return path
	}
	if dir := os.Getenv("KUBEBUILDER_ASSETS"); dir != "" {
		return filepath.Join(dir, standin.Kubectl)
	}
	path, _ := exec.LookPath(standin.Kubectl)
	return path
}

func orElse(given, other io.Writer) io.Writer {
	if given == nil {
		return other
	}
	return given
}

func orDefault(d time.Duration) time.Duration {
	if d == 0 {
		return defaultTimeout
	}
	return d
}
