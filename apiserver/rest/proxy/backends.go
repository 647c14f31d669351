package proxy

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/apiserver/storage"
)

var (
	nodesResource    = corev1.SchemeGroupVersion.WithResource("nodes")
	podsResource     = corev1.SchemeGroupVersion.WithResource("pods")
	servicesResource = corev1.SchemeGroupVersion.WithResource("services")
	slicesResource   = discoveryv1.SchemeGroupVersion.WithResource("endpointslices")
)

// serviceBackends finds pods behind Services. A server need not be a node, so the
// Service's own address may lead nowhere from here.
type serviceBackends struct {
	services, pods, slices *storage.Table
}

// backend is one address and port.
type backend struct{ host, port string }

// pick returns any ready pod behind a port of a Service, which is named or numbered.
func (b serviceBackends) pick(ctx context.Context, namespace, service, port string) (host, number string, err error) {
	name, err := b.portName(ctx, namespace, service, port)
	if err != nil {
		return "", "", err
	}
	ready, err := b.ready(ctx, namespace, service, name)
	if err != nil {
		return "", "", err
	}
	if len(ready) == 0 {
		return "", "", apierrors.NewServiceUnavailable(fmt.Sprintf("no endpoints available for service %q", service))
	}
	chosen := ready[rand.IntN(len(ready))]
	return chosen.host, chosen.port, nil
}

// portName is the name by which endpoints know a port.
func (b serviceBackends) portName(ctx context.Context, namespace, service, port string) (string, error) {
	number, err := strconv.ParseInt(port, 10, 64)
	if err != nil {
		return port, nil
	}
	found, err := b.services.Get(ctx, namespace, service, "")
	if err != nil {
		return "", err
	}
	ports := found.Object().(*corev1.Service).Spec.Ports
	i := slices.IndexFunc(ports, func(p corev1.ServicePort) bool { return int64(p.Port) == number })
	if i < 0 {
		return "", apierrors.NewServiceUnavailable(fmt.Sprintf("no service port %d found for service %q", number, service))
	}
	return ports[i].Name, nil
}

// ready lists the pods of the namespace that serve a port of a Service.
func (b serviceBackends) ready(ctx context.Context, namespace, service, port string) ([]backend, error) {
	endpoints, err := b.slices.Snapshot(ctx, "")
	if err != nil {
		return nil, err
	}
	pods, err := b.pods.Snapshot(ctx, "0")
	if err != nil {
		return nil, err
	}
	var all []backend
	for obj, err := range endpoints.All(namespace) {
		if err != nil {
			return nil, err
		}
		slice := obj.(*discoveryv1.EndpointSlice)
		number, serves := portOf(slice, port)
		if !serves || slice.Labels[discoveryv1.LabelServiceName] != service {
			continue
		}
		for i := range slice.Endpoints {
			if address, ok := podAddress(pods, namespace, &slice.Endpoints[i]); ok {
				all = append(all, backend{address, number})
			}
		}
	}
	return all, nil
}

func portOf(slice *discoveryv1.EndpointSlice, name string) (number string, serves bool) {
	for _, p := range slice.Ports {
		if p.Port != nil && (p.Name == nil && name == "" || p.Name != nil && *p.Name == name) {
			return strconv.Itoa(int(*p.Port)), true
		}
	}
	return "", false
}

// podAddress is a ready endpoint's address, if it really is one of its pod: slices can be
// written by hand, and must not lead a client elsewhere.
func podAddress(pods storage.Snapshot, namespace string, e *discoveryv1.Endpoint) (string, bool) {
	notReady := e.Conditions.Ready != nil && !*e.Conditions.Ready
	if notReady || len(e.Addresses) == 0 || e.TargetRef == nil || e.TargetRef.Namespace != namespace {
		return "", false
	}
	obj, err := pods.Get(namespace, e.TargetRef.Name)
	pod, ok := obj.(*corev1.Pod)
	if err != nil || !ok {
		return "", false
	}
	own := slices.ContainsFunc(pod.Status.PodIPs, func(ip corev1.PodIP) bool { return ip.IP == e.Addresses[0] })
	return e.Addresses[0], own
}
