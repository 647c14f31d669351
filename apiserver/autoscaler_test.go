package apiserver

import (
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
)

// One object is served under one name in two versions, and neither loses what the
// other says.
func TestAutoscalerHasTwoVersions(t *testing.T) {
	server, _ := newServer(t)
	const name = "/namespaces/default/horizontalpodautoscalers"
	v1, v2 := "/apis/autoscaling/v1"+name, "/apis/autoscaling/v2"+name
	body := `{"metadata":{"name":"web"},"spec":{"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"},"maxReplicas":5}}`
	made := mustDo[autoscalingv1.HorizontalPodAutoscaler](t, server, call{method: "POST", path: v1, body: body})
	if p := made.Spec.TargetCPUUtilizationPercentage; made.APIVersion != "autoscaling/v1" || p == nil || *p != 80 {
		t.Errorf("v1 = %+v", made)
	}
	metrics := `{"spec":{"behavior":{"scaleUp":{"stabilizationWindowSeconds":30}},"metrics":[{"type":"Pods","pods":{"metric":{"name":"rps"},"target":{"type":"AverageValue","averageValue":"10"}}}]}}`
	newer := mustDo[autoscalingv2.HorizontalPodAutoscaler](t, server, call{method: "PATCH", path: v2 + "/web", contentType: patchTypeOf["merge"], body: metrics})
	if newer.APIVersion != "autoscaling/v2" || newer.UID != made.UID || newer.Generation != 2 {
		t.Errorf("v2 = %+v", newer.ObjectMeta)
	}
	older := mustDo[autoscalingv1.HorizontalPodAutoscaler](t, server, call{path: v1 + "/web"})
	if older.ResourceVersion != newer.ResourceVersion || !strings.Contains(older.Annotations["autoscaling.alpha.kubernetes.io/metrics"], "rps") {
		t.Errorf("v1 after v2 = %+v", older.ObjectMeta)
	}
	mustDo[autoscalingv1.HorizontalPodAutoscaler](t, server, call{method: "PATCH", path: v1 + "/web", contentType: patchTypeOf["merge"], body: `{"spec":{"maxReplicas":9}}`})
	newer = mustDo[autoscalingv2.HorizontalPodAutoscaler](t, server, call{path: v2 + "/web"})
	if newer.Spec.MaxReplicas != 9 || len(newer.Spec.Metrics) != 1 || newer.Spec.Metrics[0].Pods == nil || *newer.Spec.Behavior.ScaleUp.StabilizationWindowSeconds != 30 {
		t.Errorf("v2 after v1 = %+v", newer.Spec)
	}
	managers := map[string]bool{}
	for _, entry := range newer.ManagedFields {
		managers[entry.APIVersion] = true
	}
	if !managers["autoscaling/v1"] || !managers["autoscaling/v2"] {
		t.Errorf("fields are managed in %v", managers)
	}
	if got := (call{path: v1}).do(t, server); !strings.Contains(got.body, `"apiVersion":"autoscaling/v1"`) || !strings.Contains(got.body, `"name":"web"`) {
		t.Errorf("list in v1: %s", got.body)
	}
}
