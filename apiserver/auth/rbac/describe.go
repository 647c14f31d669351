package rbac

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// describe writes rules out for people, one a line, those that differ only in verbs together.
func describe(rules []rbacv1.PolicyRule) []string {
	var order []string
	verbs := map[string][]string{}
	for _, r := range rules {
		target := describeTarget(r)
		if _, ok := verbs[target]; !ok {
			order = append(order, target)
		}
		verbs[target] = append(verbs[target], r.Verbs...)
	}
	for i, target := range order {
		order[i] = fmt.Sprintf("{%sVerbs:%q}", target, verbs[target])
	}
	slices.Sort(order)
	return order
}

func describeTarget(r rbacv1.PolicyRule) string {
	var parts strings.Builder
	for _, part := range []struct {
		name   string
		values []string
	}{
		{"APIGroups", r.APIGroups}, {"Resources", r.Resources}, {"NonResourceURLs", r.NonResourceURLs}, {"ResourceNames", r.ResourceNames},
	} {
		if len(part.values) > 0 {
			fmt.Fprintf(&parts, "%s:%q, ", part.name, part.values)
		}
	}
	return parts.String()
}
