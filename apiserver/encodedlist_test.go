package apiserver

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/setpoint-io/setpoint/apiserver/kinds"
	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// TestListsAreUpstreamsBytes: a list written from its items' bytes is, byte for
// byte, what upstream's encoders make of the typed list, for all kinds and encodings.
func TestListsAreUpstreamsBytes(t *testing.T) {
	scheme := kinds.NewScheme()
	codecs := NewCodecs(scheme)
	server, _ := newServer(t)
	for _, kind := range kinds.All() {
		if kind.StoredAs.Resource != "" {
			continue
		}
		gvr := kind.GroupVersionResource()
		fill(t, server.config.Storage.Table(gvr), kind)
		path := "/apis/" + gvr.Group + "/" + gvr.Version + "/" + gvr.Resource
		if gvr.Group == "" {
			path = "/api/" + gvr.Version + "/" + gvr.Resource
		}
		for _, info := range codecs.SupportedMediaTypes() {
			for _, query := range []string{"", "?limit=1", "?labelSelector=none"} {
				got := call{path: path + query, accept: info.MediaType}.do(t, server)
				want := upstreamBytes(t, codecs.EncoderForVersion(info.Serializer, kind.GroupVersionKind.GroupVersion()), got.body, codecs.UniversalDeserializer())
				if got.code != 200 || got.body != want {
					t.Errorf("%s%s as %s: %d\n%q\nupstream:\n%q", path, query, info.MediaType, got.code, firstBytes(got.body), firstBytes(want))
				}
			}
		}
	}
}

// fill stores objects of a kind, some with text that encoders escape.
func fill(t *testing.T, table *storage.Table, kind *resource.Any) {
	t.Helper()
	for i := range 3 {
		obj := kind.New()
		obj.SetName(fmt.Sprint("o", i))
		obj.SetUID("u")
		obj.SetAnnotations(map[string]string{"text": "<&>\u2028 \"é\"\n", "long": strings.Repeat("x", 200*i)})
		if kind.Namespaced() {
			obj.SetNamespace("default")
		}
		_, err := table.Write(t.Context(), obj.GetNamespace(), obj.GetName(), func(*storage.View) (*storage.Change, error) {
			return &storage.Change{Object: obj}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// upstreamBytes decodes a list and encodes it again, all by upstream's means.
func upstreamBytes(t *testing.T, encoder runtime.Encoder, body string, decoder runtime.Decoder) string {
	t.Helper()
	list, _, err := decoder.Decode([]byte(body), nil, nil)
	if err != nil {
		t.Fatalf("%v: %q", err, firstBytes(body))
	}
	var b bytes.Buffer
	if err := encoder.Encode(list, &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
