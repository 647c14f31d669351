package agent

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/agent/node"
)

// embeddedRuntime begins the version of the runtime that is built in, which bounds the group of all pods.
const embeddedRuntime = "setpoint://"

func (a *agent) runtimeVersion(ctx context.Context) string {
	v, err := a.Runtime.Version(ctx, "v1")
	if err != nil {
		return ""
	}
	return v.RuntimeName + "://" + v.RuntimeVersion
}

// runtimeName prefixes container ids.
func (a *agent) runtimeName(ctx context.Context) string {
	v, err := a.Runtime.Version(ctx, "v1")
	if err != nil || v.RuntimeName == "" {
		return "setpoint"
	}
	return v.RuntimeName
}

// runtimeFeatures are what the runtime reports of itself, for the Node's status; an old one reports nothing.
func (a *agent) runtimeFeatures(ctx context.Context) node.RuntimeFeatures {
	answer, err := a.Runtime.Status(ctx, false)
	if err != nil {
		return node.RuntimeFeatures{}
	}
	var out node.RuntimeFeatures
	for _, h := range answer.GetRuntimeHandlers() {
		out.Handlers = append(out.Handlers, handlerOf(h))
	}
	if f := answer.GetFeatures(); f != nil {
		out.Node = &corev1.NodeFeatures{SupplementalGroupsPolicy: ptr.To(f.GetSupplementalGroupsPolicy())}
	}
	return out
}

func handlerOf(h *runtimeapi.RuntimeHandler) corev1.NodeRuntimeHandler {
	out := corev1.NodeRuntimeHandler{Name: h.GetName()}
	if f := h.GetFeatures(); f != nil {
		out.Features = &corev1.NodeRuntimeHandlerFeatures{
			RecursiveReadOnlyMounts: ptr.To(f.GetRecursiveReadOnlyMounts()), UserNamespaces: ptr.To(f.GetUserNamespaces()),
		}
	}
	return out
}

// images lists what the runtime holds, for the Node's status.
func (a *agent) images(ctx context.Context) []corev1.ContainerImage {
	list, err := a.Runtime.ListImages(ctx, nil)
	if err != nil {
		return nil
	}
	var out []corev1.ContainerImage
	for _, i := range list {
		out = append(
			out,
			corev1.ContainerImage{Names: append(append([]string(nil), i.RepoDigests...), i.RepoTags...), SizeBytes: int64(i.Size)},
		)
	}
	return out
}
