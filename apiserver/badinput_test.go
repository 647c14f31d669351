package apiserver

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestBadInput: whatever a client sends, it gets a 4xx with a Status, never a 5xx.
func TestBadInput(t *testing.T) {
	server, _ := newServer(t)
	for _, c := range []call{{path: cmPath, body: cmBody("a")}, {path: podPath, body: podBody("p")}} {
		c.method = http.MethodPost
		mustDo[metav1.PartialObjectMetadata](t, server, c)
	}
	meta := func(m string) string { return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{` + m + `}}` }
	label := func(value string) string { return meta(`"name":"x","labels":{"l":` + value + `}`) }
	forged := func(token string) string {
		return cmPath + "?continue=" + base64.RawURLEncoding.EncodeToString([]byte(token))
	}
	deep := strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000)
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for i := range 12 {
		bomb += fmt.Sprintf("%c: &%[1]c [%s]\n", 'b'+i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", 'a'+i), 10), ","))
	}
	patch := func(kind, body string) call {
		return call{method: "PATCH", path: cmPath + "/a?fieldManager=m", contentType: patchTypeOf[kind], body: body}
	}
	for name, c := range map[string]call{
		"empty":                    {},
		"null":                     {body: "null"},
		"array":                    {body: "[]"},
		"string":                   {body: `"x"`},
		"number":                   {body: "1"},
		"cut":                      {body: cmBody("x")[:40]},
		"two":                      {body: cmBody("x") + cmBody("y")},
		"other kind":               {body: strings.Replace(cmBody("x"), "ConfigMap", "Pod", 1)},
		"unknown kind":             {body: strings.Replace(cmBody("x"), "ConfigMap", "Gadget", 1)},
		"other version":            {body: strings.Replace(cmBody("x"), `"v1"`, `"v2"`, 1)},
		"list":                     {body: `{"apiVersion":"v1","kind":"ConfigMapList","items":[]}`},
		"duplicate keys":           {path: cmPath + "?fieldValidation=Strict", body: `{"metadata":{"name":"x","name":"y"}}`},
		"body of 3 MiB and 1":      {body: strings.Replace(cmBody("x"), `"v"`, `"`+strings.Repeat("x", 3<<20)+`"`, 1)},
		"object over 1.5 MiB":      {body: strings.Replace(cmBody("x"), `"v"`, `"`+strings.Repeat("x", 2<<20)+`"`, 1)},
		"deep":                     {body: `{"metadata":{"name":"x"},"data":` + deep + `}`},
		"deep unknown":             {body: `{"metadata":{"name":"x"},"dat":` + deep + `}`},
		"deep patch":               patch("merge", `{"dat":`+deep+`}`),
		"deep apply":               patch("apply", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"dat":`+deep+`}`),
		"YAML bomb":                {body: bomb, contentType: "application/yaml"},
		"YAML bomb applied":        patch("apply", bomb),
		"NaN":                      {body: label("NaN")},
		"2^63":                     {body: meta(`"name":"x","generation":9223372036854775808`)},
		"float":                    {body: meta(`"name":"x","generation":1.5`)},
		"number for text":          {body: label("1")},
		"no UTF-8 in label":        {body: label("\"\xff\xfe\"")},
		"NUL in name":              {body: meta(`"name":"x\u0000"`)},
		"dots":                     {body: meta(`"name":".."`)},
		"slash":                    {body: meta(`"name":"a/b"`)},
		"254 characters":           {body: meta(`"name":"` + strings.Repeat("x", 254) + `"`)},
		"bad time":                 {body: meta(`"name":"x","deletionTimestamp":"soon"`)},
		"bad generateName":         {body: meta(`"generateName":"A_"`)},
		"protobuf without magic":   {body: "xxxx", contentType: "application/vnd.kubernetes.protobuf"},
		"protobuf of garbage":      {body: "k8s\x00\xff\xff\xff\xff", contentType: "application/vnd.kubernetes.protobuf"},
		"CBOR of garbage":          {body: "\xd9\xd9\xf7\xff", contentType: "application/cbor"},
		"deep CBOR":                {body: "\xd9\xd9\xf7" + strings.Repeat("\xa1\x41a", 100_000) + "\x01", contentType: "application/cbor"},
		"body without type":        {body: cmBody("x"), contentType: "; charset"},
		"JSON patch: 10^5 ops":     patch("json", "["+strings.Repeat(`{"op":"test","path":"/x"},`, 99_999)+`{"op":"test","path":"/x"}]`),
		"JSON patch: copies":       patch("json", "["+strings.Repeat(`{"op":"copy","from":"/data","path":"/data/k"},`, 60)+`{"op":"test","path":"/x"}]`),
		"JSON patch: no array":     patch("json", `{}`),
		"JSON patch: bad op":       patch("json", `[{"op":"jump"}]`),
		"JSON patch: bad index":    patch("json", `[{"op":"add","path":"/metadata/finalizers/99999999999999999999","value":1}]`),
		"JSON patch: null":         patch("json", `[{"op":"replace","path":"","value":null}]`),
		"merge patch: null":        patch("merge", `null`),
		"merge patch: no name":     patch("merge", `{"metadata":null}`),
		"strategic: bad directive": patch("strategic", `{"$patch":"explode"}`),
		"strategic: bad list":      {method: "PATCH", path: podPath + "/p", contentType: patchTypeOf["strategic"], body: `{"spec":{"containers":[{"image":"x"}]}}`},
		"strategic: list of text":  {method: "PATCH", path: podPath + "/p", contentType: patchTypeOf["strategic"], body: `{"spec":{"containers":["x"]}}`},
		"strategic: bad order":     {method: "PATCH", path: podPath + "/p", contentType: patchTypeOf["strategic"], body: `{"spec":{"$setElementOrder/containers":[1]}}`},
		"apply: scalar":            patch("apply", `x`),
		"delete options":           {method: "DELETE", path: cmPath + "/a", body: `{"gracePeriodSeconds":"x"}`},
		"delete options of kind":   {method: "DELETE", path: cmPath + "/a", body: cmBody("x")},
		"forged token":             {method: "GET", path: forged(`{"v":"meta.k8s.io/v1","rv":1,"start":"../../../core/secrets/"}`)},
		"token without version":    {method: "GET", path: forged(`{"start":"x"}`)},
		"token of the future":      {method: "GET", path: forged(`{"v":"meta.k8s.io/v1","rv":-7,"start":"a"}`)},
		"token of text":            {method: "GET", path: forged(`x`)},
		"bad timeout":              {method: "GET", path: cmPath + "?timeout=x"},
		"bad seconds":              {method: "GET", path: cmPath + "?timeoutSeconds=x"},
		"bad limit":                {method: "GET", path: cmPath + "?limit=99999999999999999999"},
		"bad selector":             {method: "GET", path: cmPath + "?labelSelector=a%20in"},
		"watch of nothing":         {method: "GET", path: "/api/v1/watch"},
		"dots in path":             {method: "GET", path: cmPath + "/%2e%2e"},
		"slash in path":            {method: "GET", path: cmPath + "/a%2fb%2fc"},
		"odd method":               {method: "BREW", path: cmPath},
		"namespace of dots":        {path: "/api/v1/namespaces/%2e%2e/configmaps", body: cmBody("x")},
		"null pod":                 {path: podPath, body: `{"metadata":{"name":"x"},"spec":null}`},
		"null containers":          {path: podPath, body: `{"metadata":{"name":"x"},"spec":{"containers":[null]}}`},
		"bad quantity":             {path: podPath, body: `{"metadata":{"name":"x"},"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"lots"}}}]}}`},
		"binding of nothing":       {path: podPath + "/p/binding", body: `{}`},
		"eviction of another":      {path: podPath + "/p/eviction", body: `{"metadata":{"name":"q"}}`},
		"exec of unplaced":         {path: podPath + "/p/exec", body: ``},
		"log of unplaced":          {method: "GET", path: podPath + "/p/log?tailLines=-1"},
		"1e999 in a revision":      {path: "/apis/apps/v1/namespaces/default/controllerrevisions", body: `{"metadata":{"name":"r"},"revision":1,"data":{"a":1e999}}`},
		"1e999 in a claim":         {path: "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims", body: `{"metadata":{"name":"r"},"spec":{"devices":{"config":[{"opaque":{"driver":"a.b","parameters":{"a":1e999}}}]}}}`},
		"1e999 in a definition": {path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body: `{"metadata":{"name":"as.b.c"},"spec":{"group":"b.c","scope":"Namespaced","names":{"plural":"as","singular":"a","kind":"A","listKind":"AList"},` +
			`"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"number","default":1e999}}}}}]}}`},
		"scale of text": {method: "PUT", path: depPath + "/d/scale", body: `{"spec":{"replicas":"x"}}`},
	} {
		c.method = orDefault(c.method, http.MethodPost)
		c.path = orDefault(c.path, cmPath)
		got := c.do(t, server)
		switch {
		case got.code < 400 || got.code >= 500:
			t.Errorf("%s: %d %s", name, got.code, firstBytes(got.body))
		case got.status.Status != metav1.StatusFailure && !strings.HasPrefix(got.body, "404 page not found"):
			t.Errorf("%s: no Status: %d %s", name, got.code, firstBytes(got.body))
		}
	}
}

// TestFutureVersionsWait are the one refusal that is not a 4xx: upstream's 504.
func TestFutureVersionsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, _ := newServer(t)
		for _, path := range []string{cmPath + "?resourceVersion=18446744073709551615", cmPath + "/a?resourceVersion=99"} {
			if got := (call{path: path}).do(t, server); got.code != http.StatusGatewayTimeout {
				t.Errorf("%s: %d %s", path, got.code, got.body)
			}
		}
	})
}

// TestMergeKeysAreValues: upstream's merge compares them, and panics at maps and lists.
func TestMergeKeysAreValues(t *testing.T) {
	server, _ := newServer(t)
	mustDo[metav1.PartialObjectMetadata](t, server, call{method: http.MethodPost, path: podPath, body: podBody("p")})
	for _, body := range []string{
		`{"spec":{"containers":[{"name":{}}]}}`,
		`{"spec":{"containers":[{"name":["c"],"image":"j"}]}}`,
		`{"spec":{"$setElementOrder/containers":[{"name":{}}],"containers":[{"name":"c"}]}}`,
		`{"spec":{"containers":[{"name":"c","ports":[{"containerPort":[]}]}]}}`,
		`{"metadata":{"ownerReferences":[{"uid":{}}]}}`,
	} {
		c := call{method: http.MethodPatch, path: podPath + "/p", contentType: patchTypeOf["strategic"], body: body}
		if got := c.do(t, server); got.code != http.StatusBadRequest || got.status.Reason != metav1.StatusReasonBadRequest {
			t.Errorf("%s: %d %s", body, got.code, firstBytes(got.body))
		}
	}
}
