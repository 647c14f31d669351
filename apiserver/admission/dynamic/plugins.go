package dynamic

import (
	"bytes"
	"io"
	"log/slog"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	mutatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	validatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	mutatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	validatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-base/featuregate"

	"github.com/setpoint-io/setpoint/apiserver/admission/manifests"
	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// Config is what the plugins decide by. All fields but the last three are required.
type Config struct {
	Store *storage.Store
	// Informers read the store and run; they have what Reads names.
	Informers informers.SharedInformerFactory
	// Client, Dynamic and Mapper ask this API itself, for what no informer has:
	// schemas, and parameters of kinds that users defined.
	Client  kubernetes.Interface
	Dynamic dynamic.Interface
	Mapper  meta.RESTMapper
	// Dial connects to webhooks that are named by Service.
	Dial utilnet.DialFunc
	// Authorizer answers expressions that ask what a user may do.
	Authorizer authorizer.Authorizer
	// Stop ends what the plugins run in the background.
	Stop <-chan struct{}
	// Configuration is what the administrator's file tells a plugin: who webhooks are called as, and folders with webhooks and
	// policies. Nil: nothing.
	Configuration func(plugin string) []byte
	// Server is the name of this server, for metrics.
	Server string
	// Logger is told of mistakes in these folders; nil: nobody is.
	Logger *slog.Logger
}

// reviews ask and store nothing: whoever could refuse them could keep everybody out.
var reviews = []schema.GroupResource{
	{Group: authenticationv1.GroupName, Resource: "selfsubjectreviews"},
	{Group: authenticationv1.GroupName, Resource: "tokenreviews"},
	{Group: authorizationv1.GroupName, Resource: "localsubjectaccessreviews"},
	{Group: authorizationv1.GroupName, Resource: "selfsubjectaccessreviews"},
	{Group: authorizationv1.GroupName, Resource: "selfsubjectrulesreviews"},
	{Group: authorizationv1.GroupName, Resource: "subjectaccessreviews"},
}

// New returns the plugins in upstream's order, which is the order of running. First is
// judged who may write policies with parameters.
func New(config Config) ([]admission.Interface, error) {
	loaders, err := manifests.Loaders(config.Logger)
	if err != nil {
		return nil, err
	}
	c := maker{Config: config, loaders: loaders}
	if c.static, err = c.check(); err != nil {
		return nil, err
	}
	return c.plugins(), nil
}

// Validate says what is wrong with the configurations of the plugins, and in the files that they name.
func Validate(configuration func(plugin string) []byte) error {
	_, err := maker{Config: Config{Configuration: configuration}}.check()
	return err
}

// check reads what the configurations name, and returns the plugins with a folder.
func (c maker) check() (static map[string]bool, err error) {
	loaders, err := manifests.Loaders(nil) // what is wrong now is returned
	if err != nil {
		return nil, err
	}
	static = map[string]bool{}
	for _, plugin := range configured {
		folder, err := manifests.Check(loaders, plugin, c.text(plugin))
		if err != nil {
			return nil, err
		}
		static[plugin] = folder != ""
	}
	return static, nil
}

// configured are the plugins that may have a configuration.
var configured = []string{"MutatingAdmissionPolicy", "MutatingAdmissionWebhook", "ValidatingAdmissionPolicy", "ValidatingAdmissionWebhook"}

// maker makes the plugins.
type maker struct {
	Config
	loaders *initializer.ManifestLoaders
	// static are the plugins with a folder: they are asked also while the API has nothing for them.
	static map[string]bool
}

func (c maker) text(plugin string) []byte {
	if c.Configuration == nil {
		return nil
	}
	return c.Configuration(plugin)
}

// file is the text as upstream's plugins read it: nil if there is none.
func (c maker) file(plugin string) io.Reader {
	if text := c.text(plugin); len(text) > 0 {
		return bytes.NewReader(text)
	}
	return nil
}

func (c maker) plugins() []admission.Interface {
	return []admission.Interface{
		c.paramAccess(),
		c.mutation("MutatingAdmissionPolicy", "mutatingadmissionpolicies", c.mutatingPolicies, admission.Create, admission.Update, admission.Connect),
		c.mutation("MutatingAdmissionWebhook", "mutatingwebhookconfigurations", c.mutatingWebhooks, everything...),
		c.validation("ValidatingAdmissionPolicy", "validatingadmissionpolicies", c.validatingPolicies, everything...),
		c.validation("ValidatingAdmissionWebhook", "validatingwebhookconfigurations", c.validatingWebhooks, everything...),
	}
}

// Reads are the kinds that the plugins read, once they are built.
func Reads() []schema.GroupVersionResource {
	reads := []schema.GroupVersionResource{corev1.SchemeGroupVersion.WithResource("namespaces")}
	for _, plural := range []string{
		"mutatingwebhookconfigurations", "validatingwebhookconfigurations",
		"validatingadmissionpolicies", "validatingadmissionpolicybindings", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings",
	} {
		reads = append(reads, admissionregistrationv1.SchemeGroupVersion.WithResource(plural))
	}
	return reads
}

var everything = []admission.Operation{admission.Create, admission.Update, admission.Delete, admission.Connect}

func (c maker) mutation(
	name, plural string,
	build func() (admission.MutationInterface, error),
	operations ...admission.Operation,
) admission.Interface {
	l := &lazyMutation{}
	l.name, l.Handler, l.table, l.build = name, admission.NewHandler(operations...), c.table(plural), build
	l.always = c.static[name]
	return l
}

func (c maker) validation(
	name, plural string,
	build func() (admission.ValidationInterface, error),
	operations ...admission.Operation,
) admission.Interface {
	l := &lazyValidation{}
	l.name, l.Handler, l.table, l.build = name, admission.NewHandler(operations...), c.table(plural), build
	l.always = c.static[name]
	return l
}

func (c maker) table(plural string) *storage.Table {
	return c.Store.Table(admissionregistrationv1.SchemeGroupVersion.WithResource(plural))
}

func (c maker) mutatingWebhooks() (admission.MutationInterface, error) {
	p, err := mutatingwebhook.NewMutatingWebhook(c.file("MutatingAdmissionWebhook"))
	if err != nil {
		return nil, err
	}
	return p, c.equipWebhooks(p)
}

func (c maker) validatingWebhooks() (admission.ValidationInterface, error) {
	p, err := validatingwebhook.NewValidatingAdmissionWebhook(c.file("ValidatingAdmissionWebhook"))
	if err != nil {
		return nil, err
	}
	return p, c.equipWebhooks(p)
}

func (c maker) mutatingPolicies() (admission.MutationInterface, error) {
	p, err := mutatingpolicy.NewPlugin(c.file("MutatingAdmissionPolicy"))
	if err != nil {
		return nil, err
	}
	return p, c.equipPolicies(p)
}

func (c maker) validatingPolicies() (admission.ValidationInterface, error) {
	p, err := validatingpolicy.NewPlugin(c.file("ValidatingAdmissionPolicy"))
	if err != nil {
		return nil, err
	}
	return p, c.equipPolicies(p)
}

// plugin is what upstream's plugins are given, all of them.
type plugin interface {
	admission.InitializationValidator
	SetExternalKubeClientSet(kubernetes.Interface)
	SetExternalKubeInformerFactory(informers.SharedInformerFactory)
	SetUnconditionalAuthorizer(authorizer.UnconditionalAuthorizer)
	SetExcludedAdmissionResources([]schema.GroupResource)
	SetDrainedNotification(<-chan struct{})
	SetManifestLoaders(*initializer.ManifestLoaders)
	SetAPIServerID(string)
}

func (c maker) equip(p plugin) error {
	p.SetExternalKubeClientSet(c.Client)
	p.SetExternalKubeInformerFactory(c.Informers)
	p.SetUnconditionalAuthorizer(c.Authorizer)
	p.SetExcludedAdmissionResources(reviews)
	p.SetDrainedNotification(c.Stop)
	p.SetManifestLoaders(c.loaders)
	p.SetAPIServerID(c.Server)
	return p.ValidateInitialization()
}

func (c maker) equipWebhooks(p interface {
	plugin
	SetServiceResolver(webhook.ServiceResolver)
	SetAuthenticationInfoResolverWrapper(webhook.AuthenticationInfoResolverWrapper)
	InspectFeatureGates(featuregate.FeatureGate)
}) error {
	p.SetServiceResolver(NewServiceResolver(c.Store))
	p.SetAuthenticationInfoResolverWrapper(DialServices(c.Dial))
	p.InspectFeatureGates(utilfeature.DefaultFeatureGate)
	return c.equip(p)
}

func (c maker) equipPolicies(p interface {
	plugin
	SetEnabled(bool)
	SetDynamicClient(dynamic.Interface)
	SetRESTMapper(meta.RESTMapper)
}) error {
	p.SetEnabled(true)
	p.SetDynamicClient(c.Dynamic)
	p.SetRESTMapper(c.Mapper)
	return c.equip(p)
}
