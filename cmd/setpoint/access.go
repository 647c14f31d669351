package main

import (
	"github.com/spf13/pflag"

	"github.com/setpoint-io/setpoint/apiserver/auditlog"
	"github.com/setpoint-io/setpoint/apiserver/auth/authconfig"
)

// accessFlags are upstream's names for who may come in and what is recorded.
func accessFlags(flags *pflag.FlagSet, who *authconfig.Config, audit *auditlog.Config) {
	flags.StringVar(&who.File, "authentication-config", "", "AuthenticationConfiguration file: issuers of tokens (OIDC), anonymous requests; read again when it changes")
	flags.StringVar(&who.OIDC.IssuerURL, "oidc-issuer-url", "", "issuer of tokens (OIDC), in place of a file: https://...")
	flags.StringVar(&who.OIDC.ClientID, "oidc-client-id", "", "audience that its tokens must be for")
	flags.StringVar(&who.OIDC.UsernameClaim, "oidc-username-claim", authconfig.DefaultUsernameClaim, "claim that names the user")
	flags.StringVar(&who.OIDC.UsernamePrefix, "oidc-username-prefix", "", "put before it; default: the issuer and #, unless the claim is email; - is none")
	flags.StringVar(&who.OIDC.GroupsClaim, "oidc-groups-claim", "", "claim that names the user's groups")
	flags.StringVar(&who.OIDC.GroupsPrefix, "oidc-groups-prefix", "", "put before them")
	flags.StringVar(&who.OIDC.CAFile, "oidc-ca-file", "", "who signs the issuer's certificate (default: the system's authorities)")
	flags.StringToStringVar(&who.OIDC.RequiredClaims, "oidc-required-claim", nil, "claim=value,... that a token must have")

	flags.StringVar(&audit.Path, "audit-log-path", "", "file for records of requests, - for standard output; empty: none")
	flags.StringVar(&audit.PolicyFile, "audit-policy-file", "", "audit.k8s.io/v1 Policy (default: metadata of everything but noise)")
	flags.IntVar(&audit.MaxAgeDays, "audit-log-maxage", auditlog.DefaultMaxAgeDays, "days to keep older files; 0: for ever")
	flags.IntVar(&audit.MaxBackups, "audit-log-maxbackup", auditlog.DefaultMaxBackups, "older files to keep; 0: all")
	flags.IntVar(&audit.MaxSizeMiB, "audit-log-maxsize", auditlog.DefaultMaxSizeMiB, "MiB at which another file is begun")
}
