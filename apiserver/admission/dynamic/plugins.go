package dynamic

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/admission"
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

	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// Config is what the plugins decide by. All fields are required.
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
func New(c Config) []admission.Interface {
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

func (c Config) mutation(
	name, plural string,
	build func() (admission.MutationInterface, error),
	operations ...admission.Operation,
) admission.Interface {
	l := &lazyMutation{}
	l.name, l.Handler, l.table, l.build = name, admission.NewHandler(operations...), c.table(plural), build
	return l
}

func (c Config) validation(
	name, plural string,
	build func() (admission.ValidationInterface, error),
	operations ...admission.Operation,
) admission.Interface {
	l := &lazyValidation{}
	l.name, l.Handler, l.table, l.build = name, admission.NewHandler(operations...), c.table(plural), build
	return l
}

func (c Config) table(plural string) *storage.Table {
	return c.Store.Table(admissionregistrationv1.SchemeGroupVersion.WithResource(plural))
}

func (c Config) mutatingWebhooks() (admission.MutationInterface, error) {
	p, err := mutatingwebhook.NewMutatingWebhook(nil)
	if err != nil {
		return nil, err
	}
	return p, c.equipWebhooks(p)
}

func (c Config) validatingWebhooks() (admission.ValidationInterface, error) {
	p, err := validatingwebhook.NewValidatingAdmissionWebhook(nil)
	if err != nil {
		return nil, err
	}
	return p, c.equipWebhooks(p)
}

func (c Config) mutatingPolicies() (admission.MutationInterface, error) {
	p, err := mutatingpolicy.NewPlugin(nil)
	if err != nil {
		return nil, err
	}
	return p, c.equipPolicies(p)
}

func (c Config) validatingPolicies() (admission.ValidationInterface, error) {
	p, err := validatingpolicy.NewPlugin(nil)
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
}

func (c Config) equip(p plugin) error {
	p.SetExternalKubeClientSet(c.Client)
	p.SetExternalKubeInformerFactory(c.Informers)
	p.SetUnconditionalAuthorizer(c.Authorizer)
	p.SetExcludedAdmissionResources(reviews)
	return p.ValidateInitialization()
}

func (c Config) equipWebhooks(p interface {
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

func (c Config) equipPolicies(p interface {
	plugin
	SetEnabled(bool)
	SetDynamicClient(dynamic.Interface)
	SetRESTMapper(meta.RESTMapper)
	SetDrainedNotification(<-chan struct{})
}) error {
	p.SetEnabled(true)
	p.SetDynamicClient(c.Dynamic)
	p.SetRESTMapper(c.Mapper)
	p.SetDrainedNotification(c.Stop)
	return c.equip(p)
}
