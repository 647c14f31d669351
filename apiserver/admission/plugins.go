package admission

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"

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
	// Disabled are plugins, by upstream's names, that are left out.
	Disabled []string
	// Last run after the plugins of this package, in order: what users configure.
	Last []admission.Interface
}

// known is a plugin under upstream's name.
type known struct {
	name   string
	plugin admission.Interface
}

// New returns the chain of all plugins. A new plugin is one file and one line.
func New(config Config) (admission.Interface, error) {
	if err := config.ExternalIPs.Validate(); err != nil {
		return nil, err
	}
	store := config.Store
	podSecurity, err := newPodSecurity(store)
	if err != nil {
		return nil, err
	}
	plugins, err := without(config.Disabled, []known{
		{"NamespaceLifecycle", newNamespaceLifecycle(store)},
		{"LimitRanger", newLimitRanger(store)},
		{"ServiceAccount", newServiceAccount(store)},
		{"NodeRestriction", newNodeRestriction(store, config.Authorizer, config.Reserved)},
		{"TaintNodesByCondition", taintNodesByCondition{}},
		{"PodSecurity", podSecurity},
		{"Priority", newPriority(store)},
		{"DefaultTolerationSeconds", defaultTolerationSeconds{}},
		{"DefaultStorageClass", newDefaultStorageClass(store)},
		{"StorageObjectInUseProtection", storageObjectInUseProtection{}},
		{"PersistentVolumeClaimResize", newClaimResize(store)},
		{"RuntimeClass", newRuntimeClass(store)},
		{"CertificateApproval", certificateApproval(config.Authorizer)},
		{"CertificateSigning", certificateSigning(config.Authorizer)},
		{"PodCertificateSigning", podCertificateSigning{authorizer: config.Authorizer}},
		{"ClusterTrustBundleAttest", newTrustBundleAttest(config.Authorizer)},
		{"CertificateSubjectRestriction", certificateSubjectRestriction{}},
		{"DefaultIngressClass", newDefaultIngressClass(store)},
		{"PodTopologyLabels", newPodTopologyLabels(store)},
		{"AdminAccess", newAdminAccess(store)},
		{"ClaimStatus", claimStatus{authorizer: config.Authorizer}},
		{"DenyServiceExternalIPs", denyServiceExternalIPs{config.ExternalIPs}},
		{"ReservedAddresses", newReservedAddresses(store, config.Reserved)},
		{"Attended", newAttended(store)},
	})
	if err != nil {
		return nil, err
	}
	return newChain(append(plugins, config.Last...)), nil
}

// without leaves out the disabled ones; a name that no plugin has is a mistake.
func without(disabled []string, all []known) (plugins []admission.Interface, err error) {
	unknown := slices.Clone(disabled)
	for _, p := range all {
		if slices.Contains(disabled, p.name) {
			unknown = slices.DeleteFunc(unknown, func(name string) bool { return name == p.name })
			continue
		}
		plugins = append(plugins, p.plugin)
	}
	if len(unknown) > 0 {
		return nil, fmt.Errorf("admission plugins cannot be disabled that are not there: %s", strings.Join(unknown, ", "))
	}
	return plugins, nil
}

// chain runs its plugins in order and stops at the first refusal.
type chain struct {
	plugins []admission.Interface
	// mutating and validating are what handles each operation.
	mutating   map[admission.Operation][]admission.MutationInterface
	validating map[admission.Operation][]admission.ValidationInterface
}

var (
	_ admission.MutationInterface   = (*chain)(nil)
	_ admission.ValidationInterface = (*chain)(nil)
)

func newChain(plugins []admission.Interface) *chain {
	c := &chain{
		plugins:    plugins,
		mutating:   map[admission.Operation][]admission.MutationInterface{},
		validating: map[admission.Operation][]admission.ValidationInterface{},
	}
	for _, p := range plugins {
		for _, op := range []admission.Operation{admission.Create, admission.Update, admission.Delete, admission.Connect} {
			if !p.Handles(op) {
				continue
			}
			if m, ok := p.(admission.MutationInterface); ok {
				c.mutating[op] = append(c.mutating[op], m)
			}
			if v, ok := p.(admission.ValidationInterface); ok {
				c.validating[op] = append(c.validating[op], v)
			}
		}
	}
	return c
}

// Handles implements admission.Interface.
func (c *chain) Handles(op admission.Operation) bool {
	return len(c.mutating[op])+len(c.validating[op]) > 0
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
	for _, p := range c.mutating[a.GetOperation()] {
		if err := p.Admit(ctx, a, o); err != nil {
			return err
		}
	}
	return nil
}

// Validate implements admission.ValidationInterface.
func (c *chain) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	for _, p := range c.validating[a.GetOperation()] {
		if err := p.Validate(ctx, a, o); err != nil {
			return err
		}
	}
	return nil
}
