package apiserver

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/setpoint-io/setpoint/apiserver/kinds"
)

const (
	tableType    = "application/json;as=Table;v=v1;g=meta.k8s.io"
	metadataType = ";as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
	metaListType = ";as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
)

// TestEncodings sends and receives an object in each encoding.
func TestEncodings(t *testing.T) {
	server, _ := newServer(t)
	codecs := NewCodecs(kinds.NewScheme())
	for _, info := range codecs.SupportedMediaTypes() {
		if info.MediaType == "application/apply-patch+yaml" {
			continue
		}
		name := strings.TrimPrefix(info.MediaTypeSubType, "vnd.kubernetes.")
		var body bytes.Buffer
		cm := configMap(name, map[string]string{"k": "v"})
		cm.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		if err := info.Serializer.Encode(cm, &body); err != nil {
			t.Fatal(err)
		}
		for _, c := range []call{
			{method: "POST", path: cmPath, body: body.String(), contentType: info.MediaType, accept: info.MediaType},
			{path: cmPath + "/" + name, accept: info.MediaType},
			{path: cmPath + "/" + name, accept: info.MediaType}, // again, from the cached bytes
		} {
			got := c.do(t, server)
			if got.code >= 300 || !strings.HasPrefix(got.header.Get("Content-Type"), info.MediaType) {
				t.Fatalf("%s: %d %s", info.MediaType, got.code, got.header.Get("Content-Type"))
			}
			obj, _, err := codecs.UniversalDeserializer().Decode([]byte(got.body), nil, nil)
			if err != nil || obj.(*corev1.ConfigMap).Data["k"] != "v" {
				t.Errorf("%s: %v %v", info.MediaType, obj, err)
			}
		}
		got := call{path: cmPath, accept: info.MediaType}.do(t, server)
		if list, _, err := codecs.UniversalDeserializer().Decode([]byte(got.body), nil, nil); err != nil || len(list.(*corev1.ConfigMapList).Items) == 0 {
			t.Errorf("%s: list %v", info.MediaType, err)
		}
	}
}

func TestNegotiation(t *testing.T) {
	server, _ := newServer(t)
	mustDo[corev1.ConfigMap](t, server, call{method: "POST", path: cmPath, body: cmBody("a")})
	for accept, want := range map[string]int{
		"*/*": 200, "application/*": 200, "text/html, */*;q=0.1": 200,
		"text/html": 406, "application/json;as=Nothing;v=v1;g=meta.k8s.io": 406,
		tableType: 200, "application/yaml": 200, "application/vnd.kubernetes.protobuf": 200, "application/cbor": 200,
		"application/json" + metadataType: 200, "application/vnd.kubernetes.protobuf" + metadataType: 200,
		"application/json;as=Table;v=v1beta1;g=meta.k8s.io, application/json": 200,
	} {
		if got := (call{path: cmPath + "/a", accept: accept}).do(t, server); got.code != want {
			t.Errorf("%s: %d %s", accept, got.code, got.body)
		}
	}
	got := call{path: cmPath + "/a", accept: "text/html"}.do(t, server)
	if got.status.Reason != metav1.StatusReasonNotAcceptable || !strings.Contains(got.status.Message, "application/json") {
		t.Errorf("406: %s", got.body)
	}
	got = call{method: "POST", path: cmPath, contentType: "text/plain", body: "x"}.do(t, server)
	refusal{code: 415, reason: metav1.StatusReasonUnsupportedMediaType, messageHas: "application/json, application/yaml"}.check(t, "415", got)
	got = call{method: "PATCH", path: cmPath + "/a", contentType: "application/json", body: "{}"}.do(t, server)
	refusal{code: 415, reason: metav1.StatusReasonUnsupportedMediaType, messageHas: "application/json-patch+json"}.check(t, "patch 415", got)
}

func TestPartialMetadata(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // its watches end by time
		server, _ := newBareServer(t)
		mustDo[corev1.ConfigMap](t, server, call{method: "POST", path: cmPath, body: cmBody("a")})
		one := mustDo[metav1.PartialObjectMetadata](t, server, call{path: cmPath + "/a", accept: "application/json" + metadataType})
		if one.Kind != "PartialObjectMetadata" || one.Name != "a" || one.UID == "" {
			t.Errorf("one = %+v", one)
		}
		list := mustDo[metav1.PartialObjectMetadataList](t, server, call{path: cmPath, accept: "application/json" + metaListType})
		if list.Kind != "PartialObjectMetadataList" || len(list.Items) != 1 || list.Items[0].Name != "a" || list.ResourceVersion != "2" {
			t.Errorf("list = %+v", list)
		}
		got := call{path: cmPath, accept: "application/vnd.kubernetes.protobuf" + metaListType}.do(t, server)
		codecs := NewCodecs(kinds.NewScheme())
		if obj, _, err := codecs.UniversalDeserializer().Decode([]byte(got.body), nil, nil); err != nil || len(obj.(*metav1.PartialObjectMetadataList).Items) != 1 {
			t.Errorf("protobuf list: %v %T", err, obj)
		}
		got = call{path: cmPath + "?watch=1&timeoutSeconds=1", accept: "application/json" + metadataType}.do(t, server)
		if !strings.Contains(got.body, `"kind":"PartialObjectMetadata"`) || strings.Contains(got.body, `"data"`) {
			t.Errorf("watch: %s", got.body)
		}
	})
}

func TestTableWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // its watches end by time
		server, _ := newServer(t)
		for _, name := range []string{"a", "b"} {
			mustDo[corev1.ConfigMap](t, server, call{method: "POST", path: cmPath, body: cmBody(name)})
		}
		got := call{path: cmPath + "?watch=1&timeoutSeconds=1", accept: tableType}.do(t, server)
		lines := strings.Split(strings.TrimSpace(got.body), "\n")
		var rows []metav1.Table
		for _, line := range lines {
			var frame struct{ Object metav1.Table }
			if err := json.Unmarshal([]byte(line), &frame); err != nil {
				t.Fatal(err)
			}
			rows = append(rows, frame.Object)
		}
		if len(rows) != 2 || len(rows[0].ColumnDefinitions) == 0 || len(rows[1].ColumnDefinitions) != 0 || rows[1].Rows[0].Cells[0] != "b" {
			t.Errorf("rows = %s", got.body)
		}
	})
}

func TestTableCarriesTheObjectAsAsked(t *testing.T) {
	server, _ := newServer(t)
	mustDo[corev1.ConfigMap](t, server, call{method: "POST", path: cmPath, body: cmBody("a")})
	for query, want := range map[string]string{"": "PartialObjectMetadata", "?includeObject=Object": "ConfigMap", "?includeObject=None": ""} {
		table := mustDo[metav1.Table](t, server, call{path: cmPath + query, accept: tableType})
		var m metav1.TypeMeta
		if raw := table.Rows[0].Object.Raw; len(raw) > 0 {
			if err := json.Unmarshal(raw, &m); err != nil {
				t.Fatal(err)
			}
		}
		if m.Kind != want {
			t.Errorf("%s: kind = %q", query, m.Kind)
		}
	}
}

func TestLargeAnswersAreCompressed(t *testing.T) {
	server, _ := newServer(t)
	large := strings.Replace(cmBody("large"), `"v"`, `"`+strings.Repeat("x", 130<<10)+`"`, 1)
	mustDo[corev1.ConfigMap](t, server, call{method: "POST", path: cmPath, body: large})
	mustDo[corev1.ConfigMap](t, server, call{method: "POST", path: cmPath, body: cmBody("small")})
	for path, want := range map[string]string{cmPath: "gzip", cmPath + "/large": "gzip", cmPath + "/small": ""} {
		for range 2 { // the second answer comes from cached bytes
			got := call{path: path, acceptEncoding: "gzip"}.do(t, server)
			if got.header.Get("Content-Encoding") != want {
				t.Errorf("%s: encoding %q", path, got.header.Get("Content-Encoding"))
				continue
			}
			text := io.Reader(strings.NewReader(got.body))
			if want == "gzip" {
				var err error
				if text, err = gzip.NewReader(text); err != nil {
					t.Fatal(err)
				}
			}
			var any runtime.RawExtension
			if err := json.NewDecoder(text).Decode(&any); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
}

func TestPretty(t *testing.T) {
	server, _ := newServer(t)
	mustDo[corev1.ConfigMap](t, server, call{method: "POST", path: cmPath, body: cmBody("a")})
	if got := (call{path: cmPath + "/a?pretty=1"}).do(t, server); !strings.HasPrefix(got.body, "{\n  \"kind\": \"ConfigMap\"") {
		t.Errorf("pretty: %s", got.body)
	}
	if got := (call{path: cmPath + "/a"}).do(t, server); strings.Contains(got.body, "\n  ") {
		t.Errorf("plain: %s", got.body)
	}
}

// TestFieldValidationLevels: unknown and duplicate fields are an error, a warning
// or nothing, on every way in.
func TestFieldValidationLevels(t *testing.T) {
	server, _ := newServer(t)
	mustDo[corev1.ConfigMap](t, server, call{method: "POST", path: cmPath, body: cmBody("a")})
	bad := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"1","k":"2"},"dat":{}}`
	for _, c := range []struct {
		call
		want []string
	}{
		{call{method: "POST", path: cmPath, body: strings.Replace(bad, `"name":"a"`, `"generateName":"g-"`, 1)}, []string{`unknown field "dat"`, `duplicate field "data.k"`}},
		{call{method: "PUT", path: cmPath + "/a", body: bad}, []string{`unknown field "dat"`, `duplicate field "data.k"`}},
		{call{method: "PATCH", path: cmPath + "/a", body: `{"dat":{}}`, contentType: patchTypeOf["merge"]}, []string{`unknown field "dat"`}},
		{call{method: "PATCH", path: cmPath + "/a", body: `{"dat":{}}`, contentType: patchTypeOf["strategic"]}, []string{`unknown field "dat"`}},
		{call{method: "PATCH", path: cmPath + "/a", body: `[{"op":"add","path":"/dat","value":{}}]`, contentType: patchTypeOf["json"]}, []string{`unknown field "dat"`}},
	} {
		for _, level := range []string{"Strict", "Warn", "", "Ignore"} {
			request := c.call
			request.path += "?fieldValidation=" + level + "&dryRun=All"
			got := request.do(t, server)
			text := strings.Join(got.header.Values("Warning"), "\n")
			wantCode := map[bool]int{true: http.StatusCreated, false: http.StatusOK}[c.method == "POST"]
			if level == "Strict" {
				wantCode, text = http.StatusBadRequest, got.status.Message
				if c.method == "PATCH" && got.code == http.StatusUnprocessableEntity {
					wantCode = got.code
				}
			}
			if got.code != wantCode {
				t.Errorf("%s %s %s: %d %s", c.method, c.contentType, level, got.code, got.body)
			}
			for _, want := range c.want {
				if said := strings.Contains(strings.ReplaceAll(text, `\"`, `"`), want); said != (level != "Ignore") {
					t.Errorf("%s %s %q: said %q", c.method, c.contentType, level, text)
				}
			}
		}
	}
	got := call{method: "POST", path: cmPath + "?fieldValidation=Maybe", body: bad}.do(t, server)
	refusal{code: 422, reason: metav1.StatusReasonInvalid, messageHas: "fieldValidation"}.check(t, "unknown level", got)
}
