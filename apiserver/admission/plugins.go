package admission

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/setpoint-io/setpoint/apiserver/admission/choice"
	"github.com/setpoint-io/setpoint/apiserver/admission/timing"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/internal/reserved"
)

// Config is what the plugins decide by.
type Config struct {
	// Store holds the objects that plugins read.
	Store *storage.Store
	// Authorizer judges what a plugin asks beyond the request, such as who may sign.
	Authorizer authorizer.Authorizer
	// ExternalIPs says whose Services may have external addresses.
	ExternalIPs ExternalIPs
	// Reserved knows what no object may claim; nil: the usual ports of the cluster.
	Reserved *reserved.Book
	// AddressPool: Services of the type LoadBalancer get addresses of a pool, also where every node is simulated.
	AddressPool bool
	// Added are plugins that run beside the default ones, by upstream's names.
	Added map[string]admission.Interface
	// PodSecurity is the configuration of that plugin, as text; nil: upstream's default.
	PodSecurity []byte
	// Disabled are plugins, by upstream's names, that are left out.
	Disabled []string
	// Last run after the plugins of this package, in order: what users configure. One with a method Name is measured under that.
	Last []admission.Interface
	// Metrics are told how long plugins take; nil: nobody is.
	Metrics *timing.Metrics
}

// known is a plugin under upstream's name.
type known struct {
	name   string
	plugin admission.Interface
}

// New returns the chain of all plugins.
func New(config Config) (admission.Interface, error) {
	if err := config.ExternalIPs.Validate(); err != nil {
		return nil, err
	}
	plugins, err := list(config)
	if err != nil {
		return nil, err
	}
	if plugins, err = without(config.Disabled, plugins); err != nil {
		return nil, err
	}
	return newChain(plugins, config.Metrics), nil
}

// list returns the plugins in the order in which they run. A new plugin is one file and one line.
func list(config Config) ([]known, error) {
	store, added := config.Store, config.Added
	podSecurity, err := newPodSecurity(store, config.PodSecurity)
	if err != nil {
		return nil, err
	}
	plugins := []known{
		{"NamespaceLifecycle", newNamespaceLifecycle(store)},
		{"LimitPodHardAntiAffinityTopology", added["LimitPodHardAntiAffinityTopology"]},
		{"LimitRanger", newLimitRanger(store)},
		{"ServiceAccount", newServiceAccount(store)},
		{"NodeRestriction", newNodeRestriction(store, config.Authorizer, config.Reserved)},
		{"TaintNodesByCondition", taintNodesByCondition{}},
		{"AlwaysPullImages", added["AlwaysPullImages"]},
		{"ImagePolicyWebhook", added["ImagePolicyWebhook"]},
		{"PodSecurity", podSecurity},
		{"PodNodeSelector", added["PodNodeSelector"]},
		{"Priority", newPriority(store)},
		{"DefaultTolerationSeconds", defaultTolerationSeconds{}},
		{"PodTolerationRestriction", added["PodTolerationRestriction"]},
		{"EventRateLimit", added["EventRateLimit"]},
		{"ExtendedResourceToleration", added["ExtendedResourceToleration"]},
		{"DefaultStorageClass", newDefaultStorageClass(store)},
		{"StorageObjectInUseProtection", storageObjectInUseProtection{}},
		{"OwnerReferencesPermissionEnforcement", added["OwnerReferencesPermissionEnforcement"]},
		{"PersistentVolumeClaimResize", newClaimResize(store)},
		{"RuntimeClass", newRuntimeClass(store)},
		{"CertificateApproval", certificateApproval(config.Authorizer)},
		{"CertificateSigning", certificateSigning(config.Authorizer)},
		{"PodCertificateSigning", podCertificateSigning{authorizer: config.Authorizer}},
		{"ClusterTrustBundleAttest", newTrustBundleAttest(config.Authorizer)},
		{"CertificateSubjectRestriction", certificateSubjectRestriction{}},
		{"DefaultIngressClass", newDefaultIngressClass(store)},
		{"DenyServiceExternalIPs", denyServiceExternalIPs{config.ExternalIPs}},
		{"PodTopologyLabels", newPodTopologyLabels(store)},
		{"NodeDeclaredFeatureValidator", newNodeFeatures(store)},
		{"PodResizeValidator", newPodResize(store)},
		{"AdminAccess", newAdminAccess(store)},
		{"ClaimStatus", claimStatus{authorizer: config.Authorizer}},
		{"ReservedAddresses", newReservedAddresses(store, config.Reserved)},
		{"Attended", newAttended(store, config.AddressPool)},
	}
	for _, p := range config.Last {
		plugins = append(plugins, known{pluginName(p), p})
	}
	return slices.DeleteFunc(plugins, func(k known) bool { return k.plugin == nil }), nil // those that are not added
}

// without leaves out the disabled ones. A name that none of upstream's plugins has is a mistake; one that does not run is left out already.
func without(disabled []string, all []known) (plugins []known, err error) {
	var unknown []string
	for _, name := range disabled {
		p, upstream := choice.Find(name)
		here := slices.ContainsFunc(all, func(k known) bool { return k.name == name })
		if !upstream || p.Default == choice.On && !here {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		return nil, fmt.Errorf("admission plugins cannot be disabled that are not there: %s", strings.Join(unknown, ", "))
	}
	return slices.DeleteFunc(all, func(k known) bool { return slices.Contains(disabled, k.name) }), nil
}

// chain runs its plugins in order and stops at the first refusal.
type chain struct {
	// mutating and validating are what handles each operation.
	mutating   map[admission.Operation]*half[admission.MutationInterface]
	validating map[admission.Operation]*half[admission.ValidationInterface]
}

// half is what admits, or what validates, requests of one operation.
type half[P any] struct {
	plugins []timed[P]
	timer   *timing.Timer // of all of them
}

type timed[P any] struct {
	plugin P
	timer  *timing.Timer
}

// each calls the plugins in order, until one refuses.
func (h *half[P]) each(call func(P) error) error {
	return h.timer.Time(func() error {
		for _, p := range h.plugins {
			if err := p.timer.Time(func() error { return call(p.plugin) }); err != nil {
				return err
			}
		}
		return nil
	})
}

var (
	_ admission.MutationInterface   = (*chain)(nil)
	_ admission.ValidationInterface = (*chain)(nil)
)

func newChain(plugins []known, metrics *timing.Metrics) *chain {
	c := &chain{
		mutating:   map[admission.Operation]*half[admission.MutationInterface]{},
		validating: map[admission.Operation]*half[admission.ValidationInterface]{},
	}
	for _, op := range []admission.Operation{admission.Create, admission.Update, admission.Delete, admission.Connect} {
		c.mutating[op] = halfOf[admission.MutationInterface](plugins, metrics, timing.Admit, op)
		c.validating[op] = halfOf[admission.ValidationInterface](plugins, metrics, timing.Validate, op)
	}
	return c
}

// halfOf takes the plugins that do their part in one half for the operation.
func halfOf[P any](plugins []known, metrics *timing.Metrics, of string, op admission.Operation) *half[P] {
	h := &half[P]{timer: metrics.Step(of, op)}
	for _, p := range plugins {
		if plugin, ok := p.plugin.(P); ok && p.plugin.Handles(op) {
			h.plugins = append(h.plugins, timed[P]{plugin, metrics.Plugin(p.name, of, op)})
		}
	}
	return h
}

// pluginName is that of a plugin which others have made.
func pluginName(p admission.Interface) string {
	if named, ok := p.(interface{ Name() string }); ok {
		return named.Name()
	}
	return "Other"
}

// Handles implements admission.Interface.
func (c *chain) Handles(op admission.Operation) bool {
	m, v := c.mutating[op], c.validating[op]
	return m != nil && len(m.plugins)+len(v.plugins) > 0
}

// Admit implements admission.MutationInterface. If a plugin that changed the object
// asks for it, all run once more: each must have seen what the others did.
func (c *chain) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if err := c.admit(ctx, a, o); err != nil {
		return err
	}
	again := a.GetReinvocationContext()
	if !again.ShouldReinvoke() {
		return nil
	}
	again.SetIsReinvoke()
	return c.admit(ctx, a, o)
}

func (c *chain) admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	return c.mutating[a.GetOperation()].each(func(p admission.MutationInterface) error { return p.Admit(ctx, a, o) })
}

// Validate implements admission.ValidationInterface.
func (c *chain) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	return c.validating[a.GetOperation()].each(func(p admission.ValidationInterface) error { return p.Validate(ctx, a, o) })
}
