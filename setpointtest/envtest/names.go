package envtest

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// The types of controller-runtime's envtest that are as they are.
type (
	// APIServer has the options of kube-apiserver.
	APIServer = envtest.APIServer
	// Etcd has those of etcd, which is not there.
	Etcd = envtest.Etcd
	// CRDInstallOptions and WebhookInstallOptions are what to install.
	CRDInstallOptions     = envtest.CRDInstallOptions
	WebhookInstallOptions = envtest.WebhookInstallOptions
	// User is a user to be made, and AuthenticatedUser one that was.
	User              = envtest.User
	AuthenticatedUser = envtest.AuthenticatedUser
	// Authn makes users.
	Authn = envtest.Authn
	// SecureServing and ListenAddr are where the API server listens.
	SecureServing = envtest.SecureServing
	ListenAddr    = envtest.ListenAddr
	// Arguments are flags, and Arg is one of them.
	Arguments = envtest.Arguments
	Arg       = envtest.Arg
)

// EmptyArguments are no flags.
func EmptyArguments() *Arguments { return envtest.EmptyArguments() }

// InstallCRDs installs CRDs and waits until they are served.
func InstallCRDs(config *rest.Config, options CRDInstallOptions) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return envtest.InstallCRDs(config, options)
}

// ReadCRDFiles adds the CRDs of the paths to the options.
func ReadCRDFiles(options *CRDInstallOptions) error { return envtest.ReadCRDFiles(options) }

// CreateCRDs creates or updates CRDs.
func CreateCRDs(config *rest.Config, crds []*apiextensionsv1.CustomResourceDefinition) error {
	return envtest.CreateCRDs(config, crds)
}

// WaitForCRDs waits until CRDs are served.
func WaitForCRDs(config *rest.Config, crds []*apiextensionsv1.CustomResourceDefinition, options CRDInstallOptions) error {
	return envtest.WaitForCRDs(config, crds, options)
}

// UninstallCRDs deletes CRDs.
func UninstallCRDs(config *rest.Config, options CRDInstallOptions) error {
	return envtest.UninstallCRDs(config, options)
}

// WaitForWebhooks waits until webhook configurations are there.
func WaitForWebhooks(config *rest.Config, mutating []*admissionv1.MutatingWebhookConfiguration,
	validating []*admissionv1.ValidatingWebhookConfiguration, options WebhookInstallOptions,
) error {
	return envtest.WaitForWebhooks(config, mutating, validating, options)
}

// SetupEnvtestDefaultBinaryAssetsDirectory is where setup-envtest keeps programs, which nobody needs here.
func SetupEnvtestDefaultBinaryAssetsDirectory() (string, error) {
	return envtest.SetupEnvtestDefaultBinaryAssetsDirectory()
}
