package discovery

import (
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// Verbs that every kind, its status and its scale answer.
var (
	kindVerbs   = []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
	statusVerbs = []string{"get", "patch", "update"}
)

// scaleKind is what the scale subresource of every kind takes and returns.
var scaleKind = schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}

// documents are the discovery documents of one set of kinds.
type documents struct {
	codecs runtime.NegotiatedSerializer
	// core and groups are the aggregated documents of /api and /apis, with their ETags.
	core, groups         *apidiscoveryv2.APIGroupDiscoveryList
	coreETag, groupsETag string
	// legacy is every other document by its path.
	legacy map[string]runtime.Object
}

func newDocuments(groups []*group, address string) (*documents, error) {
	d := &documents{
		codecs: newCodecs(),
		core:   &apidiscoveryv2.APIGroupDiscoveryList{},
		groups: &apidiscoveryv2.APIGroupDiscoveryList{},
		legacy: map[string]runtime.Object{},
	}
	servers := []metav1.ServerAddressByClientCIDR{{ClientCIDR: "0.0.0.0/0", ServerAddress: address}}
	groupList := &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{}}
	coreVersions := &metav1.APIVersions{
		TypeMeta:                   metav1.TypeMeta{Kind: "APIVersions"},
		Versions:                   []string{},
		ServerAddressByClientCIDRs: servers,
	}
	stored := storedKinds(groups)
	for _, group := range groups {
		d.addVersions(group, stored)
		if group.name == "" {
			d.core.Items = append(d.core.Items, group.aggregated())
			coreVersions.Versions = group.versionNames()
			continue
		}
		d.groups.Items = append(d.groups.Items, group.aggregated())
		legacy := group.legacy(servers)
		groupList.Groups = append(groupList.Groups, legacy)
		d.legacy["/apis/"+group.name] = withTypeMeta(legacy)
	}
	d.legacy["/api"], d.legacy["/apis"] = coreVersions, groupList
	return d, d.tag()
}

func (d *documents) tag() (err error) {
	if d.coreETag, err = etagOf(d.core); err != nil {
		return err
	}
	d.groupsETag, err = etagOf(d.groups)
	return err
}

func (d *documents) addVersions(group *group, stored storedAs) {
	for _, v := range group.versions {
		if v.remote != nil {
			continue // its server answers
		}
		gv := schema.GroupVersion{Group: group.name, Version: v.name}
		d.legacy[pathOf(gv)] = v.legacy(gv, stored)
	}
}

func (d *documents) paths() []string {
	paths := make([]string, 0, len(d.legacy))
	for path := range d.legacy {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths
}

// pathOf is the URL below which a group version's resources are.
func pathOf(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "/api/" + gv.Version
	}
	return "/apis/" + gv.Group + "/" + gv.Version
}

// toldVerbs are those that discovery tells of a kind.
func toldVerbs(kind *resource.Any) []string {
	if kind.Verbs != nil {
		return kind.Verbs
	}
	return verbsOf(kind)
}

// verbsOf are the verbs that a kind itself answers.
func verbsOf(kind *resource.Any) []string {
	if kind.CreateOnly {
		return []string{"create"}
	}
	if kind.ReadOnly {
		return []string{"get", "list"}
	}
	if kind.OneByOne {
		return slices.DeleteFunc(slices.Clone(kindVerbs), func(verb string) bool { return verb == "deletecollection" })
	}
	return kindVerbs
}

// subresourcesOf returns all subresources of a kind, in the order of their names; of a kind without a Go type, whose
// discovery upstream writes on its own, the status first.
func subresourcesOf(kind *resource.Any) []resource.Subresource {
	all := slices.Clone(kind.Subresources)
	whole := func(name string) {
		all = append(all, resource.Subresource{Name: name, Kind: kind.GroupVersionKind, Verbs: statusVerbs})
	}
	if kind.HasStatus() {
		whole("status")
	}
	for _, part := range kind.Parts {
		if part.Name != "status" {
			whole(part.Name)
		}
	}
	if kind.Scale != nil {
		all = append(all, resource.Subresource{Name: "scale", Kind: scaleKind, Verbs: statusVerbs})
	}
	if kind.Schema == nil {
		slices.SortFunc(all, func(a, b resource.Subresource) int { return strings.Compare(a.Name, b.Name) })
	}
	return all
}
