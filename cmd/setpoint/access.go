package main

import (
	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/setpoint-io/setpoint/apiserver/auth/authconfig"
	"github.com/setpoint-io/setpoint/apiserver/encryption"
	"github.com/setpoint-io/setpoint/server"
	"github.com/setpoint-io/setpoint/server/auditlog"
)

// accessFlags are upstream's names for who may come in and what is recorded.
func accessFlags(flags *pflag.FlagSet, who *authconfig.Config, audit *auditlog.Config) {
	inGroup(flags, "Who may come in", func() { authenticationFlags(flags, who) })
	inGroup(flags, "Audit log", func() { auditFlags(flags, audit) })
}

// authorizationFlag is upstream's name for who says what users may do.
func authorizationFlag(flags *pflag.FlagSet, file *string) {
	inGroup(flags, "Who may come in", func() {
		flags.StringVar(file, "authorization-config", "", "AuthorizationConfiguration file: webhooks that say what users may do, "+
			"before or after Node and RBAC; read again when it changes")
	})
}

func authenticationFlags(flags *pflag.FlagSet, who *authconfig.Config) {
	flags.StringVar(
		&who.File,
		"authentication-config",
		"",
		"AuthenticationConfiguration file: issuers of tokens (OIDC), anonymous requests; read again when it changes",
	)
	flags.StringVar(&who.OIDC.IssuerURL, "oidc-issuer-url", "", "issuer of tokens (OIDC), in place of a file: https://...")
	flags.StringVar(&who.OIDC.ClientID, "oidc-client-id", "", "audience that its tokens must be for")
	flags.StringVar(&who.OIDC.UsernameClaim, "oidc-username-claim", authconfig.DefaultUsernameClaim, "claim that names the user")
	flags.StringVar(
		&who.OIDC.UsernamePrefix,
		"oidc-username-prefix",
		"",
		"put before it; default: the issuer and #, unless the claim is email; - is none",
	)
	flags.StringVar(&who.OIDC.GroupsClaim, "oidc-groups-claim", "", "claim that names the user's groups")
	flags.StringVar(&who.OIDC.GroupsPrefix, "oidc-groups-prefix", "", "put before them")
	flags.StringVar(&who.OIDC.CAFile, "oidc-ca-file", "", "who signs the issuer's certificate (default: the system's authorities)")
	flags.StringToStringVar(&who.OIDC.RequiredClaims, "oidc-required-claim", nil, "what a token must say: `claim=value,...`")
}

// admissionFlags are upstream's names for which admission plugins and features there are.
func admissionFlags(flags *pflag.FlagSet, o *server.Options) {
	inGroup(flags, "Admission and features", func() {
		flags.StringSliceVar(&o.Admission.Enable, "enable-admission-plugins", nil,
			"admission plugins that run beside the default ones, by upstream's names; the same on all servers")
		flags.StringSliceVar(&o.Admission.Disable, "disable-admission-plugins", nil,
			"admission plugins that are left out; the same on all servers. What keeps tenants and nodes apart cannot be left out")
		flags.StringVar(&o.AdmissionConfigFile, "admission-control-config-file", "",
			"AdmissionConfiguration file: what single admission plugins are told; read at start")
		flags.StringToStringVar(&o.FeatureGates, "feature-gates", nil, "features of upstream, `name=true|false,...`: "+
			"accepted if it is what Setpoint does in any case, and refused by name otherwise")
		flags.Var((*cliflag.ConfigurationMap)(&o.RuntimeConfig), "runtime-config", "versions of APIs to turn on or off, "+
			"`group/version=true|false,...`: accepted if it says what is served in any case, and refused by name otherwise")
	})
}

func auditFlags(flags *pflag.FlagSet, audit *auditlog.Config) {
	flags.StringVar(&audit.Path, "audit-log-path", "", "file for records of requests, - for standard output; empty: none")
	flags.StringVar(&audit.PolicyFile, "audit-policy-file", "", "audit.k8s.io/v1 Policy (default: metadata of everything but noise)")
	flags.IntVar(&audit.MaxAgeDays, "audit-log-maxage", auditlog.DefaultMaxAgeDays, "days to keep older files; 0: for ever")
	flags.IntVar(&audit.MaxBackups, "audit-log-maxbackup", auditlog.DefaultMaxBackups, "older files to keep; 0: all")
	flags.IntVar(&audit.MaxSizeMiB, "audit-log-maxsize", auditlog.DefaultMaxSizeMiB, "MiB at which another file is begun")
}

// balancerFlag says from where Services of the type LoadBalancer have their addresses.
func balancerFlag(flags *pflag.FlagSet, addresses *string) {
	inGroup(flags, "Addresses of load balancers", func() {
		flags.StringVar(addresses, "load-balancer-addresses", "nodes", "addresses of Services of the type LoadBalancer: 'nodes' (those of "+
			"all nodes), 'none' (another controller gives them), or ranges that nodes announce, such as 192.0.2.64/27,2001:db8::40/122")
	})
}

// dnsFlag says who serves the names of the cluster.
func dnsFlag(flags *pflag.FlagSet, by *string) {
	flags.StringVar(by, "dns", "builtin", "who answers for names of the cluster: 'builtin' (each node, as the Service kube-dns), or 'none' "+
		"(you make the Service and what serves it, such as CoreDNS, at the tenth address of --service-cidr)")
}

// externalIPsFlag says whose Services may take addresses of others.
func externalIPsFlag(flags *pflag.FlagSet, namespaces *[]string) {
	inGroup(flags, "Addresses of pods and Services", func() {
		flags.StringSliceVar(namespaces, "service-external-ips", nil,
			"namespaces in which a Service may get spec.externalIPs, or 'all' or 'none'; the same on all servers (default none)")
	})
}

// gatewayFlag says whether the definitions of the Gateway API are made.
func gatewayFlag(flags *pflag.FlagSet, made *bool) {
	flags.BoolVar(made, "gateway-api", true, "make the CustomResourceDefinitions of the Gateway API (standard channel), unless they are there; "+
		"nodes that serve Ingresses serve Gateways of the class setpoint too, whoever has installed them")
}

// networkFlags are upstream's names for where pods get their addresses from.
func networkFlags(flags *pflag.FlagSet, podCIDR *string, nodeMaskSize, nodeMaskSize6 *int, serviceCIDR *string) {
	inGroup(flags, "Addresses of pods and Services", func() {
		flags.StringVar(
			podCIDR,
			"pod-cidr",
			"",
			"IPv4 range of all pods, and maybe one of IPv6, such as 10.42.0.0/16,fd42::/56; the same on all servers (default: what is in force, "+
				"10.42.0.0/16 in a new cluster)",
		)
		flags.IntVar(
			nodeMaskSize,
			"node-cidr-mask-size",
			0,
			"prefix length of each node's part of the IPv4 range (default: what is in force, 24 in a new cluster)",
		)
		flags.IntVar(
			nodeMaskSize6,
			"node-cidr-mask-size-ipv6",
			0,
			"prefix length of each node's part of the IPv6 range (default: what is in force, 64 in a new cluster)",
		)
		flags.StringVar(
			serviceCIDR,
			"service-cidr",
			"",
			"IPv4 range of Services, and one of IPv6 if pods have one, such as 10.96.0.0/16,fd96::/112; the same at every start of every server "+
				"(default 10.96.0.0/16): it never changes, but one of IPv6 may be added",
		)
	})
}

// schedulerFlag is the name of upstream's scheduler for its file, as far as one command can have it: --config is taken.
func schedulerFlag(flags *pflag.FlagSet, file *string) {
	flags.StringVar(
		file,
		"scheduler-config",
		"",
		"KubeSchedulerConfiguration file: profiles of the scheduler, the same on all servers; read at start (default: upstream's profile)",
	)
}

// encryptionFlags are upstream's names for how objects are encrypted that are stored.
func encryptionFlags(flags *pflag.FlagSet, o *encryption.Options) {
	inGroup(flags, "Encryption of what is stored", func() {
		flags.StringVar(
			&o.File,
			"encryption-provider-config",
			"",
			"EncryptionConfiguration file: how objects are encrypted that are stored (default: Secrets, with the trust folder's key)",
		)
		flags.BoolVar(&o.Reload, "encryption-provider-config-automatic-reload", false, "read that file again when it changes")
	})
}

func localVolumesFlag(flags *pflag.FlagSet, on *bool) {
	flags.BoolVar(on, "local-volumes", true, "make the default StorageClass setpoint-local, whose volumes are on the nodes' own disks")
}
