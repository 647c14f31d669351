package dynamic

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	mutatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	validatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	mutatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	validatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// Config is what the plugins decide by. All fields are required.
type Config struct {
	Store *storage.Store
	// Informers read the store and run.
	Informers informers.SharedInformerFactory
	// Client, Dynamic and Mapper ask this API itself, for what no informer has:
	// schemas, and parameters of kinds that users defined.
	Client  kubernetes.Interface
	Dynamic dynamic.Interface
	Mapper  meta.RESTMapper
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

// New returns the plugins in upstream's order, which is the order of running.
func New(c Config) []admission.Interface {
	return []admission.Interface{
		c.mutation("mutatingadmissionpolicies", c.mutatingPolicies, admission.Create, admission.Update, admission.Connect),
		c.mutation("mutatingwebhookconfigurations", c.mutatingWebhooks, everything...),
		c.validation("validatingadmissionpolicies", c.validatingPolicies, everything...),
		c.validation("validatingwebhookconfigurations", c.validatingWebhooks, everything...),
	}
}

var everything = []admission.Operation{admission.Create, admission.Update, admission.Delete, admission.Connect}

func (c Config) mutation(plural string, build func() (admission.MutationInterface, error), operations ...admission.Operation) admission.Interface {
	l := &lazyMutation{}
	l.Handler, l.table, l.build = admission.NewHandler(operations...), c.table(plural), build
	return l
}

func (c Config) validation(plural string, build func() (admission.ValidationInterface, error), operations ...admission.Operation) admission.Interface {
	l := &lazyValidation{}
	l.Handler, l.table, l.build = admission.NewHandler(operations...), c.table(plural), build
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
	p.SetServiceResolver(NewServiceResolver(c.Store))
	p.SetExternalKubeClientSet(c.Client)
	p.SetExternalKubeInformerFactory(c.Informers)
	p.SetUnconditionalAuthorizer(c.Authorizer)
	p.SetExcludedAdmissionResources(reviews)
	p.InspectFeatureGates(utilfeature.DefaultFeatureGate)
	return p, p.ValidateInitialization()
}

func (c Config) validatingWebhooks() (admission.ValidationInterface, error) {
	p, err := validatingwebhook.NewValidatingAdmissionWebhook(nil)
	if err != nil {
		return nil, err
	}
	p.SetServiceResolver(NewServiceResolver(c.Store))
	p.SetExternalKubeClientSet(c.Client)
	p.SetExternalKubeInformerFactory(c.Informers)
	p.SetUnconditionalAuthorizer(c.Authorizer)
	p.SetExcludedAdmissionResources(reviews)
	p.InspectFeatureGates(utilfeature.DefaultFeatureGate)
	return p, p.ValidateInitialization()
}

func (c Config) mutatingPolicies() (admission.MutationInterface, error) {
	p, err := mutatingpolicy.NewPlugin(nil)
	if err != nil {
		return nil, err
	}
	p.SetEnabled(true)
	p.SetExternalKubeClientSet(c.Client)
	p.SetExternalKubeInformerFactory(c.Informers)
	p.SetDynamicClient(c.Dynamic)
	p.SetRESTMapper(c.Mapper)
	p.SetUnconditionalAuthorizer(c.Authorizer)
	p.SetExcludedAdmissionResources(reviews)
	p.SetDrainedNotification(c.Stop)
	return p, p.ValidateInitialization()
}

func (c Config) validatingPolicies() (admission.ValidationInterface, error) {
	p, err := validatingpolicy.NewPlugin(nil)
	if err != nil {
		return nil, err
	}
	p.SetEnabled(true)
	p.SetExternalKubeClientSet(c.Client)
	p.SetExternalKubeInformerFactory(c.Informers)
	p.SetDynamicClient(c.Dynamic)
	p.SetRESTMapper(c.Mapper)
	p.SetUnconditionalAuthorizer(c.Authorizer)
	p.SetExcludedAdmissionResources(reviews)
	p.SetDrainedNotification(c.Stop)
	return p, p.ValidateInitialization()
}
