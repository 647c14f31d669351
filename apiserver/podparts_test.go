package apiserver

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestEphemeralContainers(t *testing.T) {
	server, _ := newServer(t)
	mustDo[corev1.Pod](t, server, call{method: "POST", path: podPath, body: podBody("p")})
	patch := func(body string) answer {
		return call{method: "PATCH", path: podPath + "/p/ephemeralcontainers", contentType: patchTypeOf["strategic"], body: body}.do(t, server)
	}
	got := patch(`{"spec":{"nodeName":"n","ephemeralContainers":[{"name":"look","image":"i","targetContainerName":"c"}]}}`)
	if got.code != 200 {
		t.Fatalf("%d %s", got.code, got.body)
	}
	pod := mustDo[corev1.Pod](t, server, call{path: podPath + "/p"})
	if len(pod.Spec.EphemeralContainers) != 1 || pod.Spec.EphemeralContainers[0].ImagePullPolicy == "" || pod.Spec.NodeName != "" || pod.Generation != 2 {
		t.Errorf("pod = %+v", pod)
	}
	for name, body := range map[string]string{
		`existing ephemeral containers "look" may not be changed`:                                    `{"spec":{"ephemeralContainers":[{"name":"look","image":"j"}]}}`,
		`existing ephemeral containers "look" may not be removed`:                                    `{"spec":{"ephemeralContainers":[{"name":"look","$patch":"delete"}]}}`,
		`spec.ephemeralContainers[0].name: Duplicate value: "c"`:                                     `{"spec":{"ephemeralContainers":[{"name":"c","image":"i"}]}}`,
		`spec.ephemeralContainers[0].targetContainerName: Not found: "d"`:                            `{"spec":{"ephemeralContainers":[{"name":"e","image":"i","targetContainerName":"d"}]}}`,
		`spec.ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral Container`:     `{"spec":{"ephemeralContainers":[{"name":"e","image":"i","ports":[{"containerPort":80}]}]}}`,
		`spec.ephemeralContainers[0].resources: Forbidden: cannot be set for an Ephemeral Container`: `{"spec":{"ephemeralContainers":[{"name":"e","image":"i","resources":{"limits":{"cpu":"1"}}}]}}`,
		`spec.ephemeralContainers[0].volumeMounts[0].name: Not found: "v"`:                           `{"spec":{"ephemeralContainers":[{"name":"e","image":"i","volumeMounts":[{"name":"v","mountPath":"/v"}]}]}}`,
	} {
		refusal{code: 422, reason: metav1.StatusReasonInvalid, messageHas: name}.check(t, name, patch(body))
	}
	refusal{code: 422, reason: metav1.StatusReasonInvalid}.check(t, "by an ordinary update",
		call{method: "PATCH", path: podPath + "/p", contentType: patchTypeOf["strategic"], body: `{"spec":{"ephemeralContainers":[{"name":"e","image":"i"}]}}`}.do(t, server))
}

func TestResize(t *testing.T) {
	server, _ := newServer(t)
	body := `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"100m","memory":"64Mi"},"limits":{"cpu":"1"}}}]}}`
	mustDo[corev1.Pod](t, server, call{method: "POST", path: podPath, body: body})
	patch := func(body string) answer {
		return call{method: "PATCH", path: podPath + "/p/resize", contentType: patchTypeOf["strategic"], body: body}.do(t, server)
	}
	if got := patch(`{"spec":{"containers":[{"name":"c","image":"other","resources":{"requests":{"cpu":"200m"}}}]}}`); got.code != 200 {
		t.Fatalf("%d %s", got.code, got.body)
	}
	pod := mustDo[corev1.Pod](t, server, call{path: podPath + "/p"})
	c := pod.Spec.Containers[0]
	if cpu := c.Resources.Requests[corev1.ResourceCPU]; cpu.String() != "200m" || c.Image != "i" || pod.Generation != 2 {
		t.Errorf("generation %d, container %+v", pod.Generation, c)
	}
	for want, body := range map[string]string{
		"Pod QOS Class may not change as a result of resizing": `{"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"1","memory":"64Mi"},"limits":{"cpu":"1","memory":"64Mi"}}}]}}`,
		"resource limits cannot be removed":                    `{"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":null}}}]}}`,
		"only cpu and memory resources are mutable":            `{"spec":{"containers":[{"name":"c","resources":{"requests":{"ephemeral-storage":"1Gi"}}}]}}`,
		"containers may not be added or removed on resize":     `{"spec":{"containers":[{"name":"d","image":"i"}]}}`,
		"must be less than or equal to cpu limit of 1":         `{"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"2"}}}]}}`,
	} {
		refusal{code: 422, reason: metav1.StatusReasonInvalid, messageHas: want}.check(t, want, patch(body))
	}
}
