package ui

import (
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
)

// credentialsEnded is what the page says of it.
const credentialsEnded = "the servers do not accept the credentials any more: renew the kubeconfig, and this page goes on. Trying again…"

// TestATokenEnds while the page shows an object: the page says so in one sentence, goes on showing what it knows, says of it that it is
// old, and follows the cluster again when somebody has renewed the kubeconfig.
func TestATokenEnds(t *testing.T) {
	c := ownTime(t)
	c.setpoint("kubectl", "create", "serviceaccount", "viewer")
	c.setpoint("kubectl", "create", "clusterrolebinding", "viewer", "--clusterrole=cluster-admin", "--serviceaccount=default:viewer")
	theirs := filepath.Join(t.TempDir(), "kubeconfig")
	token := func() string {
		return strings.TrimSpace(c.setpoint("kubectl", "create", "token", "viewer", "--duration=10m"))
	} // the shortest there is
	writeKubeconfig(t, theirs, c.config("{.clusters[0].cluster.server}"), c.config("{.clusters[0].cluster.certificate-authority-data}"), token())
	p := c.pageOf(theirs)
	p.visit("#/object/nodes/-/sim-1")
	p.sees("main", "Node sim-1", "KubeletReady")
	c.advance("15m")
	c.setpoint("kubectl", "cordon", "sim-1")
	p.isOld(".object .scroll", "Node sim-1", "KubeletReady")
	p.picture("ended-object")
	p.visit("#/cluster")
	p.eventually("what ended", "document.querySelector('#connection').textContent === "+quoted(credentialsEnded))
	writeKubeconfig(t, theirs, c.config("{.clusters[0].cluster.server}"), c.config("{.clusters[0].cluster.certificate-authority-data}"), token())
	p.sees("#connection", "connected")
	p.sees("[aria-label=Servers]", "for administrators alone")
	p.sees(".grid", "cordoned")
	p.noFaults()
}

// TestTheAdministratorsCredentialsEnd, which a server in between plays: servers and loops are told to administrators alone.
func TestTheAdministratorsCredentialsEnd(t *testing.T) {
	c := startCluster(t)
	between, ended := c.between()
	theirs := filepath.Join(t.TempDir(), "kubeconfig")
	writeKubeconfig(t, theirs, between, "", "any")
	p := c.pageOf(theirs)
	for _, view := range []struct{ hash, part, known string }{
		{"#/cluster", "[aria-label=Servers]", "leader"}, {"#/loops", "[aria-label=Loops]", "replicaset-controller"},
	} {
		p.visit(view.hash)
		p.sees(view.part, view.known)
		ended.Store(true)
		p.isOld(view.part, view.known)
		p.picture("ended-" + p.text("nav [aria-current]"))
		p.dark(true)
		p.picture("ended-dark-" + p.text("nav [aria-current]"))
		p.dark(false)
		ended.Store(false)
		p.sees("#connection", "connected")
		p.eventually("that nothing is old", "!document.querySelector('[data-old]')")
	}
	p.noFaults()
}

// isOld waits until a part of the page is old, and still says what it said.
func (p *page) isOld(part string, known ...string) {
	p.t.Helper()
	p.eventually("what ended", "document.querySelector('#connection').textContent === "+quoted(credentialsEnded))
	p.eventually("that it is old", "/^as it was at /.test(document.querySelector("+quoted(part)+").dataset.old)")
	p.sees(part, known...)
}

func (p *page) noFaults() {
	p.t.Helper()
	if faults := p.faults(); len(faults) > 0 {
		p.t.Errorf("the page has reported faults of its own: %q", faults)
	}
}

// pageOf opens the page that is served with a kubeconfig.
func (c *cluster) pageOf(kubeconfig string) *page {
	address, _ := c.start(regexp.MustCompile(`^ +(http://\S+)`), "ui", "--kubeconfig", kubeconfig)
	return openPage(c.t, address)
}

// config is what the administrator's kubeconfig has at a path.
func (c *cluster) config(path string) string {
	return c.setpoint("kubectl", "config", "view", "--raw", "-o", "jsonpath="+path)
}

func writeKubeconfig(t *testing.T, path, server, authority, token string) {
	t.Helper()
	text := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
		"clusters": [{"name": "c", "cluster": {"server": %q, "certificate-authority-data": %q}}],
		"users": [{"name": "u", "user": {"token": %q}}]}`, server, authority, token)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// between starts a server that asks the cluster's with the administrator's credentials, and accepts nobody's while ended is true.
func (c *cluster) between() (address string, ended *atomic.Bool) {
	c.t.Helper()
	part := func(path string) []byte {
		text, err := base64.StdEncoding.DecodeString(c.config(path))
		if err != nil {
			c.t.Fatal(err)
		}
		return text
	}
	pair, err := tls.X509KeyPair(part("{.users[0].user.client-certificate-data}"), part("{.users[0].user.client-key-data}"))
	if err != nil {
		c.t.Fatal(err)
	}
	to, err := url.Parse(c.config("{.clusters[0].cluster.server}"))
	if err != nil {
		c.t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.FlushInterval = -1
	proxy.Transport = &http.Transport{TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true}} // loopback
	ended = &atomic.Bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ended.Load() {
			http.Error(w, "Unauthorized", http.StatusUnauthorized)
			return
		}
		r.Header.Del("Authorization")
		proxy.ServeHTTP(w, r)
	}))
	c.t.Cleanup(server.CloseClientConnections)
	return server.URL, ended
}
