package podnetwork

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
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
	Name = "pod-network"

	cidrKey         = "podCIDR"
	nodeMaskSizeKey = "nodeCIDRMaskSize"
	servicesKey     = "serviceCIDR"
)

var (
	// ErrUnreadable says that somebody has overwritten what is in force.
	ErrUnreadable = fmt.Errorf("ConfigMap %s/%s does not say what the pod network is", metav1.NamespaceSystem, Name)
	// ErrServicesStay says that another range of Services was asked for than the cluster began with.
	ErrServicesStay = errors.New("the range of Services never changes: start every server with what the cluster has")
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
	n.CIDR, err = netip.ParsePrefix(object.Data[cidrKey])
	if err == nil {
		n.NodeMaskSize, err = strconv.Atoi(object.Data[nodeMaskSizeKey])
	}
	if n.Services = servicerange.Default; err == nil && object.Data[servicesKey] != "" { // older clusters do not say it
		n.Services, err = netip.ParsePrefix(object.Data[servicesKey])
	}
	if err == nil {
		err = n.Validate()
	}
	if err != nil {
		return Network{}, false, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	return n, true, nil
}

// Write puts a network in force.
func Write(ctx context.Context, client kubernetes.Interface, n Network) error {
	maps := client.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	object := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: Name},
		Data: map[string]string{
			cidrKey: n.CIDR.String(), nodeMaskSizeKey: strconv.Itoa(n.NodeMaskSize), servicesKey: n.Services.String(),
		},
	}
	_, err := maps.Create(ctx, object, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = maps.Update(ctx, object, metav1.UpdateOptions{})
	}
	return err
}

// servicesInForce is the range that the ServiceCIDR says, which never changes, or what is asked for where there is none yet.
// It fails with ErrServicesStay if another was asked for.
func servicesInForce(ctx context.Context, client kubernetes.Interface, asked Network) (netip.Prefix, error) {
	wanted := servicerange.Or(asked.Services)
	object, err := client.NetworkingV1().ServiceCIDRs().Get(ctx, ServiceCIDR, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return wanted, nil
	}
	if err != nil {
		return wanted, err
	}
	if !slices.Contains(object.Spec.CIDRs, wanted.String()) {
		return wanted, fmt.Errorf("--service-cidr %s, but the cluster has %s: %w", wanted, strings.Join(object.Spec.CIDRs, ","), ErrServicesStay)
	}
	return wanted, nil
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
	services, err := servicesInForce(ctx, client, asked)
	if err != nil {
		return wanted, false, err
	}
	wanted = asked.Or(inForce)
	wanted.Services = services
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
		name, cidr := nodes.Items[i].Name, nodes.Items[i].Spec.PodCIDR
		_, had := inForce.Range(cidr)
		if _, has := wanted.Range(cidr); had && !has {
			return wanted, false, fmt.Errorf("pod network %s, but node %s has %s of %s: %w", wanted, name, cidr, inForce, ErrNodesDoNotFit)
		}
	}
	return wanted, true, nil
}
