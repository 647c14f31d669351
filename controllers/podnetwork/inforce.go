package podnetwork

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/internal/servicerange"
)

const (
	// ServiceCIDR is the object that has the range of Services, upstream's name.
	ServiceCIDR = "kubernetes"
	// Name of the ConfigMap in kube-system that says which network is in force.
	Name = servicerange.ConfigMap

	cidrKey          = servicerange.ConfigMapPodsKey
	nodeMaskSizeKey  = "nodeCIDRMaskSize"
	nodeMaskSize6Key = "nodeCIDRMaskSizeIPv6"
	servicesKey      = servicerange.ConfigMapKey
)

var (
	// ErrUnreadable says that somebody has overwritten what is in force.
	ErrUnreadable = fmt.Errorf("ConfigMap %s/%s does not say what the pod network is", metav1.NamespaceSystem, Name)
	// ErrServicesStay says that other ranges of Services were asked for than the cluster has.
	ErrServicesStay = errors.New(
		"a range of Services never changes, only a first one of IPv6 may be added: start every server with what the cluster has",
	)
	// ErrNodesDoNotFit says that a network was asked for in which nodes that exist have no place.
	ErrNodesDoNotFit = errors.New(
		"the pod network cannot change while nodes have ranges that do not fit: drain and delete them first, or start the servers with what is in force",
	)
)

// Read returns the network in force. In a cluster that has not said it, found is false and the network is the default.
func Read(ctx context.Context, client kubernetes.Interface) (n Network, found bool, err error) {
	object, err := client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return Default(), false, nil
	}
	if err != nil {
		return Network{}, false, err
	}
	if n, err = readNetwork(object.Data); err != nil {
		return Network{}, false, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	return n, true, nil
}

func readNetwork(data map[string]string) (n Network, err error) {
	for key, into := range map[string]*int{nodeMaskSizeKey: &n.NodeMaskSize, nodeMaskSize6Key: &n.NodeMaskSize6} {
		if text := data[key]; text != "" {
			if *into, err = strconv.Atoi(text); err != nil {
				return n, err
			}
		}
	}
	var ok bool
	if n.CIDR, n.CIDR6, ok = servicerange.Split(data[cidrKey]); !ok {
		return n, fmt.Errorf("%q: %w", data[cidrKey], ErrCIDR)
	}
	if n.Services, n.Services6, err = servicerange.Parse(data[servicesKey]); err != nil {
		return n, err
	}
	n.Services = servicerange.Or(n.Services) // older clusters do not say it
	return n, n.Validate()
}

// Write puts a network in force.
func Write(ctx context.Context, client kubernetes.Interface, n Network) error {
	maps := client.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: Name}, Data: map[string]string{
		cidrKey: servicerange.Join(n.CIDR, n.CIDR6), nodeMaskSizeKey: strconv.Itoa(n.NodeMaskSize),
		servicesKey: servicerange.Join(n.Services, n.Services6),
	}}
	if n.IsDual() {
		object.Data[nodeMaskSize6Key] = strconv.Itoa(n.NodeMaskSize6)
	}
	_, err := maps.Create(ctx, object, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = maps.Update(ctx, object, metav1.UpdateOptions{})
	}
	return err
}

// judgeServices fails with ErrServicesStay if others were asked for than the ServiceCIDR says. Where it has one of IPv4 only, one of
// IPv6 may be added; one that somebody else has added there ends no server that was started without.
func judgeServices(ctx context.Context, client kubernetes.Interface, asked, inForce Network) error {
	wanted := servicerange.Texts(servicerange.Or(asked.Services), asked.Services6)
	object, err := client.NetworkingV1().ServiceCIDRs().Get(ctx, ServiceCIDR, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	has := object.Spec.CIDRs
	if !inForce.IsDual() && !asked.Services6.IsValid() {
		has = has[:min(1, len(has))]
	}
	if len(has) > len(wanted) || !slices.Equal(has, wanted[:len(has)]) {
		return fmt.Errorf("--service-cidr %s, but the cluster has %s: %w", strings.Join(wanted, ","), strings.Join(has, ","), ErrServicesStay)
	}
	return nil
}

// Judge returns the network that asked makes of the one in force, and whether that has to be
// written: it is another one, or none was. What somebody has overwritten counts as none.
// It fails with ErrServicesStay, and with ErrNodesDoNotFit when a node has a range that only the former gives.
func Judge(ctx context.Context, client kubernetes.Interface, asked Network) (wanted Network, write bool, err error) {
	inForce, found, err := Read(ctx, client)
	if errors.Is(err, ErrUnreadable) {
		inForce, err = Default(), nil
	}
	if err != nil {
		return wanted, false, err
	}
	if err := judgeServices(ctx, client, asked, inForce); err != nil {
		return wanted, false, err
	}
	wanted = asked.Or(inForce)
	wanted.Services = servicerange.Or(asked.Services)
	if err := wanted.Validate(); err != nil {
		return wanted, false, fmt.Errorf("%w: %w", ErrNodesDoNotFit, err)
	}
	if wanted == inForce {
		return wanted, !found, nil
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return wanted, false, err
	}
	for i := range nodes.Items {
		if cidr := lost(&nodes.Items[i], inForce, wanted); cidr != "" {
			return wanted, false, fmt.Errorf("pod network %s, but node %s has %s of %s: %w", wanted, nodes.Items[i].Name, cidr, inForce, ErrNodesDoNotFit)
		}
	}
	return wanted, true, nil
}

// lost is a range of the node that only the former network gives; "": there is none.
func lost(node *corev1.Node, former, wanted Network) string {
	for _, cidr := range append([]string{node.Spec.PodCIDR}, node.Spec.PodCIDRs...) {
		_, had := former.Range(cidr)
		if _, has := wanted.Range(cidr); had && !has {
			return cidr
		}
	}
	return ""
}
