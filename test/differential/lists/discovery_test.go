package lists

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/apiserver/auth/reviews"
	"github.com/setpoint-io/setpoint/apiserver/discovery"
	"github.com/setpoint-io/setpoint/apiserver/kinds"
	"github.com/setpoint-io/setpoint/apiserver/rest"
)

// discoveryData is where upstream writes down what an API server offers with all versions on.
const discoveryData = "api/discovery"

// stableVersion is the name of a version that is served by default.
var stableVersion = regexp.MustCompile(`^v[0-9]+$`)

// offers are resources by "group/version resource" and "group/version resource/subresource", each with what discovery says of it.
type offers map[string]string

func (o offers) add(version string, resources []apidiscoveryv2.APIResourceDiscovery) {
	for _, r := range resources {
		name := version + " " + r.Resource
		o[name] = fmt.Sprintf("kind %v, %s, singular %s, short names %v, categories %v, verbs %v",
			kindOf(version, r.ResponseKind), r.Scope, r.SingularResource, r.ShortNames, r.Categories, sortedVerbs(r.Verbs))
		for _, sub := range r.Subresources {
			o[name+"/"+sub.Subresource] = fmt.Sprintf("kind %v, verbs %v", kindOf(version, sub.ResponseKind), sortedVerbs(sub.Verbs))
		}
	}
}

// kindOf is a kind with its group and version; upstream's files leave out those of the resource.
func kindOf(version string, k *metav1.GroupVersionKind) string {
	if k == nil {
		return "none"
	}
	if k.Group+k.Version != "" {
		version = strings.TrimPrefix(k.Group+"/"+k.Version, "/")
	}
	return version + " " + k.Kind
}

func sortedVerbs(verbs []string) []string { return slices.Sorted(slices.Values(verbs)) }

// addGroups adds the stable versions of groups.
func (o offers) addGroups(list apidiscoveryv2.APIGroupDiscoveryList) {
	for _, group := range list.Items {
		for _, version := range group.Versions {
			if stableVersion.MatchString(version.Version) {
				o.add(strings.TrimPrefix(group.Name+"/"+version.Version, "/"), version.Resources)
			}
		}
	}
}

// upstreamOffers are those of all groups but the core's, which upstream has in another form.
func upstreamOffers(t *testing.T) offers {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(source(t, "k8s.io/kubernetes"), discoveryData, "aggregated_v2.json"))
	if err != nil {
		t.Fatal(err)
	}
	var list apidiscoveryv2.APIGroupDiscoveryList
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	all := offers{}
	all.addGroups(list)
	return all
}

// ask reads a document of ours.
func ask(t *testing.T, path, accept string, into any) {
	t.Helper()
	offered := kinds.All()
	offered = append(offered, rest.Bindings(), rest.ComponentStatuses())
	offered = append(offered, reviews.Kinds(reviews.New(reviews.Config{}))...)
	handler, err := discovery.New(discovery.Config{Kinds: offered, Version: "0", Priority: kinds.Priorities})
	if err != nil {
		t.Fatal(err)
	}
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	request.Header.Set("Accept", accept)
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, request)
	if err := json.Unmarshal(answer.Body.Bytes(), into); answer.Code != http.StatusOK || err != nil {
		t.Fatalf("%s: %d, %v: %s", path, answer.Code, err, answer.Body)
	}
}

// TestDiscovery: every resource of every stable version is offered as upstream offers it.
func TestDiscovery(t *testing.T) {
	upstream, ours := upstreamOffers(t), offers{}
	var list apidiscoveryv2.APIGroupDiscoveryList
	ask(t, "/apis", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", &list)
	ours.addGroups(list)
	if len(upstream) < 80 {
		t.Fatalf("upstream offers %d resources", len(upstream))
	}
	for name, theirs := range upstream {
		if got := ours[name]; got != theirs {
			t.Errorf("%s\nupstream: %s\nhere:     %s", name, theirs, got)
		}
		delete(ours, name)
	}
	for name := range ours {
		t.Errorf("upstream does not offer %s", name)
	}
}

// TestCoreDiscovery: the same of the core's group, in the form that old clients read.
func TestCoreDiscovery(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(source(t, "k8s.io/kubernetes"), discoveryData, "api__v1.json"))
	if err != nil {
		t.Fatal(err)
	}
	var theirs, ours metav1.APIResourceList
	if err := json.Unmarshal(text, &theirs); err != nil {
		t.Fatal(err)
	}
	ask(t, "/api/v1", "application/json", &ours)
	byName := map[string]metav1.APIResource{}
	for _, r := range ours.APIResources {
		byName[r.Name] = r
	}
	for _, r := range theirs.APIResources {
		got := byName[r.Name]
		r.Verbs, got.Verbs = sortedVerbs(r.Verbs), sortedVerbs(got.Verbs)
		if a, b := fmt.Sprintf("%+v", r), fmt.Sprintf("%+v", got); a != b {
			t.Errorf("%s\nupstream: %s\nhere:     %s", r.Name, a, b)
		}
		delete(byName, r.Name)
	}
	for name := range byName {
		t.Errorf("upstream does not offer %s", name)
	}
}
