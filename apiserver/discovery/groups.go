package discovery

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// group is one API group with its versions, the preferred one first.
type group struct {
	name     string
	versions []*groupVersion
}

// groupVersion has kinds, or is remote.
type groupVersion struct {
	name string
	// kinds in the order of their plural names, as upstream lists them.
	kinds  []*resource.Any
	remote *Remote
	// groupPriority is what this version asks for its group.
	groupPriority, versionPriority int32
}

// groupsOf sorts kinds and remotes into groups. No kind is of a version that is remote.
func groupsOf(kinds []*resource.Any, remotes []Remote, priority func(schema.GroupVersion) (group, version int32)) []*group {
	var groups []*group
	of := func(name string) *group {
		i := slices.IndexFunc(groups, func(g *group) bool { return g.name == name })
		if i < 0 {
			i = len(groups)
			groups = append(groups, &group{name: name})
		}
		return groups[i]
	}
	for _, kind := range kinds {
		gv := kind.GroupVersionKind.GroupVersion()
		v := of(gv.Group).version(gv.Version)
		v.kinds = append(v.kinds, kind)
		if priority != nil {
			v.groupPriority, v.versionPriority = priority(gv)
		}
	}
	for i := range remotes {
		r := &remotes[i]
		v := of(r.Group).version(r.Version.Version)
		v.remote, v.groupPriority, v.versionPriority = r, r.GroupPriority, r.VersionPriority
	}
	for _, g := range groups {
		g.sort()
	}
	if priority != nil {
		slices.SortFunc(groups, func(a, b *group) int {
			return cmp.Or(cmp.Compare(b.priority(), a.priority()), strings.Compare(a.name, b.name))
		})
	}
	return groups
}

// version returns a version of the group, which is new if need be.
func (g *group) version(name string) *groupVersion {
	i := slices.IndexFunc(g.versions, func(v *groupVersion) bool { return v.name == name })
	if i < 0 {
		i = len(g.versions)
		g.versions = append(g.versions, &groupVersion{name: name})
	}
	return g.versions[i]
}

func (g *group) sort() {
	slices.SortFunc(g.versions, func(a, b *groupVersion) int {
		return cmp.Or(cmp.Compare(b.versionPriority, a.versionPriority), version.CompareKubeAwareVersionStrings(b.name, a.name))
	})
	for _, v := range g.versions {
		slices.SortFunc(v.kinds, func(a, b *resource.Any) int { return strings.Compare(a.Plural, b.Plural) })
	}
}

// priority is the highest that any version asks for.
func (g *group) priority() int32 {
	return slices.MaxFunc(g.versions, func(a, b *groupVersion) int { return cmp.Compare(a.groupPriority, b.groupPriority) }).groupPriority
}

func (g *group) versionNames() []string {
	names := make([]string, len(g.versions))
	for i, v := range g.versions {
		names[i] = v.name
	}
	return names
}

// groupVersion is the full name of one of the group's versions.
func (g *group) groupVersion(v *groupVersion) schema.GroupVersion {
	return schema.GroupVersion{Group: g.name, Version: v.name}
}

// builtIn reports whether the group is ours: it has kinds with a Go type.
func (g *group) builtIn() bool { return slices.ContainsFunc(g.versions, (*groupVersion).builtIn) }

func (v *groupVersion) builtIn() bool {
	return slices.ContainsFunc(v.kinds, func(kind *resource.Any) bool { return kind.Schema == nil })
}
