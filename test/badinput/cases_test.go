package badinput

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

const (
	jsonType  = "application/json"
	yamlType  = "application/yaml"
	protoType = "application/vnd.kubernetes.protobuf"

	configMaps = "/api/v1/namespaces/default/configmaps"
	pods       = "/api/v1/namespaces/default/pods"
	services   = "/api/v1/namespaces/default/services"
	cronJobs   = "/apis/batch/v1/namespaces/default/cronjobs"
	definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	gadgets    = "/apis/example.com/v1/namespaces/default/gadgets"

	// canary is a secret: it stands in what is sent, and must stand in no log.
	canary = "canary-5eb1f0"
)

// existing are the objects that updates and patches are about, by collection.
var existing = map[string]string{
	configMaps: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"@"},"data":{"k":"` + canary + `"}}`,
	pods:       `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"@"},"spec":{"containers":[{"name":"c","image":"i","env":[{"name":"E","value":"` + canary + `"}]}]}}`,
	services:   `{"apiVersion":"v1","kind":"Service","metadata":{"name":"@"},"spec":{"ports":[{"port":80}]}}`,
	cronJobs: `{"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"@"},"spec":{"schedule":"0 0 * * *","jobTemplate":{"spec":{"template":{"spec":` +
		`{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}}}`,
	gadgets: `{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"@"},"spec":{"size":1}}`,
}

// gadgetDefinition is the definition of what is under gadgets.
const gadgetDefinition = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"gadgets.example.com"},"spec":{"group":"example.com",` +
	`"scope":"Namespaced","names":{"plural":"gadgets","kind":"Gadget"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object",` +
	`"properties":{"spec":{"type":"object","properties":{"size":{"type":"integer","maximum":9},"any":{"x-kubernetes-preserve-unknown-fields":true}}}}}}}]}}`

// badObject is an object that is refused by whatever way it comes: one change to an
// existing one.
type badObject struct{ collection, was, is string }

// badMetadata goes into the metadata of each kind.
func badMetadata() map[string]string {
	return map[string]string{
		"label value":            `"labels":{"a":"b c"}`,
		"label key":              `"labels":{"a b":"c"}`,
		"label of a map":         `"labels":{"a":{}}`,
		"labels as a list":       `"labels":[]`,
		"annotations of 257 KiB": `"annotations":{"a":"` + strings.Repeat("x", 257<<10) + `"}`,
		"owner without uid":      `"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p"}]`,
		"owner of two":           `"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u","controller":true},{"apiVersion":"v1","kind":"Pod","name":"q","uid":"v","controller":true}]`,
		"finalizer of letters":   `"finalizers":["x y"]`,
		"finalizer of a number":  `"finalizers":[1]`,
		"time that is none":      `"deletionTimestamp":"soon"`,
		"1e999":                  `"generation":1e999`,
		"another namespace":      `"namespace":"kube-system"`,
		"another uid":            `"uid":1`,
	}
}

// badSpecs are changes to the existing objects beyond metadata.
func badSpecs() map[string]badObject {
	container := func(more string) badObject { return badObject{pods, `"image":"i"`, `"image":"i",` + more} }
	spec := func(more string) badObject { return badObject{pods, `"spec":{`, `"spec":{` + more + `,`} }
	return map[string]badObject{
		"no containers":      {pods, `[{"name":"c","image":"i","env":[{"name":"E","value":"` + canary + `"}]}]`, `[]`},
		"the same twice":     {pods, `"containers":[`, `"containers":[{"name":"c","image":"i"},`},
		"negative memory":    container(`"resources":{"limits":{"memory":"-1"}}`),
		"request over limit": container(`"resources":{"limits":{"cpu":"1"},"requests":{"cpu":"1e30"}}`),
		"port 0":             container(`"ports":[{"containerPort":0}]`),
		"port 65536":         container(`"ports":[{"containerPort":65536}]`),
		"subPath upwards":    container(`"volumeMounts":[{"name":"v","mountPath":"/v","subPath":"../.."}]`),
		"two probes in one":  container(`"livenessProbe":{"exec":{"command":["x"]},"tcpSocket":{"port":1}}`),
		"probe of no port":   container(`"livenessProbe":{"httpGet":{"port":70000}}`),
		"volume twice":       spec(`"volumes":[{"name":"v","emptyDir":{}},{"name":"v","emptyDir":{}}]`),
		"host path upwards":  spec(`"volumes":[{"name":"v","hostPath":{"path":"/a/../../b"}}]`),
		"sysctl":             spec(`"securityContext":{"sysctls":[{"name":"../x","value":"1"}]}`),
		"negative deadline":  spec(`"activeDeadlineSeconds":-1`),
		"selector of 300":    spec(`"nodeSelector":{"a":"` + strings.Repeat("x", 300) + `"}`),
		"negative port":      {services, `"port":80`, `"port":-1`},
		"type of its own":    {services, `"ports":[`, `"type":"Magic","ports":[`},
		"address of letters": {services, `"ports":[`, `"externalIPs":["localhost"],"ports":[`},
		"loopback":           {services, `"ports":[`, `"externalIPs":["127.0.0.1"],"ports":[`},
		"seconds":            {cronJobs, `0 0 * * *`, `* * * * * *`},
		"zone upwards":       {cronJobs, `"schedule"`, `"timeZone":"../../etc/passwd","schedule"`},
		"zone alone":         {cronJobs, `0 0 * * *`, `TZ=0`},
		"size of text":       {gadgets, `"size":1`, `"size":"1"`},
		"size too large":     {gadgets, `"size":1`, `"size":10`},
		"deep any":           {gadgets, `"size":1`, `"any":` + strings.Repeat(`{"a":`, 20_000) + `1` + strings.Repeat(`}`, 20_000)},
	}
}

// everyWay brings an object to the server: as a new one, and over an existing one.
func everyWay(collection, body string) map[string]request {
	one := collection + "/old"
	create, old := strings.ReplaceAll(body, "@", "new"), strings.ReplaceAll(body, "@", "old")
	return map[string]request{
		"create":    {method: http.MethodPost, path: collection, contentType: jsonType, body: create},
		"yaml":      {method: http.MethodPost, path: collection, contentType: yamlType, body: create},
		"update":    {method: http.MethodPut, path: one, contentType: jsonType, body: old},
		"json":      {method: http.MethodPatch, path: one, contentType: "application/json-patch+json", body: `[{"op":"replace","path":"","value":` + old + `}]`},
		"merge":     {method: http.MethodPatch, path: one, contentType: "application/merge-patch+json", body: old},
		"strategic": {method: http.MethodPatch, path: one, contentType: "application/strategic-merge-patch+json", body: old},
		"apply":     {method: http.MethodPatch, path: one + "?fieldManager=m&force=true", contentType: "application/apply-patch+yaml", body: old},
	}
}

// badBodies are no objects at all.
func badBodies() map[string]string {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for i := range 12 {
		bomb += fmt.Sprintf("%c: &%[1]c [%s]\n", 'b'+i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", 'a'+i), 10), ","))
	}
	return map[string]string{
		"empty": "", "null": "null", "list": "[]", "text": `"x"`, "number": "1", "cut": `{"kind":`, "BOM": "\xef\xbb\xbf{}", "NUL": "\x00",
		"no UTF-8": "\xff\xfe\xfd", "nested lists": strings.Repeat("[", 1_000_000), "nested maps": strings.Repeat(`{"a":`, 100_000), "aliases": bomb,
		"another kind": `{"apiVersion":"v1","kind":"Node","metadata":{"name":"old"}}`, "3 MiB and 1": `{"a":"` + strings.Repeat("x", 3<<20) + `"}`,
		"YAML tags": "a: !!binary x\nb: !!python/object:os.system {}", "merge keys": "<<: 1", "protobuf": "k8s\x00\x0a\xff\xff\xff\xff\x0f", "gzip": "\x1f\x8b\x08\x00" + canary,
	}
}

// badPatches are patches, by their type, that no object survives.
func badPatches() map[string][]string {
	many := strings.TrimSuffix(strings.Repeat(`{"op":"copy","from":"/data","path":"/data/k"},`, 100_000), ",")
	return map[string][]string{
		"application/json-patch+json": {
			"[" + many + "]",
			`[{"op":"add","path":"/x","value":["y"]}` + strings.Repeat(`,{"op":"copy","from":"/x","path":"/x/-"}`, 24) + `]`,
			`[{"op":"test","path":"/data/k","value":"no"}]`,
			`[{"op":"remove","path":"/~2"}]`,
			`[{"op":"add","path":"/metadata/labels/-/x","value":1}]`,
			`[{"op":"replace","path":"/metadata/name","value":"x"}]`,
			`[{"op":"add","path":"/metadata/finalizers/99999999999","value":"a/b"}]`,
			`[{"op":"move","from":"/data","path":"/data/x"}]`,
		},
		"application/merge-patch+json": {`{"metadata":null}`, `{"metadata":{"name":null}}`, `{"kind":"Pod"}`, `{"data":[]}`},
		"application/strategic-merge-patch+json": {
			`{"$patch":"explode"}`,
			`{"metadata":{"ownerReferences":[{"uid":{}}]}}`,
			`{"metadata":{"$setElementOrder/finalizers":[{}],"finalizers":["a/b"]}}`,
			`{"data":"x"}`,
		},
		"application/apply-patch+yaml": {
			`x`,
			`{"kind":"ConfigMap"}`,
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"managedFields":[{"manager":"x"}]}}`,
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}",
		},
		"application/x-unknown": {`{}`},
	}
}

// badNames are names of objects as they stand in a path, and as they are.
func badNames() map[string]string {
	names := map[string]string{}
	for _, name := range []string{"..", ".", "a/b", "../x", "\x00", "A", "a.-b", "ü", "a b", "a%2fb", "-", strings.Repeat("x", 254), "xn--", "a\u202eb", "a\nb"} {
		names[name] = url.PathEscape(name)
	}
	names[".."] = "%2e%2e"
	names["."] = "%2e"
	return names
}

// badQueries are parameters of a list.
func badQueries() []string {
	return []string{
		"limit=99999999999999999999", "limit=x", "continue=x", "continue=e30", "continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiIuLi8uLi9zZWNyZXRzIn0", "resourceVersion=abc", "resourceVersion=-1",
		"resourceVersion=18446744073709551616", "resourceVersionMatch=Exact", "resourceVersionMatch=No&resourceVersion=1", "fieldSelector=spec.secret=1", "fieldSelector=a=b=c,,", "labelSelector=a%20in%20(",
		"labelSelector=" + strings.Repeat(
			"a,",
			300,
		) + "!", "sendInitialEvents=true", "watch=1&sendInitialEvents=maybe", "watch=1&resourceVersion=x", "timeoutSeconds=x", "timeout=x", "watch=1&fieldSelector=x=y",
	}
}
