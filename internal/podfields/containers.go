package podfields

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

func containerTypes() []Type {
	return []Type{
		{Of: corev1.Container{}, Enforced: containerFields},
		{Of: corev1.EphemeralContainer{}, Enforced: "targetContainerName " + containerFields},
		{Of: corev1.ContainerResizePolicy{}, Enforced: "resourceName restartPolicy"},
		{Of: corev1.ContainerRestartRule{}, Enforced: "action exitCodes"},
		{Of: corev1.ContainerRestartRuleOnExitCodes{}, Enforced: "operator values"},
		{Of: corev1.ContainerPort{}, Enforced: "name containerPort protocol hostPort", Rules: []Rule{
			{Fields: "hostIP", Verdict: Refused, Why: "it needs a node whose pods have addresses of IPv6", When: opensHostPort6,
				Values: "of IPv6 with `hostPort`, without `hostNetwork`", Unless: func(n Node) bool { return n.HostPorts6 }},
		}},
		{Of: corev1.EnvFromSource{}, Enforced: "prefix configMapRef secretRef"},
		{Of: corev1.ConfigMapEnvSource{}, Enforced: "name optional"},
		{Of: corev1.SecretEnvSource{}, Enforced: "name optional"},
		{Of: corev1.EnvVar{}, Enforced: "name value valueFrom"},
		{Of: corev1.EnvVarSource{}, Enforced: "fieldRef resourceFieldRef configMapKeyRef secretKeyRef fileKeyRef"},
		{Of: corev1.FileKeySelector{}, Enforced: "volumeName path key optional"},
		{Of: corev1.ConfigMapKeySelector{}, Enforced: "name key optional"},
		{Of: corev1.SecretKeySelector{}, Enforced: "name key optional"},
		{Of: corev1.ObjectFieldSelector{}, Enforced: "fieldPath", Rules: []Rule{{Fields: "apiVersion", Verdict: Harmless,
			Why: "the API takes v1 only"}}},
		{Of: corev1.ResourceFieldSelector{}, Enforced: "containerName resource divisor"},
		{Of: corev1.ResourceRequirements{}, Enforced: "requests claims", Rules: []Rule{
			{Fields: "limits", Verdict: Dropped, Why: "for huge pages, since its kernel's control groups do not count them", When: hugePages,
				Values: "`hugepages-…`", Unless: func(n Node) bool { return n.HugePageLimits }},
		}},
		{Of: corev1.ResourceClaim{}, Enforced: "name request"},
		{Of: corev1.PodResourceClaim{}, Enforced: "name resourceClaimName resourceClaimTemplateName"},
		{Of: corev1.VolumeMount{}, Enforced: "name readOnly mountPath subPath mountPropagation subPathExpr", Rules: []Rule{
			{Fields: "recursiveReadOnly", Verdict: Refused, Why: "its runtime has no recursive read-only mounts", When: mustRecurse, Values: "`Enabled`",
				Unless: func(n Node) bool { return n.RecursiveReadOnly }},
			{Fields: "bindMountOptions", Verdict: Refused, Why: "it has no options of mounts"},
		}},
		{Of: corev1.VolumeDevice{}, Enforced: "name devicePath"},
		{Of: corev1.Probe{}, Enforced: "exec httpGet tcpSocket grpc initialDelaySeconds timeoutSeconds periodSeconds successThreshold failureThreshold " +
			"terminationGracePeriodSeconds"},
		{Of: corev1.ExecAction{}, Enforced: "command"},
		{Of: corev1.HTTPGetAction{}, Enforced: "path port host scheme httpHeaders", Rules: []Rule{
			{Fields: "protocol", Verdict: Refused, Why: "it probes by HTTP/1.1 only", When: otherHTTP, Values: "other than `HTTP1`"},
		}},
		{Of: corev1.HTTPHeader{}, Enforced: "name value"},
		{Of: corev1.TCPSocketAction{}, Enforced: "port host"},
		{Of: corev1.GRPCAction{}, Enforced: "port service", Rules: []Rule{
			{Fields: "mode", Verdict: Refused, Why: "it probes gRPC without TLS only", When: grpcTLS, Values: "other than `Plaintext`"},
		}},
		{Of: corev1.Lifecycle{}, Enforced: "postStart preStop stopSignal"},
		{Of: corev1.LifecycleHandler{}, Enforced: "exec httpGet tcpSocket sleep"},
		{Of: corev1.SleepAction{}, Enforced: "seconds"},
		{Of: corev1.SecurityContext{}, Enforced: "capabilities privileged runAsUser runAsGroup runAsNonRoot readOnlyRootFilesystem " +
			"allowPrivilegeEscalation procMount seccompProfile appArmorProfile", Rules: []Rule{
			seLinux,
			{Fields: "windowsOptions", Verdict: Harmless, Why: windows},
		}},
		{Of: corev1.Capabilities{}, Enforced: "add drop"},
		{Of: corev1.SELinuxOptions{}, Enforced: "user role type level"},
	}
}

func opensHostPort6(at At) bool {
	port := at.In.(*corev1.ContainerPort)
	return port.HostPort != 0 && strings.Contains(port.HostIP, ":") && !at.Spec.HostNetwork
}

func mustRecurse(at At) bool {
	mode := at.In.(*corev1.VolumeMount).RecursiveReadOnly
	return mode != nil && *mode == corev1.RecursiveReadOnlyEnabled
}

func otherHTTP(at At) bool {
	p := at.In.(*corev1.HTTPGetAction).Protocol
	return p != nil && *p != corev1.HTTPProtocolHTTP1
}

func grpcTLS(at At) bool {
	m := at.In.(*corev1.GRPCAction).Mode
	return m != nil && *m != corev1.GRPCProbeModePlaintext
}

func volumeTypes() []Type {
	return []Type{
		{Of: corev1.Volume{}, Enforced: "name hostPath emptyDir secret persistentVolumeClaim downwardAPI configMap projected " +
			"ephemeral image csi", Rules: []Rule{
			{Fields: "gcePersistentDisk awsElasticBlockStore gitRepo nfs iscsi glusterfs rbd flexVolume cinder cephfs flocker fc azureFile " +
				"vsphereVolume quobyte azureDisk photonPersistentDisk portworxVolume scaleIO storageos", Verdict: Refused, Why: noVolume},
		}},
		{Of: corev1.ImageVolumeSource{}, Enforced: "reference pullPolicy"},
		{Of: corev1.EphemeralVolumeSource{}, Rules: []Rule{
			{Fields: "volumeClaimTemplate", Verdict: Harmless, Why: "a controller makes a claim from it, and the node uses that"},
		}},
		{Of: corev1.HostPathVolumeSource{}, Enforced: "path type"},
		{Of: corev1.EmptyDirVolumeSource{}, Enforced: "medium mode sizeLimit"},
		{Of: corev1.SecretVolumeSource{}, Enforced: "secretName items defaultMode optional",
			Rules: []Rule{{Fields: "defaultUser", Verdict: Refused, Why: noUser}}},
		{Of: corev1.ConfigMapVolumeSource{}, Enforced: "name items defaultMode optional",
			Rules: []Rule{{Fields: "defaultUser", Verdict: Refused, Why: noUser}}},
		{Of: corev1.DownwardAPIVolumeSource{}, Enforced: "items defaultMode",
			Rules: []Rule{{Fields: "defaultUser", Verdict: Refused, Why: noUser}}},
		{Of: corev1.ProjectedVolumeSource{}, Enforced: "sources defaultMode",
			Rules: []Rule{{Fields: "defaultUser", Verdict: Refused, Why: noUser}}},
		{Of: corev1.KeyToPath{}, Enforced: "key path mode", Rules: []Rule{{Fields: "user", Verdict: Refused, Why: noUser}}},
		{Of: corev1.DownwardAPIVolumeFile{}, Enforced: "path fieldRef resourceFieldRef mode",
			Rules: []Rule{{Fields: "user", Verdict: Refused, Why: noUser}}},
		{Of: corev1.CSIVolumeSource{}, Enforced: "driver readOnly fsType volumeAttributes nodePublishSecretRef"},
		{Of: corev1.PersistentVolumeClaimVolumeSource{}, Enforced: "claimName readOnly"},
		{Of: corev1.VolumeProjection{}, Enforced: "secret downwardAPI configMap serviceAccountToken clusterTrustBundle podCertificate"},
		{Of: corev1.SecretProjection{}, Enforced: "name items optional"},
		{Of: corev1.ConfigMapProjection{}, Enforced: "name items optional"},
		{Of: corev1.DownwardAPIProjection{}, Enforced: "items"},
		{Of: corev1.ServiceAccountTokenProjection{}, Enforced: "audience expirationSeconds path",
			Rules: []Rule{{Fields: "user", Verdict: Refused, Why: noUser}}},
		{Of: corev1.ClusterTrustBundleProjection{}, Enforced: "name signerName labelSelector optional path",
			Rules: []Rule{{Fields: "user", Verdict: Refused, Why: noUser}}},
		{Of: corev1.PodCertificateProjection{},
			Enforced: "signerName keyType maxExpirationSeconds credentialBundlePath keyPath certificateChainPath userAnnotations",
			Rules:    []Rule{{Fields: "user", Verdict: Refused, Why: noUser}}},
	}
}

func hugePages(at At) bool {
	for name := range at.In.(*corev1.ResourceRequirements).Limits {
		if strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) {
			return true
		}
	}
	return false
}

// schedulingTypes are what the scheduler and the controllers act on.
func schedulingTypes() []Type {
	return []Type{
		{Of: corev1.Affinity{}, Enforced: "nodeAffinity podAffinity podAntiAffinity"},
		{Of: corev1.NodeAffinity{}, Enforced: "requiredDuringSchedulingIgnoredDuringExecution preferredDuringSchedulingIgnoredDuringExecution"},
		{Of: corev1.PodAffinity{}, Enforced: "requiredDuringSchedulingIgnoredDuringExecution preferredDuringSchedulingIgnoredDuringExecution"},
		{Of: corev1.PodAntiAffinity{}, Enforced: "requiredDuringSchedulingIgnoredDuringExecution preferredDuringSchedulingIgnoredDuringExecution"},
		{Of: corev1.NodeSelector{}, Enforced: "nodeSelectorTerms"},
		{Of: corev1.NodeSelectorTerm{}, Enforced: "matchExpressions matchFields"},
		{Of: corev1.NodeSelectorRequirement{}, Enforced: "key operator values"},
		{Of: corev1.PreferredSchedulingTerm{}, Enforced: "weight preference"},
		{Of: corev1.PodAffinityTerm{}, Enforced: "labelSelector namespaces topologyKey namespaceSelector matchLabelKeys mismatchLabelKeys"},
		{Of: corev1.WeightedPodAffinityTerm{}, Enforced: "weight podAffinityTerm"},
		{Of: corev1.Toleration{}, Enforced: "key operator value effect tolerationSeconds"},
		{Of: corev1.TopologySpreadConstraint{}, Enforced: "maxSkew topologyKey whenUnsatisfiable labelSelector minDomains nodeAffinityPolicy " +
			"nodeTaintsPolicy matchLabelKeys"},
	}
}
