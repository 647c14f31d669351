package envtest

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// The variables of controller-runtime's envtest that are honoured.
const (
	useExistingVariable  = "USE_EXISTING_CLUSTER"
	startTimeoutVariable = "KUBEBUILDER_CONTROLPLANE_START_TIMEOUT"
	stopTimeoutVariable  = "KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT"
	attachVariable       = "KUBEBUILDER_ATTACH_CONTROL_PLANE_OUTPUT"

	defaultTimeout = 20 * time.Second
)

// The client of Environment.Config asks as fast as that of controller-runtime's.
const (
	clientQPS   = 1000
	clientBurst = 2000
)

// Environment is a control plane for a suite, with the CRDs and webhooks that it lists. Its fields are those of
// controller-runtime's Environment.
type Environment struct {
	// ControlPlane says how the API is served; the zero value is fine.
	ControlPlane ControlPlane
	// Scheme says which kinds have conversion webhooks; nil: client-go's.
	Scheme *runtime.Scheme
	// Config is the administrator's client, and KubeConfig the same as a file. Start fills them in. With
	// UseExistingCluster, Config may say which cluster.
	Config     *rest.Config
	KubeConfig []byte
	// CRDInstallOptions and WebhookInstallOptions are what to install; Start fills in what was installed, and where the
	// suite must serve its webhooks.
	CRDInstallOptions     CRDInstallOptions
	WebhookInstallOptions WebhookInstallOptions
	// ErrorIfCRDPathMissing makes Start fail if one of the paths is not there.
	ErrorIfCRDPathMissing bool
	// CRDs and CRDDirectoryPaths are installed beside those of CRDInstallOptions.
	CRDs              []*apiextensionsv1.CustomResourceDefinition
	CRDDirectoryPaths []string
	// DownloadBinaryAssets and the three below have no effect, which is logged: there are no programs to find.
	DownloadBinaryAssets         bool
	DownloadBinaryAssetsVersion  string
	DownloadBinaryAssetsIndexURL string
	BinaryAssetsDirectory        string
	// UseExistingCluster takes the cluster of Config, or of the kubeconfig, in place of a new one.
	UseExistingCluster *bool
	// ControlPlaneStartTimeout and ControlPlaneStopTimeout are how long starting and stopping may take; 0: 20 seconds,
	// or what KUBEBUILDER_CONTROLPLANE_START_TIMEOUT and _STOP_TIMEOUT say.
	ControlPlaneStartTimeout time.Duration
	ControlPlaneStopTimeout  time.Duration
	// AttachControlPlaneOutput connects the output of the API server to that of the process.
	AttachControlPlaneOutput bool
}

// Start starts the control plane, installs the CRDs and webhooks, and returns the administrator's client. Stop must be
// called, also after an error.
func (e *Environment) Start() (*rest.Config, error) {
	if !e.usesExisting() {
		if err := e.startControlPlane(); err != nil {
			return nil, fmt.Errorf("unable to start control plane itself: %w", err)
		}
	}
	there := e.asExisting()
	config, err := there.Start()
	e.Scheme, e.Config, e.KubeConfig, e.CRDs = there.Scheme, there.Config, there.KubeConfig, there.CRDs
	e.CRDInstallOptions, e.WebhookInstallOptions = there.CRDInstallOptions, there.WebhookInstallOptions
	return config, err
}

// Stop ends the control plane, and everything is gone. Of an existing cluster it takes away the CRDs, if
// CRDInstallOptions.CleanUpAfterUse says so.
func (e *Environment) Stop() error {
	return errors.Join(e.asExisting().Stop(), e.ControlPlane.Stop())
}

// AddUser makes a user, whose rights are those that RBAC gives it and its groups. The base says how its client asks.
func (e *Environment) AddUser(user User, base *rest.Config) (*AuthenticatedUser, error) {
	return e.ControlPlane.AddUser(user, base)
}

// asExisting is controller-runtime's environment of the control plane that runs: what it does to a cluster, it does
// itself.
func (e *Environment) asExisting() *envtest.Environment {
	return &envtest.Environment{
		UseExistingCluster: new(true), Scheme: e.Scheme, Config: e.Config, KubeConfig: e.KubeConfig,
		CRDInstallOptions: e.CRDInstallOptions, WebhookInstallOptions: e.WebhookInstallOptions,
		ErrorIfCRDPathMissing: e.ErrorIfCRDPathMissing, CRDs: e.CRDs, CRDDirectoryPaths: e.CRDDirectoryPaths,
	}
}

func (e *Environment) usesExisting() bool {
	if e.UseExistingCluster != nil {
		return *e.UseExistingCluster
	}
	return strings.EqualFold(os.Getenv(useExistingVariable), "true")
}

func (e *Environment) startControlPlane() error {
	e.warn()
	api := e.ControlPlane.GetAPIServer()
	if e.AttachControlPlaneOutput || os.Getenv(attachVariable) == "true" {
		if api.Out == nil {
			api.Out = os.Stdout
		}
		if api.Err == nil {
			api.Err = os.Stderr
		}
	}
	var err error
	if e.ControlPlaneStartTimeout, err = timeout(e.ControlPlaneStartTimeout, startTimeoutVariable); err != nil {
		return err
	}
	if e.ControlPlaneStopTimeout, err = timeout(e.ControlPlaneStopTimeout, stopTimeoutVariable); err != nil {
		return err
	}
	api.StartTimeout, api.StopTimeout = e.ControlPlaneStartTimeout, e.ControlPlaneStopTimeout
	if err := e.ControlPlane.Start(); err != nil {
		return err
	}
	e.Config, err = e.ControlPlane.newConfig(User{Name: "admin", Groups: []string{mastersGroup}}, &rest.Config{QPS: clientQPS, Burst: clientBurst})
	return err
}

// warn names what has no effect.
func (e *Environment) warn() {
	if e.DownloadBinaryAssets || e.DownloadBinaryAssetsVersion != "" || e.DownloadBinaryAssetsIndexURL != "" || e.BinaryAssetsDirectory != "" {
		log.Log.WithName("test-env").Info("setpoint runs in this process: DownloadBinaryAssets and BinaryAssetsDirectory have no effect")
	}
}

func timeout(given time.Duration, variable string) (time.Duration, error) {
	text := os.Getenv(variable)
	switch {
	case given != 0:
		return given, nil
	case text == "":
		return defaultTimeout, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", variable, err)
	}
	return d, nil
}
