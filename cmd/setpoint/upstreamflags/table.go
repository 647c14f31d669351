package upstreamflags

import (
	"slices"
	"strings"
)

// reason is why some flags are not there.
type reason struct{ flags, why string }

// Why says what there is instead of a flag of upstream's API server.
func Why(flag string) (why string, known bool) {
	for _, r := range reasons {
		if slices.Contains(strings.Fields(r.flags), flag) {
			return r.why, true
		}
	}
	return "", false
}

// All are the flags that have a reason.
func All() (flags []string) {
	for _, r := range reasons {
		flags = append(flags, strings.Fields(r.flags)...)
	}
	return flags
}

var reasons = []reason{
	{
		`etcd-cafile etcd-certfile etcd-compaction-interval etcd-count-metric-poll-period etcd-db-metric-poll-interval
		etcd-healthcheck-timeout etcd-keyfile etcd-prefix etcd-readycheck-timeout etcd-servers etcd-servers-overrides
		lease-reuse-duration-seconds storage-backend storage-initialization-timeout storage-media-type`,
		"the store is built in: there is no etcd",
	},
	{"default-watch-cache-size watch-cache watch-cache-sizes", "there is no cache between the API and the store"},
	{"admission-control", "it is --enable-admission-plugins and --disable-admission-plugins"},
	{"allow-privileged", "privileged pods are allowed; labels of PodSecurity forbid them in a namespace"},
	{
		`anonymous-auth authentication-kubeconfig authentication-skip-lookup authentication-tolerate-lookup-failure
		authentication-token-webhook-cache-ttl authentication-token-webhook-config-file authentication-token-webhook-version
		enable-bootstrap-token-auth token-auth-file`,
		"users have certificates, tokens of service accounts or bootstrap tokens, or come from the issuers of --authentication-config",
	},
	{
		`authorization-always-allow-paths authorization-kubeconfig authorization-mode authorization-policy-file
		authorization-webhook-cache-authorized-ttl authorization-webhook-cache-unauthorized-ttl authorization-webhook-config-file
		authorization-webhook-version`,
		"Node and RBAC are always on; --authorization-config adds webhooks",
	},
	{
		`api-audiences service-account-extend-token-expiration service-account-issuer service-account-jwks-uri service-account-key-file
		service-account-lookup service-account-max-token-expiration service-account-signing-endpoint service-account-signing-key-file`,
		"the cluster's own key, in the trust folder, signs and checks the tokens of service accounts",
	},
	{
		`cert-dir client-ca-file kubelet-certificate-authority kubelet-client-certificate kubelet-client-key peer-ca-file
		proxy-client-cert-file proxy-client-key-file tls-cert-file tls-private-key-file tls-sni-cert-key`,
		"'setpoint cluster init' makes the certificates, and servers renew them; --trust-dir is where they are",
	},
	{
		`requestheader-allowed-names requestheader-client-ca-file requestheader-extra-headers-prefix requestheader-group-headers
		requestheader-uid-headers requestheader-username-headers`,
		"nobody in front of a server says who asks; to other API servers it says so under upstream's names",
	},
	{
		"disable-http2-serving strict-transport-security-directives tls-cipher-suites tls-curve-preferences tls-min-version",
		"a server speaks TLS 1.2 and later, HTTP/2 and HTTP/1.1",
	},
	{
		`bind-address external-hostname peer-advertise-ip peer-advertise-port permit-address-sharing permit-port-sharing secure-port`,
		"it is --advertise-address, or the server's entry in --initial-servers",
	},
	{"apiserver-count endpoint-reconciler-type", "servers know each other by the log"},
	{
		"kubelet-port kubelet-preferred-address-types kubelet-read-only-port kubelet-timeout",
		"a server reaches a node at the address and port that the Node tells",
	},
	{"service-cluster-ip-range", "it is --service-cidr"},
	{"kubernetes-service-node-port service-node-port-range", "node ports are 30000 to 32767, and the Service kubernetes has none"},
	{"default-not-ready-toleration-seconds default-unreachable-toleration-seconds", "pods leave lost nodes after 300 seconds, unless they say otherwise"},
	{"event-ttl", "Events are kept for an hour"},
	{
		`enable-priority-and-fairness goaway-chance http2-max-streams-per-connection max-connection-bytes-per-sec
		max-mutating-requests-inflight max-requests-inflight min-request-timeout request-timeout`,
		"the limits of requests are fixed (docs/limits.md); PriorityLevelConfigurations divide them",
	},
	{
		`audit-log-batch-buffer-size audit-log-batch-max-size audit-log-batch-max-wait audit-log-batch-throttle-burst
		audit-log-batch-throttle-enable audit-log-batch-throttle-qps audit-log-compress audit-log-format audit-log-mode
		audit-log-truncate-enabled audit-log-truncate-max-batch-size audit-log-truncate-max-event-size audit-log-version`,
		"the audit log has a line of JSON for each record, in audit.k8s.io/v1, and delays no request",
	},
	{
		`audit-webhook-batch-initial-backoff audit-webhook-config-file audit-webhook-initial-backoff audit-webhook-mode
		audit-webhook-version`,
		"the audit log is a file, --audit-log-path",
	},
	{"aggregator-reject-forwarding-redirect enable-aggregator-routing", "requests for other API servers go to their pods, and no redirect is followed"},
	{"enable-garbage-collector", "the garbage collector is always on"},
	{"contention-profiling debug-socket-path profiling", "profiles are at /debug/pprof, for administrators"},
	{"enable-logs-handler", "logs are on standard error; 'setpoint kubectl logs' shows those of a server's parts"},
	{"logging-format log-flush-frequency log-json-info-buffer-size log-json-split-stream log-text-info-buffer-size log-text-split-stream v vmodule", "it is --log-level"},
	{
		"allow-metric-labels allow-metric-labels-manifest disabled-metrics show-hidden-metrics-for-version",
		"/metrics shows all there is",
	},
	{"tracing-config-file", "there are no traces"},
	{"egress-selector-config-file", "there are no egress selectors: servers reach nodes, pods and webhooks by agents or directly"},
	{"cors-allowed-origins", "no page of another origin may ask the API"},
	{
		`emulated-version emulation-forward-compatible min-compatibility-version runtime-config-emulation-forward-compatible`,
		"a server serves one version of Kubernetes",
	},
	{
		"coordinated-leadership-lease-duration coordinated-leadership-renew-deadline coordinated-leadership-retry-period",
		"the leader of the log runs the control loops",
	},
	{
		`livez-grace-period shutdown-delay-duration shutdown-send-retry-after shutdown-watch-termination-grace-period`,
		"a server that stops says so, hands over and lets requests finish by itself",
	},
	{"delete-collection-workers", "a collection is deleted at the pace of the log"},
	{"kubeconfig", "a server asks itself; its users' kubeconfig is in --data-dir"},
}
