package podresources

import (
	"context"

	api "k8s.io/kubelet/pkg/apis/podresources/v1"
	alpha "k8s.io/kubelet/pkg/apis/podresources/v1alpha1"
)

// former answers monitors that speak v1alpha1, which knows devices of plugins only.
type former struct {
	alpha.UnimplementedPodResourcesListerServer
	of *service
}

// List tells of all pods that have not ended.
func (f *former) List(ctx context.Context, _ *alpha.ListPodResourcesRequest) (*alpha.ListPodResourcesResponse, error) {
	list, err := f.of.List(ctx, &api.ListPodResourcesRequest{})
	if err != nil {
		return nil, err
	}
	answer := &alpha.ListPodResourcesResponse{}
	for _, pod := range list.PodResources {
		one := &alpha.PodResources{Name: pod.Name, Namespace: pod.Namespace}
		for _, c := range pod.Containers {
			container := &alpha.ContainerResources{Name: c.Name}
			for _, d := range c.Devices {
				container.Devices = append(container.Devices, &alpha.ContainerDevices{ResourceName: d.ResourceName, DeviceIds: d.DeviceIds})
			}
			one.Containers = append(one.Containers, container)
		}
		answer.PodResources = append(answer.PodResources, one)
	}
	return answer, nil
}
