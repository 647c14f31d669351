package endpointslice

import (
	"context"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typed "k8s.io/client-go/kubernetes/typed/discovery/v1"
)

// bind makes a client whose writes of EndpointSlices use ctx: upstream's
// reconciler sends an empty context, which would lose the cause and outlive the
// term. The value lives for one call, which is why it may hold the context.
func bind(ctx context.Context, client kubernetes.Interface) kubernetes.Interface {
	return boundClient{client, ctx}
}

type boundClient struct {
	kubernetes.Interface
	ctx context.Context
}

// DiscoveryV1 returns the bound group client.
func (c boundClient) DiscoveryV1() typed.DiscoveryV1Interface {
	return boundGroup{c.Interface.DiscoveryV1(), c.ctx}
}

type boundGroup struct {
	typed.DiscoveryV1Interface
	ctx context.Context
}

// EndpointSlices returns the bound resource client.
func (g boundGroup) EndpointSlices(namespace string) typed.EndpointSliceInterface {
	return boundSlices{g.DiscoveryV1Interface.EndpointSlices(namespace), g.ctx}
}

type boundSlices struct {
	typed.EndpointSliceInterface
	ctx context.Context
}

// Create creates under the bound context.
func (s boundSlices) Create(
	_ context.Context,
	slice *discoveryv1.EndpointSlice,
	opts metav1.CreateOptions,
) (*discoveryv1.EndpointSlice, error) {
	return s.EndpointSliceInterface.Create(s.ctx, slice, opts)
}

// Update updates under the bound context.
func (s boundSlices) Update(
	_ context.Context,
	slice *discoveryv1.EndpointSlice,
	opts metav1.UpdateOptions,
) (*discoveryv1.EndpointSlice, error) {
	return s.EndpointSliceInterface.Update(s.ctx, slice, opts)
}

// Delete deletes under the bound context.
func (s boundSlices) Delete(_ context.Context, name string, opts metav1.DeleteOptions) error {
	return s.EndpointSliceInterface.Delete(s.ctx, name, opts)
}
