package badinput

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestBadInput is the whole list against three servers.
func TestBadInput(t *testing.T) {
	c := startCluster(t)
	c.prepare(t)
	b := c.startBystander(t)
	t.Run("bodies", c.testBodies)
	t.Run("objects", c.testObjects)
	t.Run("patches", c.testPatches)
	t.Run("names", c.testNames)
	t.Run("queries", c.testQueries)
	t.Run("strangers", c.testStrangers)
	t.Run("nodes", c.testNodes)
	t.Run("connections", c.testConnections)
	b.check(t)
	c.sameState(t)
	c.checkLog(t)
}

// prepare makes the objects that are written over, and a secret.
func (c *cluster) prepare(t *testing.T) {
	t.Helper()
	must := func(path, body string) {
		t.Helper()
		r := request{method: http.MethodPost, path: path, contentType: jsonType, body: strings.ReplaceAll(body, "@", "old")}
		for end := time.Now().Add(answerLimit); ; {
			code, answer := c.do(t, c.admin, 0, r)
			if code == http.StatusCreated {
				return
			}
			if time.Now().After(end) { // the default account, or the definition, is not there yet
				t.Fatalf("%s: %d %s", path, code, answer)
			}
		}
	}
	must(definition, gadgetDefinition)
	for path, body := range existing {
		must(path, body)
	}
	must("/api/v1/namespaces/default/secrets", `{"metadata":{"name":"@"},"stringData":{"password":"`+canary+`"}}`)
}

// refused sends a request to each server in turn, and wants a 4xx with a Status.
func (c *cluster) refused(t *testing.T, client *http.Client, what string, r request) {
	t.Helper()
	server := len(what) % len(c.hosts)
	code, body := c.do(t, client, server, r)
	status := metav1.Status{}
	err := json.Unmarshal([]byte(body), &status)
	short := body[:min(len(body), 300)]
	switch {
	case code < http.StatusBadRequest || code >= http.StatusInternalServerError:
		t.Errorf("%s: %d %s", what, code, short)
	case code == http.StatusNotFound && body == "404 page not found\n":
	case err != nil || status.Kind != "Status" || status.Reason == "" || status.Message == "" || int(status.Code) != code:
		t.Errorf("%s: no whole Status: %d %s", what, code, short)
	case code == http.StatusUnprocessableEntity && status.Details == nil:
		t.Errorf("%s: no details: %s", what, short)
	}
}

func (c *cluster) testBodies(t *testing.T) {
	for name, body := range badBodies() {
		for collection := range existing {
			for _, contentType := range []string{jsonType, yamlType, protoType, "application/cbor", "text/plain"} {
				c.refused(t, c.admin, name+" as "+contentType, request{method: http.MethodPost, path: collection, contentType: contentType, body: body})
			}
			c.refused(t, c.admin, name+" over another", request{method: http.MethodPut, path: collection + "/old", contentType: jsonType, body: body})
		}
	}
}

func (c *cluster) testObjects(t *testing.T) {
	try := func(name, collection, body string) {
		for way, r := range everyWay(collection, body) {
			if merges := way == "strategic" || way == "apply"; merges && mergedAway[name] || way == "strategic" && collection == gadgets {
				continue
			}
			c.refused(t, c.admin, fmt.Sprintf("%s of %s: %s", way, collection, name), r)
		}
	}
	for collection, body := range existing {
		for name, metadata := range badMetadata() {
			try(name, collection, strings.Replace(body, `"name":"@"`, `"name":"@",`+metadata, 1))
		}
	}
	for name, bad := range badSpecs() {
		try(name, bad.collection, strings.Replace(existing[bad.collection], bad.was, bad.is, 1))
	}
	large := strings.Replace(existing[configMaps], `"k":"`, `"k":"`+strings.Repeat("x", 2<<20), 1)
	c.refused(t, c.admin, "2 MiB", everyWay(configMaps, large)["update"])
}

// mergedAway are flaws that those who merge lists do not see.
var mergedAway = map[string]bool{"no containers": true, "the same twice": true}

func (c *cluster) testPatches(t *testing.T) {
	for contentType, bodies := range badPatches() {
		for i, body := range bodies {
			r := request{method: http.MethodPatch, path: configMaps + "/old?fieldManager=m", contentType: contentType, body: body}
			c.refused(t, c.admin, fmt.Sprintf("%s %d", contentType, i), r)
		}
	}
	c.refused(t, c.admin, "strategic of a custom resource", everyWay(gadgets, existing[gadgets])["strategic"])
	c.refused(t, c.admin, "apply without a manager", request{method: http.MethodPatch, path: configMaps + "/old", contentType: "application/apply-patch+yaml", body: existing[configMaps]})
}

func (c *cluster) testNames(t *testing.T) {
	for name, escaped := range badNames() {
		for collection := range existing {
			text, err := json.Marshal(name)
			if err != nil {
				t.Fatal(err)
			}
			body := strings.Replace(existing[collection], `"@"`, string(text), 1)
			c.refused(t, c.admin, fmt.Sprintf("%q in a body", name), request{method: http.MethodPost, path: collection, contentType: jsonType, body: body})
			for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete} {
				c.refused(t, c.admin, fmt.Sprintf("%s %q in a path", method, name), request{method: method, path: collection + "/" + escaped, contentType: jsonType, body: body})
			}
		}
		c.refused(
			t,
			c.admin,
			fmt.Sprintf("%q as a namespace", name),
			request{method: http.MethodPost, path: "/api/v1/namespaces/" + escaped + "/configmaps", contentType: jsonType, body: existing[configMaps]},
		)
	}
	generate := strings.Replace(existing[configMaps], `"name":"@"`, `"generateName":"A_"`, 1)
	c.refused(t, c.admin, "generateName", request{method: http.MethodPost, path: configMaps, contentType: jsonType, body: generate})
}

func (c *cluster) testQueries(t *testing.T) {
	for _, query := range badQueries() {
		for collection := range existing {
			c.refused(t, c.admin, collection+"?"+query, request{method: http.MethodGet, path: collection + "?" + query})
		}
	}
	for _, path := range []string{pods + "/old/log?tailLines=-1", pods + "/old/log?sinceTime=x", pods + "/old/log?sinceSeconds=0", pods + "/old/log?container=../../etc/shadow", pods + "/old/exec", pods + "/old/portforward?ports=x",
		"/apis/example.com/v1/gadgets/old", "/apis/example.com/v1/namespaces/default/gadgets/old/spec", "/api/v1/namespaces/default/nodes/n1"} {
		c.refused(t, c.admin, path, request{method: http.MethodGet, path: path})
	}
}

// checkLog looks for panics, and for what nobody may read there.
func (c *cluster) checkLog(t *testing.T) {
	t.Helper()
	for _, line := range c.log.lines() {
		if strings.Contains(line, "panic") || strings.Contains(line, canary) {
			t.Errorf("logged: %.500s", line)
		}
	}
}
