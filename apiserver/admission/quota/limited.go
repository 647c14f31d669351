package quota

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	plugin "k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota/apis/resourcequota"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota/apis/resourcequota/validation"
	quotav1 "k8s.io/apiserver/pkg/quota/v1"
)

// Limited are resources that nobody may use in a namespace without a quota for them. The zero value limits nothing.
type Limited struct {
	rules []resourcequota.LimitedResource
}

// ParseLimited reads a ResourceQuotaConfiguration of upstream's; no text limits nothing.
func ParseLimited(text []byte) (Limited, error) {
	if len(text) == 0 {
		return Limited{}, nil
	}
	config, err := plugin.LoadConfiguration(bytes.NewReader(text))
	if err == nil {
		err = validation.ValidateConfiguration(config).ToAggregate()
	}
	if err != nil {
		return Limited{}, fmt.Errorf("admission plugin ResourceQuota: %w", err)
	}
	return Limited{config.LimitedResources}, nil
}

// judge refuses a write that uses more of what is limited, if none of the namespace's quotas covers it.
func (l Limited) judge(w Write, m meter, quotas []*corev1.ResourceQuota) error {
	if len(l.rules) == 0 || w.Status || w.Obj == nil {
		return nil
	}
	used := m.usage(&corev1.ResourceQuota{}, w.Obj)
	if w.Old != nil {
		more := quotav1.SubtractWithNonNegativeResult(used, m.usage(&corev1.ResourceQuota{}, w.Old))
		if len(quotav1.RemoveZeros(more)) == 0 {
			return nil
		}
	}
	if names := l.withoutQuota(w, m, used, quotas); len(names) > 0 {
		return forbidden(w, fmt.Errorf("insufficient quota to consume: %s", strings.Join(names, ",")))
	}
	if scopes := l.withoutScope(w, quotas); len(scopes) > 0 {
		return forbidden(w, fmt.Errorf("insufficient quota to match these scopes: %v", scopes))
	}
	return nil
}

// withoutQuota are the names of what is limited and used, and that no quota which speaks of the object has.
func (l Limited) withoutQuota(w Write, m meter, used corev1.ResourceList, quotas []*corev1.ResourceQuota) (names []string) {
	for name, amount := range used {
		covers := func(q *corev1.ResourceQuota) bool {
			return inScopes(q, w.Obj) && slices.Contains(m.limited(quotav1.ResourceNames(q.Spec.Hard)), name)
		}
		if amount.Sign() > 0 && l.names(w.Kind.GroupResource(), name) && !slices.ContainsFunc(quotas, covers) {
			names = append(names, string(name))
		}
	}
	slices.Sort(names)
	return names
}

// names reports whether a rule is about a name of a resource's usage.
func (l Limited) names(of schema.GroupResource, name corev1.ResourceName) bool {
	return slices.ContainsFunc(l.rules, func(rule resourcequota.LimitedResource) bool {
		return rule.APIGroup == of.Group && rule.Resource == of.Resource &&
			slices.ContainsFunc(rule.MatchContains, func(part string) bool { return strings.Contains(string(name), part) })
	})
}

// withoutScope are the limited scopes that the object is in, and that no quota has, whatever it limits.
func (l Limited) withoutScope(w Write, quotas []*corev1.ResourceQuota) (scopes []corev1.ScopedResourceSelectorRequirement) {
	covered := map[corev1.ResourceQuotaScope]bool{}
	for _, q := range quotas {
		for _, r := range requirements(q) {
			covered[r.ScopeName] = covered[r.ScopeName] || inScope(r, w.Obj)
		}
	}
	for _, rule := range l.rules {
		for _, r := range rule.MatchScopes {
			if inScope(r, w.Obj) && !covered[r.ScopeName] {
				scopes = append(scopes, r)
			}
		}
	}
	return scopes
}
