package core

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-io/setpoint/apiserver/kinds/kindstest"
)

func TestValidatePod(t *testing.T) {
	for name, test := range map[string]struct {
		spec string
		want []string
	}{
		"fine": {`{}`, nil},
		"names": {`{hostname: A_B, subdomain: "-", serviceAccountName: "No", nodeName: "N", runtimeClassName: "R"}`, []string{
			`spec.hostname: Invalid value: "A_B": a lowercase RFC 1123 label`,
			`spec.nodeName: Invalid value: "N": a lowercase RFC 1123 subdomain`,
			`spec.runtimeClassName: Invalid value: "R": a lowercase RFC 1123 subdomain`,
			`spec.serviceAccountName: Invalid value: "No": a lowercase RFC 1123 subdomain`,
			`spec.subdomain: Invalid value: "-": a lowercase RFC 1123 label`,
		}},
		"container names": {`containers: [{name: a, image: a}, {name: a, image: a}, {image: a}, {name: B, image: ""}]`, []string{
			`spec.containers[1].name: Duplicate value: "a"`,
			`spec.containers[2].name: Required value`,
			`spec.containers[3].image: Required value`,
			`spec.containers[3].name: Invalid value: "B": a lowercase RFC 1123 label`,
		}},
		"policies": {`{restartPolicy: Sometimes, dnsPolicy: Maybe, containers: [{name: a, image: a, imagePullPolicy: Often, terminationMessagePolicy: Loud}]}`, []string{
			`spec.containers[0].imagePullPolicy: Unsupported value: "Often": supported values: "Always", "IfNotPresent", "Never"`,
			`spec.containers[0].terminationMessagePolicy: Unsupported value: "Loud": supported values: "File", "FallbackToLogsOnError"`,
			`spec.dnsPolicy: Unsupported value: "Maybe": supported values: "ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"`,
			`spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"`,
		}},
		"ports": {`containers: [{name: a, image: a, ports: [{containerPort: 80, hostPort: 80, name: http}, {containerPort: 81, hostPort: 80, name: http}, {}, {containerPort: 70000, protocol: ICMP, name: "way-too-long-for-a-port"}]}]`, []string{
			`spec.containers[0].ports[1].hostPort: Duplicate value: "TCP//80"`,
			`spec.containers[0].ports[1].name: Duplicate value: "http"`,
			`spec.containers[0].ports[2].containerPort: Required value`,
			`spec.containers[0].ports[3].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive`,
			`spec.containers[0].ports[3].name: Invalid value: "way-too-long-for-a-port": must be no more than 15 characters`,
			`spec.containers[0].ports[3].protocol: Unsupported value: "ICMP": supported values: "SCTP", "TCP", "UDP"`,
		}},
		"host network ports": {`{hostNetwork: true, containers: [{name: a, image: a, ports: [{containerPort: 80, hostPort: 81}]}]}`, []string{
			"spec.containers[0].ports[0].containerPort: Invalid value: 80: must match `hostPort` when `hostNetwork` is true",
		}},
		"env": {`containers: [{name: a, image: a, env: [{value: x}, {name: "A=B"}, {name: A, value: x, valueFrom: {fieldRef: {fieldPath: metadata.name}}}, {name: B, valueFrom: {}}, {name: C, valueFrom: {fieldRef: {fieldPath: spec.secret}}}, {name: D, valueFrom: {fieldRef: {fieldPath: "metadata.labels['a b']"}}}, {name: E, valueFrom: {resourceFieldRef: {resource: limits.disk}}}, {name: F, valueFrom: {secretKeyRef: {name: s, key: "no key"}}}]}]`, []string{
			`spec.containers[0].env[0].name: Required value`,
			`spec.containers[0].env[1].name: Invalid value: "A=B": a valid environment variable name must consist only of printable ASCII characters other than '='`,
			"spec.containers[0].env[2].valueFrom: Invalid value: \"\": may not be specified when `value` is not empty",
			"spec.containers[0].env[3].valueFrom: Invalid value: \"\": must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef`, or `fileKeyRef`",
			`spec.containers[0].env[4].valueFrom.fieldRef.fieldPath: Unsupported value: "spec.secret": supported values: "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"`,
			`spec.containers[0].env[5].valueFrom.fieldRef.fieldPath: Invalid value: "a b": name part`,
			`spec.containers[0].env[6].valueFrom.resourceFieldRef.resource: Unsupported value: "limits.disk": supported values: "limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu", "requests.ephemeral-storage", "requests.memory"`,
			`spec.containers[0].env[7].valueFrom.secretKeyRef.key: Invalid value: "no key": a valid config key`,
		}},
		"envFrom": {`containers: [{name: a, image: a, envFrom: [{}, {secretRef: {}}, {configMapRef: {name: c}, secretRef: {name: s}}]}]`, []string{
			"spec.containers[0].envFrom[0]: Invalid value: \"\": must specify one of: `configMapRef` or `secretRef`",
			`spec.containers[0].envFrom[1].secretRef.name: Required value`,
			`spec.containers[0].envFrom[2]: Invalid value: "": may not have more than one field specified at a time`,
		}},
		"mounts": {`containers: [{name: a, image: a, volumeMounts: [{name: none, mountPath: /a}, {name: v, mountPath: /a}, {name: v}, {name: v, mountPath: /b, subPath: /abs, subPathExpr: x}, {name: v, mountPath: /c, mountPropagation: Bidirectional}]}]
volumes: [{name: v}]`, []string{
			`spec.containers[0].volumeMounts[0].name: Not found: "none"`,
			`spec.containers[0].volumeMounts[1].mountPath: Invalid value: "/a": must be unique`,
			`spec.containers[0].volumeMounts[2].mountPath: Required value`,
			`spec.containers[0].volumeMounts[3].subPath: Invalid value: "/abs": must be a relative path`,
			`spec.containers[0].volumeMounts[3].subPathExpr: Invalid value: "x": subPathExpr and subPath are mutually exclusive`,
			`spec.containers[0].volumeMounts[4].mountPropagation: Forbidden: Bidirectional mount propagation is available only to privileged containers`,
		}},
		"probes": {`containers: [{name: a, image: a, livenessProbe: {successThreshold: 2, tcpSocket: {port: 0}}, readinessProbe: {exec: {}, httpGet: {port: http}, terminationGracePeriodSeconds: 3}, startupProbe: {periodSeconds: -1}}]`, []string{
			`spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1`,
			`spec.containers[0].livenessProbe.tcpSocket.port: Invalid value: 0: must be between 1 and 65535, inclusive`,
			`spec.containers[0].readinessProbe.exec.command: Required value`,
			`spec.containers[0].readinessProbe.httpGet: Forbidden: may not specify more than 1 handler type`,
			`spec.containers[0].readinessProbe.terminationGracePeriodSeconds: Invalid value: 3: must not be set for readinessProbes`,
			`spec.containers[0].startupProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0`,
			`spec.containers[0].startupProbe: Required value: must specify a handler type`,
		}},
		"init containers": {`initContainers: [{name: a, image: a, livenessProbe: {exec: {command: [x]}}}, {name: b, image: b, restartPolicy: Always, livenessProbe: {exec: {command: [x]}}}]`, []string{
			`spec.initContainers[0].livenessProbe: Forbidden: may not be set for init containers without restartPolicy=Always`,
		}},
		"hooks": {`containers: [{name: a, image: a, lifecycle: {preStop: {sleep: {seconds: 31}}, postStart: {}}}]`, []string{
			`spec.containers[0].lifecycle.postStart: Required value: must specify a handler type`,
			`spec.containers[0].lifecycle.preStop.sleep: Invalid value: 31: must be non-negative and less than terminationGracePeriodSeconds (30)`,
		}},
		"resources": {`containers: [{name: a, image: a, resources: {limits: {cpu: "1", disk: "1"}, requests: {cpu: "2", memory: "-1", example.org/gpu: "1"}}}]`, []string{
			`spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources`,
			`spec.containers[0].resources.limits[disk]: Invalid value: "disk": must be a standard resource for containers`,
			`spec.containers[0].resources.limits[disk]: Invalid value: "disk": must be a standard resource type or fully qualified`,
			`spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1`,
			`spec.containers[0].resources.requests[disk]: Invalid value: "disk": must be a standard resource for containers`,
			`spec.containers[0].resources.requests[disk]: Invalid value: "disk": must be a standard resource type or fully qualified`,
			`spec.containers[0].resources.requests[memory]: Invalid value: "-1": must be greater than or equal to 0`,
		}},
		"security": {`{hostPID: true, shareProcessNamespace: true, securityContext: {runAsUser: -1, sysctls: [{name: "!"}], seccompProfile: {type: Localhost}}, containers: [{name: a, image: a, securityContext: {privileged: true, allowPrivilegeEscalation: false}}]}`, []string{
			"spec.containers[0].securityContext: Invalid value: {\"privileged\":true,\"allowPrivilegeEscalation\":false}: cannot set `allowPrivilegeEscalation` to false and `privileged` to true",
			`spec.securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive`,
			`spec.securityContext.seccompProfile.localhostProfile: Required value: must be set when type is Localhost`,
			`spec.securityContext.sysctls[0].name: Invalid value: "!": must have at most 253 characters and match regex ([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?`,
			`spec.shareProcessNamespace: Invalid value: true: ShareProcessNamespace and HostPID cannot both be enabled`,
		}},
		"scheduling": {`{tolerations: [{operator: Equal}, {key: a, operator: Exists, value: x, effect: Never}, {key: a, operator: Near}, {key: a, tolerationSeconds: 3}], topologySpreadConstraints: [{maxSkew: 0, whenUnsatisfiable: Cry}], schedulingGates: [{name: a/b}, {name: a/b}], affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}, podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 0, podAffinityTerm: {topologyKey: zone}}]}}}`, []string{
			`spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Required value: must have at least one node selector term`,
			`spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 0: must be in the range 1-100`,
			`spec.schedulingGates[1]: Duplicate value: "a/b"`,
			"spec.tolerations[0].operator: Invalid value: \"Equal\": operator must be Exists when `key` is empty, which means \"match all values and all keys\"",
			`spec.tolerations[1].effect: Unsupported value: "Never": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"`,
			"spec.tolerations[1].operator: Invalid value: {\"key\":\"a\",\"operator\":\"Exists\",\"value\":\"x\",\"effect\":\"Never\"}: value must be empty when `operator` is 'Exists'",
			`spec.tolerations[2].operator: Unsupported value: "Near": supported values: "Equal", "Exists"`,
			"spec.tolerations[3].effect: Invalid value: \"\": effect must be 'NoExecute' when `tolerationSeconds` is set",
			`spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero`,
			`spec.topologySpreadConstraints[0].topologyKey: Required value: can not be empty`,
			`spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: "Cry": supported values: "DoNotSchedule", "ScheduleAnyway"`,
		}},
		"claims": {`{resourceClaims: [{name: gpu}, {name: gpu, resourceClaimName: a}, {name: nic, resourceClaimName: a, resourceClaimTemplateName: b}], containers: [{name: a, image: a, resources: {claims: [{name: gpu}, {name: gpu}, {name: nic, request: x}, {name: nic}, {name: fpga}]}}]}`, []string{
			"spec.containers[0].resources.claims[1]: Duplicate value: \"gpu\"",
			"spec.containers[0].resources.claims[3]: Duplicate value: \"nic\"",
			"spec.containers[0].resources.claims[4]: Not found: \"fpga\": must be one of the names in pod.spec.resourceClaims: gpu, nic",
			"spec.resourceClaims[0]: Invalid value: {\"name\":\"gpu\"}: must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
			"spec.resourceClaims[1].name: Duplicate value: \"gpu\"",
			"spec.resourceClaims[2]: Invalid value: {\"name\":\"nic\",\"resourceClaimName\":\"a\",\"resourceClaimTemplateName\":\"b\"}: at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
		}},
		"restarts": {`{restartPolicy: Never, containers: [{name: a, image: a, restartPolicy: Perhaps, resizePolicy: [{resourceName: cpu, restartPolicy: RestartContainer}, {resourceName: cpu, restartPolicy: NotRequired}, {resourceName: disk, restartPolicy: NotRequired}]}, {name: b, image: b, restartPolicyRules: [{action: Panic}, {action: Restart, exitCodes: {operator: Near}}]}]}`, []string{
			`spec.containers[0].resizePolicy: Invalid value: "RestartContainer": must be 'NotRequired' when pod ` + "`restartPolicy`" + ` is 'Never'`,
			`spec.containers[0].resizePolicy: Unsupported value: "disk": supported values: "cpu", "memory"`,
			`spec.containers[0].resizePolicy[1]: Duplicate value: "cpu"`,
			`spec.containers[0].restartPolicy: Unsupported value: "Perhaps": supported values: "Always", "Never", "OnFailure"`,
			`spec.containers[1].restartPolicy: Required value: must specify restartPolicy when restart rules are used`,
			`spec.containers[1].restartPolicyRules[0].action: Unsupported value: "Panic": supported values: "Restart", "RestartAllContainers"`,
			`spec.containers[1].restartPolicyRules[0].exitCodes: Required value: must be specified`,
			`spec.containers[1].restartPolicyRules[1].exitCodes.operator: Unsupported value: "Near": supported values: "In", "NotIn"`,
		}},
		"devices": {`{volumes: [{name: v}, {name: d, persistentVolumeClaim: {claimName: d}}], containers: [{name: a, image: a, volumeMounts: [{name: d, mountPath: /d}], volumeDevices: [{name: v, devicePath: /v}, {name: d, devicePath: /d}, {name: d, devicePath: /a/../b}]}]}`, []string{
			`spec.containers[0].volumeDevices[0].name: Invalid value: "v": can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode`,
			`spec.containers[0].volumeDevices[1].devicePath: Invalid value: "/d": must not already exist as a path in volumeMounts`,
			`spec.containers[0].volumeDevices[1].name: Invalid value: "d": must not already exist in volumeMounts`,
			`spec.containers[0].volumeDevices[2].devicePath: Invalid value: "/a/../b": can not contain backsteps ('..')`,
			`spec.containers[0].volumeDevices[2].name: Invalid value: "d": must be unique`,
			`spec.containers[0].volumeDevices[2].name: Invalid value: "d": must not already exist in volumeMounts`,
		}},
		"system": {`{os: {name: linux}, overhead: {disk: "1"}, securityContext: {windowsOptions: {}}}`, []string{
			`spec.overhead.limits[disk]: Invalid value: "disk": must be a standard resource for containers`,
			`spec.overhead.limits[disk]: Invalid value: "disk": must be a standard resource type or fully qualified`,
			`spec.securityContext.windowsOptions: Forbidden: windows options cannot be set for a linux pod`,
		}},
		"dns":      {`dnsPolicy: None`, []string{"spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"}},
		"deadline": {`activeDeadlineSeconds: 0`, []string{`spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive`}},
		"gated on a node": {`{nodeName: n, schedulingGates: [{name: a/b}]}`, []string{
			`spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			pod := readPod(t, "spec:\n  "+strings.ReplaceAll(test.spec, "\n", "\n  "))
			if diff := cmp.Diff(test.want, kindstest.Messages(validatePodCreate(pod))); diff != "" {
				t.Error("(-want +got):\n", diff)
			}
		})
	}
}

func TestValidatePodUpdate(t *testing.T) {
	const only = "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
	for name, test := range map[string]struct {
		old, new string
		want     []string
	}{
		"nothing":          {`{}`, `{}`, nil},
		"image":            {`containers: [{name: a, image: "a:1"}]`, `containers: [{name: a, image: "a:2"}]`, nil},
		"empty image":      {`containers: [{name: a, image: "a:1"}]`, `containers: [{name: a}]`, []string{`spec.containers[0].image: Required value`}},
		"another argument": {`containers: [{name: a, image: "a:1"}]`, `containers: [{name: a, image: "a:1", args: [x]}]`, []string{only}},
		"more containers": {`containers: [{name: a, image: "a:1"}]`, `containers: [{name: a, image: "a:1"}, {name: b, image: b}]`, []string{
			`spec.containers: Forbidden: pod updates may not add or remove containers`,
		}},
		"node":              {`nodeName: a`, `nodeName: b`, []string{only}},
		"shorter deadline":  {`activeDeadlineSeconds: 9`, `activeDeadlineSeconds: 8`, nil},
		"longer deadline":   {`activeDeadlineSeconds: 9`, `activeDeadlineSeconds: 10`, []string{`spec.activeDeadlineSeconds: Invalid value: 10: must be less than or equal to previous value`}},
		"no deadline":       {`activeDeadlineSeconds: 9`, `{}`, []string{`spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer to nil value`}},
		"added toleration":  {`tolerations: [{key: a, operator: Exists}]`, `tolerations: [{key: b, operator: Exists}, {key: a, operator: Exists}]`, nil},
		"longer toleration": {`tolerations: [{key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 3}]`, `tolerations: [{key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 5}]`, nil},
		"lost toleration": {`tolerations: [{key: a, operator: Exists}]`, `{}`, []string{
			`spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds`,
		}},
		"grace":             {`terminationGracePeriodSeconds: -1`, `terminationGracePeriodSeconds: 1`, nil},
		"another grace":     {`terminationGracePeriodSeconds: 5`, `terminationGracePeriodSeconds: 1`, []string{only}},
		"gate removed":      {`schedulingGates: [{name: a/b}]`, `{}`, nil},
		"gate added":        {`{}`, `schedulingGates: [{name: a/b}]`, []string{`spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'a/b'`}},
		"gated, narrower":   {`{schedulingGates: [{name: a/b}], nodeSelector: {a: b}}`, `{schedulingGates: [{name: a/b}], nodeSelector: {a: b, c: d}}`, nil},
		"gated, elsewhere":  {`{schedulingGates: [{name: a/b}], nodeSelector: {a: b}}`, `{schedulingGates: [{name: a/b}], nodeSelector: {a: c}}`, []string{only}},
		"ungated, narrower": {`nodeSelector: {a: b}`, `nodeSelector: {a: b, c: d}`, []string{only}},
	} {
		t.Run(name, func(t *testing.T) {
			old, pod := readPod(t, "spec:\n  "+test.old), readPod(t, "spec:\n  "+test.new)
			if diff := cmp.Diff(test.want, kindstest.Messages(validatePodUpdate(pod, old))); diff != "" {
				t.Error("(-want +got):\n", diff)
			}
		})
	}
}
