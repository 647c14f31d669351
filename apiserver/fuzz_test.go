package apiserver

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/setpoint-io/setpoint/apiserver/kinds"
	"github.com/setpoint-io/setpoint/apiserver/kinds/kindstest"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// bodyTypes are the encodings of a body, by the first argument of a fuzz target.
var bodyTypes = []string{runtime.ContentTypeJSON, runtime.ContentTypeYAML, runtime.ContentTypeProtobuf, runtime.ContentTypeCBOR}

// FuzzBody creates and updates objects of every kind from arbitrary bodies: whatever
// they are, the answer is no 5xx, and a refusal is a whole Status.
func FuzzBody(f *testing.F) {
	server, _ := newServer(f)
	all := kinds.All()
	for i, kind := range all {
		files, err := filepath.Glob(filepath.Join("kinds", "*", "testdata", kindstest.Folder(kind), "*.yaml"))
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			seedBodies(f, kind, uint8(i), text)
		}
	}
	f.Fuzz(func(t *testing.T, encoding, kind uint8, body []byte) {
		c := call{method: http.MethodPost, path: collectionPath(all[int(kind)%len(all)], "default"), contentType: bodyTypes[int(encoding)%len(bodyTypes)], body: string(body)}
		c.path += "?dryRun=All"
		if encoding >= 128 {
			c.path = strings.Replace(c.path, "?", "/web?", 1)
			c.method = http.MethodPut
		}
		checkAnswer(t, c.path, c.do(t, server))
	})
}

// seedBodies adds an object in each encoding.
func seedBodies(f *testing.F, kind *resource.Any, at uint8, text []byte) {
	f.Helper()
	codecs := NewCodecs(kinds.NewScheme())
	obj, _, err := codecs.UniversalDeserializer().Decode(text, &kind.GroupVersionKind, nil)
	if err != nil {
		return // the case is about what no decoder takes
	}
	for encoding, contentType := range bodyTypes {
		info, _ := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), contentType)
		encoded, err := runtime.Encode(codecs.EncoderForVersion(info.Serializer, kind.GroupVersionKind.GroupVersion()), obj)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(encoding), at, encoded)
	}
}

var fuzzedPatches = []string{"json", "merge", "strategic", "apply"}

// FuzzPatch patches objects with arbitrary bodies.
func FuzzPatch(f *testing.F) {
	server, _ := newServer(f)
	objects := []string{cmPath + "/a", podPath + "/p", depPath + "/d"}
	for i, body := range []string{cmBody("a"), podBody("p"), depBody("d")} {
		mustDo[metav1.PartialObjectMetadata](f, server, call{method: http.MethodPost, path: objects[i][:strings.LastIndexByte(objects[i], '/')], body: body})
		f.Add(uint8(3), uint8(i), []byte(body))
	}
	for _, body := range []string{
		`{"metadata":{"labels":{"a":"b","c":null},"finalizers":["a/b"],"$deleteFromPrimitiveList/finalizers":["c/d"]}}`,
		`{"spec":{"containers":[{"name":"c","image":"j","ports":[{"containerPort":80}]}],"$setElementOrder/containers":[{"name":"c"}]}}`,
		`{"spec":{"template":{"spec":{"$retainKeys":["containers"],"containers":[{"$patch":"delete","name":"c"},{"$patch":"replace"}]}}}}`,
		`{"spec":{"strategy":{"$patch":"replace","type":"Recreate"}}}`,
	} {
		for object := range objects {
			f.Add(uint8(1), uint8(object), []byte(body))
			f.Add(uint8(2), uint8(object), []byte(body))
		}
	}
	f.Add(uint8(0), uint8(2), []byte(`[{"op":"test","path":"/spec/replicas","value":2},{"op":"move","from":"/spec/template","path":"/x~1y~0"},{"op":"add","path":"/a/-","value":{}}]`))
	f.Fuzz(func(t *testing.T, kind, object uint8, body []byte) {
		way := fuzzedPatches[int(kind)%len(fuzzedPatches)]
		c := call{method: http.MethodPatch, path: objects[int(object)%len(objects)] + "?dryRun=All&fieldManager=m", contentType: patchTypeOf[way], body: string(body)}
		checkAnswer(t, way, c.do(t, server))
	})
}

// FuzzQuery lists and watches with arbitrary parameters: selectors, tokens, versions.
func FuzzQuery(f *testing.F) {
	server, client := newServer(f)
	for _, name := range []string{"a", "b", "c"} {
		if _, err := client.CoreV1().ConfigMaps("default").Create(f.Context(), configMap(name, nil), metav1.CreateOptions{}); err != nil {
			f.Fatal(err)
		}
	}
	page, err := client.CoreV1().ConfigMaps("default").List(f.Context(), metav1.ListOptions{Limit: 1})
	if err != nil {
		f.Fatal(err)
	}
	f.Add("limit=1&continue=" + url.QueryEscape(page.Continue))
	for _, query := range []string{
		"labelSelector=a in (b,c),d!=e,!f,g", "fieldSelector=metadata.name=a,metadata.namespace!=b", "resourceVersion=0&resourceVersionMatch=NotOlderThan",
		"watch=1&timeoutSeconds=1&allowWatchBookmarks=true&sendInitialEvents=true", "limit=2&resourceVersionMatch=Exact&resourceVersion=3", "pretty=1&includeObject=None",
		"watch=%2e%2e&labelSelector=%00", "limit=-1&timeoutSeconds=-1", "continue=e30",
	} {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		values, err := url.ParseQuery(query)
		if err != nil {
			values = url.Values{"labelSelector": {query}}
		}
		values.Del("watch") // would last
		values.Del("follow")
		values.Del("timeout")
		if version, err := strconv.ParseUint(values.Get("resourceVersion"), 10, 64); err == nil && version > 3 {
			values.Set("resourceVersion", "3") // one of the future is waited for
		}
		c := call{path: cmPath + "?" + values.Encode()}
		checkAnswer(t, c.path, c.do(t, server))
	})
}

// FuzzPath asks for arbitrary paths with arbitrary methods.
func FuzzPath(f *testing.F) {
	server, _ := newServer(f)
	for i, path := range []string{cmPath, podPath + "/p/log", "/apis/apps/v1/deployments/d/scale", "/api/v1/watch/namespaces/default/pods", "/api/v1/nodes/n/proxy/..%2f..", "//", "/%00"} {
		f.Add(uint8(i), path)
	}
	methods := []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodHead, http.MethodOptions}
	f.Fuzz(func(t *testing.T, method uint8, path string) {
		u, err := url.Parse("https://in-process/" + path)
		if err != nil || strings.Contains(path, "watch") || slices.Contains(strings.Split(u.Path, "/"), "log") {
			return
		}
		c := call{method: methods[int(method)%len(methods)], path: u.RequestURI()}
		if got := c.do(t, server); got.code >= http.StatusInternalServerError {
			t.Error(fmt.Sprint(c.method, " ", c.path, ": ", got.code, " ", firstBytes(got.body)))
		}
	})
}
