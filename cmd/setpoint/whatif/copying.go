package whatif

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/setpoint-io/setpoint"
	"github.com/setpoint-io/setpoint/internal/localvolume"
	"github.com/setpoint-io/setpoint/internal/parts"
	"github.com/setpoint-io/setpoint/internal/simulatednode"
	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/raftstore/command"
)

const (
	// noticeBySession is within which time the loss of a node with an agent is known, noticeByLease of another.
	noticeBySession = 8 * time.Second
	noticeByLease   = 40 * time.Second
)

// copying is what is made of the objects of a cluster on their way into its fork, and what is learned of them.
type copying struct {
	codec runtime.Serializer
	nodes []setpoint.PlayedNode
	pods  []*corev1.Pod
	// serviceCIDR and localVolumes are settings of the cluster that its objects tell.
	serviceCIDR  string
	localVolumes bool
	// secrets are the types of Secrets by NAMESPACE/NAME, which is all that is known of them.
	secrets map[string]corev1.SecretType
	// addresses are those of nodes.
	addresses map[string][]corev1.NodeAddress
	// servers are the addresses of the cluster's voters by their names.
	servers map[string]string
	// scaled are what autoscalers have in their hands.
	scaled []*autoscalingv2.HorizontalPodAutoscaler
	// What the fork lacks or holds still, for the assumptions.
	webhooks, aggregated, converted, cronJobs, scalers, drivers, attached, unready []string
	encrypted                                                                      map[string]int
	// notes are what else is to be said.
	notes  []string
	broken error
}

func newCopying(secrets map[string]corev1.SecretType) (*copying, error) {
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, apiextensionsv1.AddToScheme, apiregistrationv1.AddToScheme} {
		if err := add(known); err != nil {
			return nil, err
		}
	}
	return &copying{
		codec: protobuf.NewSerializer(known, known), secrets: secrets,
		encrypted: map[string]int{}, servers: map[string]string{}, addresses: map[string][]corev1.NodeAddress{},
	}, nil
}

// rewrite is for setpoint.ReadBackup.
func (c *copying) rewrite(key, uid string, value []byte) []byte {
	resource, name := split(key)
	if len(value) > 0 && value[0] == command.EncodingEncrypted {
		return c.sealed(resource, name, uid)
	}
	switch resource {
	case "core/nodes":
		return edited(c, value, c.node)
	case "core/pods":
		return edited(c, value, c.pod)
	case "core/secrets":
		return c.sealed(resource, name, uid)
	case "batch/cronjobs":
		return edited(c, value, c.cronJob)
	case "autoscaling/horizontalpodautoscalers":
		return edited(c, value, c.autoscaler)
	case "admissionregistration.k8s.io/mutatingwebhookconfigurations":
		return edited(c, value, func(w *admissionv1.MutatingWebhookConfiguration) change {
			for i := range w.Webhooks {
				c.webhooks = append(c.webhooks, w.Webhooks[i].Name)
			}
			return left
		})
	case "admissionregistration.k8s.io/validatingwebhookconfigurations":
		return edited(c, value, func(w *admissionv1.ValidatingWebhookConfiguration) change {
			for i := range w.Webhooks {
				c.webhooks = append(c.webhooks, w.Webhooks[i].Name)
			}
			return left
		})
	}
	return c.others(resource, value)
}

// others are kinds of which few objects are looked at.
func (c *copying) others(resource string, value []byte) []byte {
	switch resource {
	case "apiregistration.k8s.io/apiservices":
		return edited(c, value, c.apiService)
	case "apiextensions.k8s.io/customresourcedefinitions":
		return edited(c, value, c.definition)
	case "networking.k8s.io/servicecidrs":
		return edited(c, value, func(cidr *networkingv1.ServiceCIDR) change {
			if cidr.Name == "kubernetes" {
				c.serviceCIDR = strings.Join(cidr.Spec.CIDRs, ",")
			}
			return same
		})
	case "core/persistentvolumes":
		return edited(c, value, func(volume *corev1.PersistentVolume) change {
			if csi := volume.Spec.CSI; csi != nil && csi.Driver != localvolume.Driver {
				c.attached = append(c.attached, csi.Driver)
			}
			return same
		})
	case "storage.k8s.io/storageclasses":
		return edited(c, value, c.class)
	}
	return value
}

// change is what is made of one object.
type change int

const (
	same change = iota
	other
	left
)

// edited decodes a value, and encodes it again if it was changed. What cannot be read stays as it is.
func edited[T any, P interface {
	*T
	runtime.Object
}](c *copying, value []byte, edit func(P) change) []byte {
	if len(value) == 0 || value[0] != command.EncodingProtobuf {
		return value
	}
	object := P(new(T))
	if _, _, err := c.codec.Decode(value[1:], nil, object); err != nil {
		c.broken = fmt.Errorf("an object of the backup cannot be read: %w", err)
		return value
	}
	kind := object.GetObjectKind().GroupVersionKind()
	switch edit(object) {
	case left:
		return nil
	case same:
		return value
	}
	object.GetObjectKind().SetGroupVersionKind(kind)
	return c.encode(object, value)
}

func (c *copying) encode(object runtime.Object, or []byte) []byte {
	out := bytes.NewBuffer([]byte{command.EncodingProtobuf})
	if err := c.codec.Encode(object, out); err != nil {
		c.broken = err
		return or
	}
	return out.Bytes()
}

// node makes a Node one that a simulated one plays.
func (c *copying) node(node *corev1.Node) change {
	played := setpoint.PlayedNode{Name: node.Name, Notice: noticeByLease}
	if node.Annotations[trust.NodeKeyAnnotation] != "" {
		played.Notice = noticeBySession
	}
	played.Off = true
	c.addresses[node.Name] = node.Status.Addresses
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			// The agent of a node that says of itself that it is not ready lives.
			played.Off, played.Lost = condition.Status == corev1.ConditionUnknown, condition.Status == corev1.ConditionUnknown
			if condition.Status != corev1.ConditionTrue {
				c.unready = append(c.unready, node.Name)
			}
		}
	}
	c.nodes = append(c.nodes, played)
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	node.Labels[simulatednode.Label] = setpoint.PlayedPrefix
	return other
}

func (c *copying) class(class *storagev1.StorageClass) change {
	switch class.Provisioner {
	case localvolume.Driver:
		c.localVolumes = true
	case "kubernetes.io/no-provisioner":
	default:
		c.drivers = append(c.drivers, class.Provisioner)
	}
	return same
}

func (c *copying) cronJob(job *batchv1.CronJob) change {
	if job.Spec.Suspend != nil && *job.Spec.Suspend {
		return same
	}
	yes := true
	job.Spec.Suspend = &yes
	c.cronJobs = append(c.cronJobs, job.Namespace+"/"+job.Name)
	return other
}

func (c *copying) apiService(service *apiregistrationv1.APIService) change {
	if service.Spec.Service == nil {
		return same
	}
	c.aggregated = append(c.aggregated, service.Name)
	return left
}

func (c *copying) definition(crd *apiextensionsv1.CustomResourceDefinition) change {
	if crd.Spec.Conversion == nil || crd.Spec.Conversion.Strategy != apiextensionsv1.WebhookConverter {
		return same
	}
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	c.converted = append(c.converted, crd.Name)
	return other
}

// sealed is what is made of a value that only the cluster's keys can read: of a Secret its name and type, of others nothing.
func (c *copying) sealed(resource, key, uid string) []byte {
	namespace, name, found := strings.Cut(key, "/")
	if resource != "core/secrets" || !found {
		c.encrypted[resource]++
		return nil
	}
	return c.encode(&corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(uid), CreationTimestamp: metav1.Now()},
		Type:       cmp.Or(c.secrets[key], corev1.SecretTypeOpaque),
	}, nil)
}

// noVoter is what the pod of a server's store says that has no vote.
const noVoter = "NoVoter"

// pod remembers a pod. Those of the servers tell where these are.
func (c *copying) pod(pod *corev1.Pod) change {
	c.pods = append(c.pods, pod)
	server, part, is := parts.Of(pod)
	if ready := condition(pod, corev1.PodReady); is && part == parts.Store && (ready == nil || ready.Reason != noVoter) {
		c.servers[server] = pod.Status.HostIP
	}
	return same
}

// autoscaler leaves one out: without load its decisions mean nothing.
func (c *copying) autoscaler(of *autoscalingv2.HorizontalPodAutoscaler) change {
	c.scalers = append(c.scalers, of.Namespace+"/"+of.Name)
	c.scaled = append(c.scaled, of)
	return left
}

// split is GROUP/RESOURCE and the rest of a key of the store.
func split(key string) (resource, name string) {
	parts := strings.SplitN(strings.TrimPrefix(key, "/"), "/", 3)
	if len(parts) < 3 {
		return key, ""
	}
	return parts[0] + "/" + parts[1], parts[2]
}

// assumptions are how the fork differs from the cluster, by design.
func (c *copying) assumptions() []string {
	all := []string{
		"nodes are simulated: a pod runs when others of its kind did, or at once, and ends when it is told to",
		"pods end at once, volumes attach at once, and local volumes can be made on every node: times are lower bounds",
		"programs beside the control plane, such as operators, do nothing; nobody else writes",
		"servers have the flags of the default; webhooks that are applied are not asked either, and what converts or aggregates is not reached",
	}
	add := func(names []string, text string) {
		if len(names) > 0 {
			slices.Sort(names)
			all = append(all, fmt.Sprintf(text, shortened(slices.Compact(names))))
		}
	}
	add(c.webhooks, "webhooks accept everything and change nothing: %s")
	add(c.aggregated, "aggregated APIs answer nothing: %s")
	add(c.converted, "versions of custom kinds differ by name alone: %s")
	add(c.drivers, "drivers make no volumes, so that a pod with a new claim of theirs waits: %s")
	add(c.cronJobs, "CronJobs start nothing: %s")
	add(c.scalers, "autoscalers do nothing, not even within their bounds: %s")
	add(c.attached, "volumes attach at once wherever a pod goes, which takes these drivers minutes when a node is lost: %s")
	add(c.unready, "nodes that are not ready stay so: %s")
	add(slices.Collect(maps.Keys(c.encrypted)), "objects that are encrypted are missing: %s")
	return append(all, c.notes...)
}

// namesShown bounds the names in one line.
const namesShown = 5

func shortened(names []string) string {
	if more := len(names) - namesShown; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:namesShown], ", "), more)
	}
	return strings.Join(names, ", ")
}
