package quota

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kind "github.com/setpoint-io/setpoint/apiserver/resource"
)

const limitedHeader = "apiVersion: apiserver.config.k8s.io/v1\nkind: ResourceQuotaConfiguration\nlimitedResources:\n"

// TestLimited: what the administrator limits needs a quota that speaks of the object.
func TestLimited(t *testing.T) {
	const pods = "- {resource: pods, matchContains: [pods, example.com/gpu]}\n"
	const critical = "- {resource: pods, matchScopes: [{scopeName: PriorityClass, operator: In, values: [critical]}]}\n"
	hard := func(spec corev1.ResourceQuotaSpec, pairs ...string) *corev1.ResourceQuota {
		spec.Hard = list(pairs...)
		return &corev1.ResourceQuota{Spec: spec}
	}
	everything := hard(corev1.ResourceQuotaSpec{}, "pods", "5", "count/pods", "5", "requests.example.com/gpu", "5")
	terminating := *everything.DeepCopy()
	terminating.Spec.Scopes = []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeTerminating}
	forCritical := hard(corev1.ResourceQuotaSpec{ScopeSelector: &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
		{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpExists},
	}}}, "pods", "1")
	prior := pod(func(p *corev1.Pod) { p.Spec.PriorityClassName = "critical" })
	for name, tc := range map[string]struct {
		rules    string
		obj, old kind.Object
		status   bool
		quotas   []*corev1.ResourceQuota
		words    string
	}{
		"nothing is limited":     {obj: pod(nil)},
		"no quota":               {rules: pods, obj: pod(nil), words: "insufficient quota to consume: count/pods,pods,requests.example.com/gpu"},
		"a quota":                {rules: pods, obj: pod(nil), quotas: []*corev1.ResourceQuota{everything}},
		"a part of it":           {rules: pods, obj: pod(nil), quotas: []*corev1.ResourceQuota{hard(corev1.ResourceQuotaSpec{}, "pods", "5", "count/pods", "5")}, words: "insufficient quota to consume: requests.example.com/gpu"},
		"of other pods":          {rules: pods, obj: pod(nil), quotas: []*corev1.ResourceQuota{&terminating}, words: "insufficient quota to consume"},
		"another kind":           {rules: "- {resource: secrets, matchContains: [pods]}\n", obj: pod(nil)},
		"no more than before":    {rules: pods, obj: pod(nil), old: pod(nil)},
		"the status":             {rules: pods, obj: pod(nil), status: true},
		"gone":                   {rules: pods, old: pod(nil)},
		"a scope without quota":  {rules: critical, obj: prior, quotas: []*corev1.ResourceQuota{everything}, words: "insufficient quota to match these scopes: [{PriorityClass In [critical]}]"},
		"a scope with quota":     {rules: critical, obj: prior, quotas: []*corev1.ResourceQuota{forCritical}},
		"not in the scope":       {rules: critical, obj: pod(nil)},
		"no more in a scope":     {rules: critical, obj: prior, old: prior},
		"another scope's quota":  {rules: critical, obj: prior, quotas: []*corev1.ResourceQuota{&terminating}, words: "match these scopes"},
		"a quota of other names": {rules: pods, obj: pod(nil), quotas: []*corev1.ResourceQuota{hard(corev1.ResourceQuotaSpec{}, "secrets", "5")}, words: "consume: count/pods,pods"},
	} {
		t.Run(name, func(t *testing.T) {
			var text string
			if tc.rules != "" {
				text = limitedHeader + tc.rules
			}
			limited, err := ParseLimited([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			k := &kind.Any{GroupVersionKind: schema.GroupVersionKind{Version: "v1"}, Plural: "pods"}
			err = limited.judge(Write{Kind: k, Obj: tc.obj, Old: tc.old, Status: tc.status}, meterOf(k), tc.quotas)
			if (err != nil) != (tc.words != "") || err != nil && !strings.Contains(err.Error(), tc.words) {
				t.Errorf("it says %v", err)
			}
		})
	}
}

func TestParseLimited(t *testing.T) {
	for text, words := range map[string]string{
		limitedHeader + "- {apiGroup: apps}\n":                                                "limitedResources[0].resource",
		limitedHeader + "- {resource: pods, other: 1}\n":                                      `unknown field "limitedResources[0].other"`,
		"apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins: []\n": "AdmissionConfiguration",
	} {
		if _, err := ParseLimited([]byte(text)); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s\n%v", text, err)
		}
	}
}
