package core

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
			"spec.containers[0].ports[0].hostPort: Invalid value: 81: must match `containerPort` when `hostNetwork` is true",
		}},
		"env": {`containers: [{name: a, image: a, env: [{value: x}, {name: "A=B"}, {name: A, value: x, valueFrom: {fieldRef: {fieldPath: metadata.name}}}, {name: B, valueFrom: {}}, {name: C, valueFrom: {fieldRef: {fieldPath: spec.secret}}}, {name: D, valueFrom: {fieldRef: {fieldPath: "metadata.labels['a b']"}}}, {name: E, valueFrom: {resourceFieldRef: {resource: limits.disk}}}, {name: F, valueFrom: {secretKeyRef: {name: s, key: "no key"}}}]}]`, []string{
			`spec.containers[0].env[0].name: Required value`,
			`spec.containers[0].env[1].name: Invalid value: "A=B": a valid environment variable name must consist only of printable ASCII characters other than '='`,
			"spec.containers[0].env[2].valueFrom: Invalid value: \"\": may not be specified when `value` is not empty",
			"spec.containers[0].env[3].valueFrom: Invalid value: \"\": must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef`, or `fileKeyRef`",
			`spec.containers[0].env[4].valueFrom.fieldRef.fieldPath: Invalid value: "spec.secret": error converting fieldPath: field label not supported: spec.secret`,
			`spec.containers[0].env[5].valueFrom.fieldRef.fieldPath: Invalid value: "a b": name part`,
			`spec.containers[0].env[6].valueFrom.resourceFieldRef.resource: Unsupported value: "limits.disk": supported values: "limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu", "requests.ephemeral-storage", "requests.memory"`,
			`spec.containers[0].env[7].valueFrom.secretKeyRef.key: Invalid value: "no key": a valid config key`,
		}},
		"envFrom": {`containers: [{name: a, image: a, envFrom: [{}, {secretRef: {}}, {configMapRef: {name: c}, secretRef: {name: s}}]}]`, []string{
			`spec.containers[0].envFrom: Invalid value: "": may not have more than one field specified at a time`,
			"spec.containers[0].envFrom: Invalid value: \"\": must specify one of: `configMapRef` or `secretRef`",
			`spec.containers[0].envFrom[1].secretRef.name: Required value`,
		}},
		"mounts": {`containers: [{name: a, image: a, volumeMounts: [{name: none, mountPath: /a}, {name: v, mountPath: /a}, {name: v}, {name: v, mountPath: /b, subPath: /abs, subPathExpr: x}, {name: v, mountPath: /c, mountPropagation: Bidirectional}]}]
volumes: [{name: v}]`, []string{
			`spec.containers[0].volumeMounts.mountPropagation: Forbidden: Bidirectional mount propagation is available only to privileged containers`,
			`spec.containers[0].volumeMounts[0].name: Not found: "none"`,
			`spec.containers[0].volumeMounts[1].mountPath: Invalid value: "/a": must be unique`,
			`spec.containers[0].volumeMounts[2].mountPath: Required value`,
			`spec.containers[0].volumeMounts[3].subPath: Invalid value: "/abs": must be a relative path`,
			`spec.containers[0].volumeMounts[3].subPathExpr: Invalid value: "x": subPathExpr and subPath are mutually exclusive`,
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
			`spec.securityContext.seccompProfile.localhostProfile: Required value: must be set when seccomp type is Localhost`,
			`spec.securityContext.sysctls[0].name: Invalid value: "!": must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$`,
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
			`spec.containers[0].volumeMounts[0].name: Invalid value: "d": must not already exist in volumeDevices`,
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

// TestValidatePodAsUpstream holds what was once accepted or refused where upstream is of the other opinion.
func TestValidatePodAsUpstream(t *testing.T) {
	for name, test := range map[string]struct {
		spec string
		want []string
	}{
		"references": {`containers: [{name: a, image: a, envFrom: [{configMapRef: {name: a/b}}], env: [{name: X, valueFrom: {secretKeyRef: {name: B, key: k}}}, {name: Y, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 2m}}}, {name: Z, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 1Mi}}}]}]`, []string{
			`spec.containers[0].envFrom[0].configMapRef.name: Invalid value: "a/b": a lowercase RFC 1123 subdomain`,
			`spec.containers[0].env[0].valueFrom.secretKeyRef.name: Invalid value: "B": a lowercase RFC 1123 subdomain`,
			`spec.containers[0].env[1].valueFrom.resourceFieldRef.divisor: Invalid value: "limits.cpu": only divisor's values 1m and 1 are supported with the cpu resource`,
		}},
		"read-only mounts": {`containers: [{name: a, image: a, volumeMounts: [{name: v, mountPath: /a, recursiveReadOnly: Perhaps}, {name: v, mountPath: /b, recursiveReadOnly: Enabled}, {name: v, mountPath: /c, readOnly: true, recursiveReadOnly: IfPossible, mountPropagation: HostToContainer}, {name: v, mountPath: /d, readOnly: true, recursiveReadOnly: Enabled}]}]
volumes: [{name: v}]`, []string{
			`spec.containers[0].volumeMounts.recursiveReadOnly: Forbidden: may only be specified when mountPropagation is None or not specified`,
			`spec.containers[0].volumeMounts.recursiveReadOnly: Forbidden: may only be specified when readOnly is true`,
			`spec.containers[0].volumeMounts.recursiveReadOnly: Unsupported value: "Perhaps": supported values: "Disabled", "Enabled", "IfPossible"`,
		}},
		"policies of groups and labels": {`securityContext: {supplementalGroupsPolicy: Some, seLinuxChangePolicy: Never}`, []string{
			`spec.securityContext.seLinuxChangePolicy: Unsupported value: "Never": supported values: "MountOption", "Recursive"`,
			`spec.securityContext.supplementalGroupsPolicy: Unsupported value: "Some": supported values: "Merge", "Strict"`,
		}},
		"host names": {`{hostnameOverride: Bad_Name, setHostnameAsFQDN: true, hostNetwork: true}`, []string{
			`spec.hostnameOverride: Forbidden: may not be specified when hostNetwork is true`,
			`spec.hostnameOverride: Forbidden: may not be specified when setHostnameAsFQDN is true`,
			`spec.hostnameOverride: Invalid value: "Bad_Name": a lowercase RFC 1123 subdomain`,
		}},
		"windows host processes": {`{securityContext: {windowsOptions: {hostProcess: true}}, containers: [{name: a, image: a}, {name: b, image: b, securityContext: {windowsOptions: {hostProcess: false}}}]}`, []string{
			`spec.containers[1].securityContext.windowsOptions.hostProcess: Invalid value: false: pod hostProcess value must be identical if both are specified, was true`,
			`spec.hostNetwork: Invalid value: false: hostNetwork must be true if pod contains any hostProcess containers`,
			`spec: Invalid value: "": If pod contains any hostProcess containers then all containers must be HostProcess containers`,
		}},
		"block and CSI volumes": {`{volumes: [{name: a, iscsi: {targetPortal: p, iqn: x, lun: 300, chapAuthSession: true}}, {name: b, iscsi: {targetPortal: p, iqn: iqn.2001-04, lun: 1}}, {name: c, fc: {}}, {name: d, fc: {targetWWNs: [w]}}, {name: e, csi: {driver: a/b, nodePublishSecretRef: {}}}]}`, []string{
			`spec.volumes[0].iscsi.iqn: Invalid value: "x": must be valid format starting with iqn, eui, or naa`,
			`spec.volumes[0].iscsi.lun: Invalid value: 300: must be between 0 and 255, inclusive`,
			`spec.volumes[0].iscsi.secretRef: Required value`,
			`spec.volumes[1].iscsi.iqn: Invalid value: "iqn.2001-04": must be valid format`,
			`spec.volumes[2].fc.targetWWNs: Required value: must specify either targetWWNs or wwids, but not both`,
			`spec.volumes[3].fc.lun: Required value: lun is required if targetWWNs is specified`,
			`spec.volumes[4].csi.driver: Invalid value: "a/b": a lowercase RFC 1123 subdomain`,
			`spec.volumes[4].csi.nodePublishSecretRef.name: Required value`,
		}},
		"trust bundles": {`{volumes: [{name: v, projected: {defaultMode: 420, sources: [{clusterTrustBundle: {path: a}}, {clusterTrustBundle: {name: x, signerName: y/z, path: b}}, {clusterTrustBundle: {name: "a:b", path: ..c, labelSelector: {}}}, {clusterTrustBundle: {signerName: bad, path: d}}]}}]}`, []string{
			`spec.volumes[0].projected.sources[0].clusterTrustBundle: Required value: either name or signerName must be specified`,
			`spec.volumes[0].projected.sources[1].clusterTrustBundle: Invalid value: {"name":"x","signerName":"y/z","path":"b"}: only one of name and signerName may be used`,
			`spec.volumes[0].projected.sources[2].clusterTrustBundle.labelSelector: Invalid value: {}: labelSelector must be unset if name is specified`,
			`spec.volumes[0].projected.sources[2].clusterTrustBundle.name: Invalid value: "a:b": not a valid clustertrustbundlename: ClusterTrustBundle without signer name must not have ":" in its name`,
			`spec.volumes[0].projected.sources[2].clusterTrustBundle.path: Invalid value: "..c": must not start with '..'`,
			`spec.volumes[0].projected.sources[3].clusterTrustBundle.signerName: Invalid value: "bad": must be a fully qualified domain and path of the form 'example.com/signer-name'`,
		}},
		"keys of labels": {`{topologySpreadConstraints: [{maxSkew: 1, topologyKey: z, whenUnsatisfiable: DoNotSchedule, matchLabelKeys: [a]}], affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: k, operator: In, values: ["-1"]}]}]}, preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: k, operator: In, values: ["-1"]}]}}]}, podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: z, labelSelector: {matchLabels: {a: b}, matchExpressions: [{key: a, operator: In, values: [b]}]}, matchLabelKeys: [a, "!"], mismatchLabelKeys: [a]}]}}}`, []string{
			`spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].values[0]: Invalid value: "-1": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`,
			`spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].matchLabelKeys[0]: Invalid value: "a": exists in both matchLabelKeys and mismatchLabelKeys`,
			`spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].matchLabelKeys[1]: Invalid value: "!": name part`,
			`spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0][0]: Invalid value: "a": exists in both matchLabelKeys and labelSelector`,
			`spec.topologySpreadConstraints[0].matchLabelKeys: Forbidden: must not be specified when labelSelector is not set`,
		}},
		"what charts render": {`{imagePullSecrets: [{}], containers: [{name: a, image: a, ports: [{containerPort: 1, hostPort: 1, hostIP: x}]}]}`, nil},
		"spaces":             {`containers: [{name: a, image: " a"}]`, []string{`spec.containers[0].image: Invalid value: " a": must not have leading or trailing whitespace`}},
	} {
		t.Run(name, func(t *testing.T) {
			pod := readPod(t, "spec:\n  "+strings.ReplaceAll(test.spec, "\n", "\n  "))
			if diff := cmp.Diff(test.want, kindstest.Messages(validatePodCreate(pod))); diff != "" {
				t.Error("(-want +got):\n", diff)
			}
		})
	}
}

func TestValidatePodsContainers(t *testing.T) {
	for name, test := range map[string]struct {
		spec string
		want []string
	}{
		"init containers": {`initContainers: [{name: a, image: a, livenessProbe: {exec: {}}, resizePolicy: [{resourceName: cpu, restartPolicy: RestartContainer}]}, {name: b, image: b, restartPolicy: Always, livenessProbe: {exec: {}}, resizePolicy: [{resourceName: cpu, restartPolicy: RestartContainer}]}]`, []string{
			`spec.initContainers[0].livenessProbe: Forbidden: may not be set for init containers without restartPolicy=Always`,
			`spec.initContainers[0].resizePolicy[0].restartPolicy: Invalid value: "RestartContainer": must not be set to 'RestartContainer' for non-sidecar initContainers`,
			`spec.initContainers[1].livenessProbe.exec.command: Required value`,
		}},
		"files of variables": {`{volumes: [{name: e}, {name: h, hostPath: {path: /}}], containers: [{name: a, image: a, env: [{name: A, valueFrom: {fileKeyRef: {volumeName: e, path: p, key: k}}}, {name: B, valueFrom: {fileKeyRef: {volumeName: h, path: p, key: k}}}, {name: C, valueFrom: {fileKeyRef: {volumeName: x, path: p, key: k}}}]}]}`, []string{
			`spec.containers[0].env[1].valueFrom.fileKeyRef.volumeName: Invalid value: "h": referenced volume must be of type emptyDir`,
			`spec.containers[0].env[2].valueFrom.fileKeyRef.volumeName: Not found: "x"`,
		}},
		"seccomp": {`{containers: [{name: a, image: a, securityContext: {seccompProfile: {}}}, {name: b, image: b, securityContext: {seccompProfile: {type: Loose}}}]}`, []string{
			`spec.containers[0].securityContext.seccompProfile.type: Required value: type is required when seccompProfile is set`,
			`spec.containers[1].securityContext.seccompProfile.type: Unsupported value: "Loose": supported values: "Localhost", "RuntimeDefault", "Unconfined"`,
		}},
		"profile that is not local": {`{securityContext: {seccompProfile: {type: Loose, localhostProfile: a}}}`, []string{
			`spec.securityContext.seccompProfile.localhostProfile: Invalid value: {"type":"Loose","localhostProfile":"a"}: can only be set when seccomp type is Localhost`,
			`spec.securityContext.seccompProfile.type: Unsupported value: "Loose": supported values: "Localhost", "RuntimeDefault", "Unconfined"`,
		}},
		"account of Windows": {`{securityContext: {windowsOptions: {gmsaCredentialSpecName: A_b, gmsaCredentialSpec: ""}}}`, []string{
			`spec.securityContext.windowsOptions.gmsaCredentialSpec: Invalid value: "": gmsaCredentialSpec cannot be an empty string`,
			`spec.securityContext.windowsOptions.gmsaCredentialSpecName: Invalid value: "A_b": a lowercase RFC 1123 subdomain`,
		}},
		"file of a variable": {`{volumes: [{name: e, emptyDir: {}}], containers: [{name: a, image: a, env: [{name: A, valueFrom: {fileKeyRef: {volumeName: e, path: a/../b, key: "="}}}, {name: B, valueFrom: {fileKeyRef: {volumeName: E}}}]}]}`, []string{
			`spec.containers[0].env[0].valueFrom.fileKeyRef.key: Invalid value: "=": a valid environment variable name must consist only of printable ASCII characters other than '='`,
			`spec.containers[0].env[0].valueFrom.fileKeyRef.path: Invalid value: "a/../b": must not contain '..'`,
			`spec.containers[0].env[1].valueFrom.fileKeyRef.key: Required value`,
			`spec.containers[0].env[1].valueFrom.fileKeyRef.path: Required value`,
			`spec.containers[0].env[1].valueFrom.fileKeyRef.volumeName: Invalid value: "E": a lowercase RFC 1123 label`,
			`spec.containers[0].env[1].valueFrom.fileKeyRef.volumeName: Not found: "E"`,
		}},
		"huge pages": {`{containers: [{name: a, image: a, resources: {limits: {hugepages-2Mi: 4Mi}}}, {name: b, image: a, resources: {limits: {hugepages-2Mi: 4Mi, cpu: "1"}}}]}`, []string{
			`spec.containers[0].resources: Forbidden: HugePages require cpu or memory`,
		}},
		"parts of huge pages": {`{containers: [{name: a, image: a, resources: {limits: {memory: 1Gi, hugepages-2Mi: 3Mi, hugepages-big: 1Mi, hugepages-1Gi: "0"}}}]}`, []string{
			`spec.containers[0].resources.limits[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer multiple of hugepages-2Mi`,
			`spec.containers[0].resources.limits[hugepages-big]: Invalid value: "1Mi": 1Mi is not positive integer multiple of hugepages-big`,
			`spec.containers[0].resources.requests[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer multiple of hugepages-2Mi`,
			`spec.containers[0].resources.requests[hugepages-big]: Invalid value: "1Mi": 1Mi is not positive integer multiple of hugepages-big`,
		}},
		"huge pages of a pod": {`{resources: {limits: {memory: 1Gi, hugepages-2Mi: 4Mi}, requests: {hugepages-2Mi: 4Mi}}, containers: [` +
			`{name: a, image: a, resources: {limits: {memory: 1Mi, hugepages-2Mi: 4Mi}}}, {name: b, image: a, resources: {limits: {memory: 1Mi, hugepages-2Mi: 2Mi}}}]}`, []string{
			`spec.resources.limits[hugepages-2Mi]: Invalid value: "4Mi": must be greater than or equal to aggregate container limits of 6Mi`,
			`spec.resources.requests[hugepages-2Mi]: Invalid value: "4Mi": must be greater than or equal to aggregate container requests of 6Mi`,
		}},
		"whole pod": {`{resources: {limits: {cpu: "1", example.com/a: "1"}, claims: []}, containers: [{name: a, image: a, resources: {limits: {cpu: "2"}}}]}`, []string{
			`spec.resources.claims: Forbidden: claims may not be set for Resources at pod-level`,
			`spec.resources.containers[0][cpu].limits: Invalid value: "2": must be less than or equal to pod limits of 1`,
			`spec.resources.limits[example.com/a]: Unsupported value: "example.com/a": supported values: "cpu", "hugepages-", "memory"`,
			`spec.resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1`,
		}},
		"mount of a bad volume": {`{volumes: [{name: h, hostPath: {path: ""}}], containers: [{name: a, image: a, volumeMounts: [{name: h, mountPath: /a}]}]}`, []string{
			`spec.containers[0].volumeMounts[0].name: Not found: "h"`,
			`spec.volumes[0].hostPath.path: Required value`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			pod := readPod(t, "spec:\n  "+test.spec)
			preparePodCreate(pod)
			if diff := cmp.Diff(test.want, kindstest.Messages(validatePodCreate(pod))); diff != "" {
				t.Error("(-want +got):\n", diff)
			}
		})
	}
}

func TestMirrorAnnotationStays(t *testing.T) {
	const annotated = "metadata:\n  annotations: {kubernetes.io/config.mirror: %s}\nspec: {nodeName: n}"
	plain, mirror, other := readPod(t, "spec: {nodeName: n}"), readPod(t, strings.Replace(annotated, "%s", "a", 1)), readPod(t, strings.Replace(annotated, "%s", "b", 1))
	const at = "metadata.annotations[kubernetes.io/config.mirror]: Forbidden: may not "
	for name, test := range map[string]struct {
		old, new *corev1.Pod
		want     []string
	}{
		"kept":    {mirror, mirror, nil},
		"added":   {plain, mirror, []string{at + "add mirror pod annotation"}},
		"removed": {mirror, plain, []string{at + "remove or update mirror pod annotation"}},
		"changed": {mirror, other, []string{at + "remove or update mirror pod annotation"}},
	} {
		if diff := cmp.Diff(test.want, kindstest.Messages(validatePodUpdate(test.new, test.old))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestValidatePodUpdate(t *testing.T) {
	const only = "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
	for name, test := range map[string]struct {
		old, new string
		want     []string
	}{
		"nothing":     {`{}`, `{}`, nil},
		"image":       {`containers: [{name: a, image: "a:1"}]`, `containers: [{name: a, image: "a:2"}]`, nil},
		"empty image": {`containers: [{name: a, image: "a:1"}]`, `containers: [{name: a}]`, []string{`spec.containers[0].image: Required value`, `spec.containers[0].image: Required value`}},
		"invalid, and no change that is allowed": {`dnsPolicy: Default`, `dnsPolicy: Maybe`, []string{
			`spec.dnsPolicy: Unsupported value: "Maybe": supported values: "ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"`, only,
		}},
		"invalid as before": {`dnsPolicy: Maybe`, `dnsPolicy: Maybe`, nil},
		"another argument":  {`containers: [{name: a, image: "a:1"}]`, `containers: [{name: a, image: "a:1", args: [x]}]`, []string{only}},
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

// TestMirrorPodsHaveANode: the annotation spares a pod what admission asks of others.
func TestMirrorPodsHaveANode(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{corev1.MirrorPodAnnotationKey: "x"}}}
	want := `metadata.annotations[kubernetes.io/config.mirror]: Invalid value: "x": must set spec.nodeName if mirror pod annotation is set`
	says := func() bool { return strings.Contains(validatePodCreate(pod).ToAggregate().Error(), want) }
	if !says() {
		t.Errorf("%v", validatePodCreate(pod))
	}
	if pod.Spec.NodeName = "n"; says() {
		t.Error("refused with a node too")
	}
}
