package podfields

import (
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Verdict is what becomes of a field that is set.
type Verdict int

const (
	// Refused: the agent does not run the pod.
	Refused Verdict = iota
	// Dropped: the pod runs without it, an event and a warning say so.
	Dropped
	// Harmless: nothing is missed by ignoring it.
	Harmless
)

// Node is what a node's container runtime can do. The zero value is the least that any can.
type Node struct {
	// HostPorts6, SELinux, AppArmor: the runtime does it or says itself that it cannot. With the embedded one, AppArmor says that the
	// kernel has it, SELinux that the kernel's policy is for containers too.
	HostPorts6, SELinux, AppArmor bool
	// NoSELinux: the kernel has none, so there are no labels that a runtime could set.
	NoSELinux bool
	// RecursiveReadOnly, SupplementalGroupsPolicy and UserNamespaces are features that a runtime reports.
	RecursiveReadOnly, SupplementalGroupsPolicy, UserNamespaces bool
	// HugePageLimits: its control groups limit huge pages.
	HugePageLimits bool
}

// Embedded is what the embedded runtime can do where the kernel can.
var Embedded = Node{RecursiveReadOnly: true, SupplementalGroupsPolicy: true, UserNamespaces: true, HugePageLimits: true, AppArmor: true,
	SELinux: true}

// Type is all fields of one type, by their names in JSON; a field that is inlined counts as its own fields.
type Type struct {
	Of any
	// Enforced are the fields that do what they say: by the agent, the scheduler, a controller or the API. Space between them.
	Enforced string
	Rules    []Rule
}

// Rule is about fields that are not enforced, or not always. What lies below a refused or dropped field is not looked at.
type Rule struct {
	// Fields have space between them.
	Fields  string
	Verdict Verdict
	// Why completes "…: this node refuses it: ", "…: it has no effect: ".
	Why string
	// When limits the rule to some values; nil is all values but the zero value.
	When func(At) bool
	// Unless lifts the rule from nodes that can do it.
	Unless func(Node) bool
	// Pointless makes Dropped of Refused on nodes where the field means nothing, and On tells readers which these are, as "on a …".
	Pointless func(Node) bool
	On        string
	// Values tells readers of the table what When says.
	Values string
}

// At is a field that is set, and where it stands.
type At struct {
	Spec *corev1.PodSpec
	// In is the pointer to the struct that has the field.
	In any
	// List is the field of the spec below which it stands, such as "initContainers".
	List string
}

const containerFields = "name image command args workingDir ports envFrom env resources volumeMounts volumeDevices livenessProbe readinessProbe " +
	"startupProbe lifecycle terminationMessagePath terminationMessagePolicy imagePullPolicy securityContext stdin stdinOnce tty resizePolicy " +
	"restartPolicy restartPolicyRules"

const (
	noVolume = "it has no such volumes"
	noUser   = "it does not change the owner of single files"
	windows  = "a Linux node ignores it, a stock kubelet too"
)

// Table returns every type that a pod's spec is made of, the spec first.
func Table() []Type {
	return append(specTypes(), append(volumeTypes(), append(containerTypes(), schedulingTypes()...)...)...)
}

func specTypes() []Type {
	return []Type{
		{
			Of: corev1.PodSpec{},
			Enforced: "volumes initContainers containers ephemeralContainers restartPolicy terminationGracePeriodSeconds " +
				"activeDeadlineSeconds dnsPolicy nodeSelector serviceAccountName serviceAccount automountServiceAccountToken nodeName hostNetwork hostPID " +
				"hostIPC shareProcessNamespace securityContext imagePullSecrets hostname subdomain affinity schedulerName tolerations hostAliases " +
				"priorityClassName priority dnsConfig readinessGates runtimeClassName enableServiceLinks preemptionPolicy overhead " +
				"topologySpreadConstraints setHostnameAsFQDN os schedulingGates resources hostnameOverride resourceClaims",
			Rules: []Rule{
				{Fields: "hostUsers", Verdict: Refused, Why: "it has no user namespaces", When: isFalse,
					Values: "`false`", Unless: func(n Node) bool { return n.UserNamespaces }},
				{Fields: "schedulingGroup", Verdict: Dropped, Why: "pods are scheduled one by one"},
				{Fields: "evictionResponders", Verdict: Dropped, Why: "evictions wait for nobody"},
			},
		},
		{
			Of: corev1.PodSecurityContext{},
			Enforced: "runAsUser runAsGroup runAsNonRoot supplementalGroups fsGroup fsGroupChangePolicy sysctls seccompProfile " +
				"appArmorProfile seLinuxChangePolicy",
			Rules: []Rule{
				seLinux,
				{
					Fields:  "supplementalGroupsPolicy",
					Verdict: Refused,
					Why:     "its runtime adds the groups of the image",
					When:    strictGroups,
					Values:  "`Strict`",
					Unless:  func(n Node) bool { return n.SupplementalGroupsPolicy },
				},
				{Fields: "windowsOptions", Verdict: Harmless, Why: windows},
			},
		},
		{Of: corev1.PodOS{}, Rules: []Rule{{Fields: "name", Verdict: Refused, Why: "it runs Linux", When: isWindows, Values: "`windows`"}}},
		{Of: corev1.SeccompProfile{}, Enforced: "type localhostProfile"},
		{Of: corev1.AppArmorProfile{}, Rules: []Rule{
			{
				Fields:  "type",
				Verdict: Refused,
				Why:     "its kernel has no AppArmor",
				When:    confined,
				Values:  "other than `Unconfined`",
				Unless:  func(n Node) bool { return n.AppArmor },
			},
			{Fields: "localhostProfile", Verdict: Harmless, Why: "the type is judged"},
		}},
		{Of: corev1.Sysctl{}, Enforced: "name value"},
		{Of: corev1.LocalObjectReference{}, Enforced: "name"},
		{Of: corev1.HostAlias{}, Enforced: "ip hostnames"},
		{Of: corev1.PodDNSConfig{}, Enforced: "nameservers searches options"},
		{Of: corev1.PodDNSConfigOption{}, Enforced: "name value"},
		{Of: corev1.PodReadinessGate{}, Enforced: "conditionType"},
		{Of: corev1.PodSchedulingGate{}, Enforced: "name"},
	}
}

var seLinux = Rule{Fields: "seLinuxOptions", Verdict: Refused, Why: "its SELinux policy has no labels for containers",
	When: anySELinux, Unless: func(n Node) bool { return n.SELinux },
	Pointless: func(n Node) bool { return n.NoSELinux }, On: "on a kernel without SELinux"}

func isFalse(at At) bool {
	spec := at.In.(*corev1.PodSpec)
	return spec.HostUsers != nil && !*spec.HostUsers
}

func isWindows(at At) bool { return at.In.(*corev1.PodOS).Name == corev1.Windows }

func strictGroups(at At) bool {
	p := at.In.(*corev1.PodSecurityContext).SupplementalGroupsPolicy
	return p != nil && *p == corev1.SupplementalGroupsPolicyStrict
}

func confined(at At) bool {
	kind := at.In.(*corev1.AppArmorProfile).Type
	return kind != "" && kind != corev1.AppArmorProfileTypeUnconfined
}

func anySELinux(at At) bool {
	var o *corev1.SELinuxOptions
	switch sc := at.In.(type) {
	case *corev1.SecurityContext:
		o = sc.SELinuxOptions
	case *corev1.PodSecurityContext:
		o = sc.SELinuxOptions
	}
	return o != nil && *o != corev1.SELinuxOptions{}
}

// split gives the fields of a list in the table.
func split(fields string) []string { return strings.Fields(fields) }

func typeOf(t Type) reflect.Type { return reflect.TypeOf(t.Of) }
