package trust

import (
	"bytes"
	"crypto/x509"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/setpoint-io/setpoint/internal/trust/kubeconfigs"
	"github.com/setpoint-io/setpoint/internal/trust/secretfile"
	"github.com/setpoint-io/setpoint/internal/trust/tokens"
)

func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		files[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

var twoServers = []Server{{Name: "server-1", Endpoint: "one.example:6443"}, {Name: "server-2", Endpoint: "192.0.2.2:6443"}}

func TestInitCluster(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	cluster := must[*Cluster](t)(InitCluster(dir, twoServers, now))
	files := contents(t, dir)
	for _, name := range []string{
		"admin.kubeconfig", "server-1.kubeconfig", "server-2.kubeconfig", "pki/ca.crt", "pki/ca.key", "pki/gossip.key",
		"pki/node.token", "pki/sa.key", "pki/encryption.yaml", "pki/server-1.crt", "pki/server-1.key", "pki/server-2.crt", "pki/server-2.key", "pki/admin.crt", "pki/admin.key",
	} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
			continue
		}
		if secret := !strings.HasSuffix(name, ".crt"); secret && info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %s", name, info.Mode())
		}
	}
	if len(files) != 15 {
		t.Errorf("%d files, want 15: is a temporary one left?", len(files))
	}
	if keys := cluster.GossipKeys.Told().Keys; len(keys) != 1 || len(keys[0]) != 32 {
		t.Errorf("%d gossip keys", len(keys))
	}

	must[*Cluster](t)(InitCluster(dir, twoServers, now.Add(time.Hour)))
	if diff := cmp.Diff(files, contents(t, dir)); diff != "" {
		t.Errorf("a second init changed:\n%s", diff)
	}
	loaded := must[*Cluster](t)(LoadCluster(dir))
	if loaded.NodeToken != cluster.NodeToken || loaded.CA.Pin() != cluster.CA.Pin() || !cmp.Equal(loaded.GossipKeys.Told(), cluster.GossipKeys.Told()) {
		t.Error("what is loaded is not what was made")
	}
}

func TestInitClusterRenews(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		servers []Server
		now     time.Time
		// swapKey leaves another's key, as a crash between the two writes does.
		swapKey, renewed bool
	}{
		"half of its life left":     {servers: twoServers, now: now.Add(leafValidity / 2)},
		"a third of its life left":  {servers: twoServers, now: now.Add(leafValidity*2/3 + 24*time.Hour), renewed: true},
		"the server has a new name": {servers: []Server{{Name: "server-1", Endpoint: "moved.example:6443"}}, now: now, renewed: true},
		"the key is another's":      {servers: twoServers, now: now, swapKey: true, renewed: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			cluster := must[*Cluster](t)(InitCluster(dir, twoServers, now))
			before := must[*Identity](t)(cluster.LoadServer("server-1"))
			if c.swapKey {
				other := must[*Identity](t)(cluster.LoadServer("server-2"))
				if err := secretfile.Write(cluster.path("server-1.key"), other.KeyPEM, secretfile.Secret); err != nil {
					t.Fatal(err)
				}
			}
			after := must[*Identity](t)(must[*Cluster](t)(InitCluster(dir, c.servers, c.now)).LoadServer("server-1"))
			if renewed := !bytes.Equal(before.CertPEM, after.CertPEM); renewed != c.renewed {
				t.Errorf("renewed: %v", renewed)
			}
		})
	}
}

func TestLoadClusterRefusesForeignToken(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	cluster := must[*Cluster](t)(InitCluster(dir, nil, time.Now()))
	foreign := must[*Cluster](t)(InitCluster(other, nil, time.Now()))
	if err := secretfile.Write(cluster.path(fileNodeToken), []byte(foreign.NodeToken.Text()), secretfile.Secret); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadCluster(dir); !errors.Is(err, tokens.ErrBad) {
		t.Error(err)
	}
	if _, err := cluster.LoadServer("none"); !errors.Is(err, ErrNoServer) {
		t.Error(err)
	}
}

func TestKubeconfig(t *testing.T) {
	dir := t.TempDir()
	must[*Cluster](t)(InitCluster(dir, twoServers, time.Now()))
	config, err := clientcmd.LoadFromFile(filepath.Join(dir, AdminKubeconfig))
	if err != nil {
		t.Fatal(err)
	}
	if config.CurrentContext != "server-1" || len(config.Contexts) != 2 || config.Clusters["server-2"].Server != "https://192.0.2.2:6443" {
		t.Errorf("%+v", config)
	}
	client, err := clientcmd.NewDefaultClientConfig(*config, nil).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	certificate := must[*x509.Certificate](t)(ParseCertificate(client.CertData))
	if got := certificate.Subject.String(); got != "CN=admin,O=system:masters" {
		t.Error(got)
	}
}

func TestClusterInfo(t *testing.T) {
	ca := newCA(t, time.Now())
	config, err := clientcmd.Load(must[[]byte](t)(kubeconfigs.ClusterInfo(ca.CertPEM(), twoServers[1].Endpoint)))
	if err != nil {
		t.Fatal(err)
	}
	cluster := config.Clusters[""]
	if cluster == nil || cluster.Server != "https://192.0.2.2:6443" || !bytes.Equal(cluster.CertificateAuthorityData, ca.CertPEM()) || len(config.AuthInfos) > 0 {
		t.Errorf("%+v", config)
	}
}

func TestNodeFiles(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	if _, err := LoadNode(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty folder: %v", err)
	}
	ca := newCA(t, now)
	keyPEM := must[[]byte](t)(NodeKey(dir))
	if again := must[[]byte](t)(NodeKey(dir)); !bytes.Equal(keyPEM, again) {
		t.Error("the key of the machine is another one the second time")
	}
	request := must[*NodeRequest](t)(ParseNodeRequest(must[[]byte](t)(NewNodeRequest("a", keyPEM)), "a"))
	serving := must[[]byte](t)(must[*CA](t)(ca.NodeServing()).SignNodeServing(request, "", nil, now))
	node := must[*Node](t)(NewNode(must[[]byte](t)(ca.SignNode(request, now)), serving, keyPEM, ca.CertPEM(), FirstGossipKey(bytes.Repeat([]byte{7}, 32))))
	if err := node.Save(dir); err != nil {
		t.Fatal(err)
	}
	loaded := must[*Node](t)(LoadNode(dir))
	sameKeys := cmp.Comparer(func(a, b *GossipRing) bool { return cmp.Equal(a.Told(), b.Told()) })
	if diff := cmp.Diff(node, loaded, sameKeys); diff != "" {
		t.Error(diff)
	}
	for name, c := range map[string]struct {
		node         string
		now          time.Time
		valid, renew bool
	}{
		"fresh":        {"a", now, true, false},
		"another name": {"b", now, false, false},
		"near its end": {"a", now.Add(leafValidity * 9 / 10), true, true},
		"ended":        {"a", now.Add(leafValidity + time.Second), false, true},
	} {
		if valid, renew := loaded.Valid(c.node, c.now), loaded.NeedsRenewal(c.now); valid != c.valid || renew != c.renew {
			t.Errorf("%s: valid %v, renew %v", name, valid, renew)
		}
	}
	loaded.Serving = nil
	if !loaded.NeedsRenewal(now) {
		t.Error("a node without a certificate to serve with needs none")
	}
}
