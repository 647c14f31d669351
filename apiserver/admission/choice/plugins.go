package choice

import "slices"

// Plugin is one of upstream's.
type Plugin struct {
	Name string
	// Default says whether it runs unless a flag says otherwise.
	Default Default
	// Fixed is why it cannot be disabled, Missing why it cannot be enabled; "": it can.
	Fixed, Missing string
}

// Default is what happens to a plugin that no flag names.
type Default int

const (
	// Off plugins run if a flag enables them.
	Off Default = iota
	// On plugins run unless a flag disables them.
	On
	// Idle plugins have nothing to do, so flags that name them change nothing.
	Idle
)

func (p Plugin) runs() bool  { return p.Default == On }
func (p Plugin) waits() bool { return p.Default == Off }

// Find returns the plugin with that name.
func Find(name string) (Plugin, bool) {
	i := slices.IndexFunc(plugins, func(p Plugin) bool { return p.Name == name })
	if i < 0 {
		return Plugin{}, false
	}
	return plugins[i], true
}

// All returns the plugins in the order in which they run.
func All() []Plugin { return slices.Clone(plugins) }

// signs is a reason that several plugins share.
const signs = "whoever may write certificate requests could become anybody, an administrator too"

// plugins are upstream's, in its order.
var plugins = []Plugin{
	{Name: "AlwaysAdmit", Default: Idle},
	{Name: "NamespaceAutoProvision", Missing: "each write of a namespaced object would need the right to create namespaces; create the namespace first"},
	{Name: "NamespaceLifecycle", Default: On, Fixed: "kube-system and default could be deleted"},
	{Name: "NamespaceExists", Default: Idle}, // NamespaceLifecycle does it
	{Name: "LimitPodHardAntiAffinityTopology"},
	{Name: "LimitRanger", Default: On},
	{Name: "ServiceAccount", Default: On},
	{Name: "NodeRestriction", Default: On, Fixed: "a node could change other nodes and their pods"},
	{Name: "TaintNodesByCondition", Default: On},
	{Name: "AlwaysPullImages"},
	{Name: "ImagePolicyWebhook"},
	{Name: "PodSecurity", Default: On, Fixed: "labels of namespaces would promise a standard that nobody enforces; where there is no label it does nothing"},
	{Name: "PodNodeSelector"},
	{Name: "Priority", Default: On, Fixed: "whoever may create pods could give them any priority, and displace the pods of others"},
	{Name: "DefaultTolerationSeconds", Default: On},
	{Name: "PodTolerationRestriction"},
	{Name: "EventRateLimit"},
	{Name: "ExtendedResourceToleration"},
	{Name: "DefaultStorageClass", Default: On},
	{Name: "StorageObjectInUseProtection", Default: On},
	{Name: "PodGroupProtection", Default: Idle}, // its feature, GenericWorkload, is off
	{Name: "OwnerReferencesPermissionEnforcement"},
	{Name: "PersistentVolumeClaimResize", Default: On},
	{Name: "RuntimeClass", Default: On},
	{Name: "CertificateApproval", Default: On, Fixed: signs},
	{Name: "CertificateSigning", Default: On, Fixed: signs},
	{Name: "ClusterTrustBundleAttest", Default: On, Fixed: "whoever may write trust bundles could name any authority for any signer"},
	{Name: "CertificateSubjectRestriction", Default: On, Fixed: signs},
	{Name: "DefaultIngressClass", Default: On},
	{Name: "DenyServiceExternalIPs", Default: On, Fixed: "Services could take the addresses of others; --service-external-ips says where they may"},
	{Name: "PodTopologyLabels", Default: On},
	{Name: "NodeDeclaredFeatureValidator", Default: On},
	{Name: "PodResizeValidator", Default: On},
	{Name: "MutatingAdmissionPolicy", Default: On},
	{Name: "MutatingAdmissionWebhook", Default: On},
	{Name: "ValidatingAdmissionPolicy", Default: On},
	{Name: "ValidatingAdmissionWebhook", Default: On},
	{Name: "ResourceQuota", Default: On, Fixed: "quotas are counted in the transaction of each write"},
	{Name: "AlwaysDeny", Missing: "it would refuse the writes of the control plane too"},
}
