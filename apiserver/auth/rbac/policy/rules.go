package policy

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Verbs that go together.
const (
	read      = "get list watch"
	write     = "create update patch delete deletecollection"
	readWrite = read + " " + write
	change    = "update patch"
)

// core is the group without a name, in lists of groups.
const core = "core"

// rule grants verbs on resources of groups; each argument is a list of words.
func rule(verbs, groups, resources string) rbacv1.PolicyRule {
	names := words(groups)
	for i, g := range names {
		if g == core {
			names[i] = ""
		}
	}
	slices.Sort(names)
	return rbacv1.PolicyRule{Verbs: words(verbs), APIGroups: names, Resources: words(resources)}
}

// words are sorted, as in upstream's rules, so that a comparison of two clusters finds
// no difference.
func words(list string) []string {
	split := strings.Fields(list)
	slices.Sort(split)
	return split
}

// named is rule for objects of these names only.
func named(verbs, groups, resources, names string) rbacv1.PolicyRule {
	r := rule(verbs, groups, resources)
	r.ResourceNames = words(names)
	return r
}

// paths grants get on paths that are no resources.
func paths(list string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: words(list)}
}

// recording is what everybody needs who tells of what he does.
func recording() rbacv1.PolicyRule {
	return rule("create update patch", core+" events.k8s.io", "events")
}

// reviewing is what a server needs that asks who its clients are and what they may.
func reviewing() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		rule("create", "authentication.k8s.io", "tokenreviews"),
		rule("create", "authorization.k8s.io", "subjectaccessreviews"),
	}
}
