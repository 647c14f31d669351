package clients

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	databases = 3
	// databaseUser runs PostgreSQL, which refuses root.
	databaseUser = "postgres"
	// openFolder is the test's own, as that of a test is not, into which others may go.
	openFolder = "/run"
)

// TestPatroni elects the leader of three PostgreSQL servers with Patroni (root; Debian's patroni and postgresql), which keeps its lock in the
// annotations of an Endpoints object by a client of its own. It stays through the death of the leading server, and goes with its own.
func TestPatroni(t *testing.T) {
	if !alone(t) {
		return
	}
	c := startServers(t)
	c.withoutWarnings(t)
	c.kubectl(t, patroniObjects, "apply", "-f", "-")
	kubeconfig := c.patroniKubeconfig(t)
	var all []*database
	for i := range databases {
		all = append(all, startDatabase(t, i+1, kubeconfig))
	}
	first := awaitLeader(t, all, "")

	killed := time.Now()
	c.killLeader(t)
	look(t, awaitTimeout, "the lock is renewed", func() (string, bool) {
		e := c.lock(t)
		renewed, err := time.Parse(time.RFC3339, e.Annotations["renewTime"])
		return fmt.Sprint(e.Annotations, err), err == nil && renewed.After(killed.Add(5*time.Second))
	})
	if now := awaitLeader(t, all, ""); now != first || c.lock(t).Annotations["transitions"] != "0" {
		t.Errorf("%s leads after %s, with the lock %v", now, first, c.lock(t).Annotations)
	}

	all[slices.IndexFunc(all, func(d *database) bool { return d.name == first })].kill(t)
	second := awaitLeader(t, all, first)
	look(t, awaitTimeout, "the Service leads to "+second, func() (string, bool) {
		subsets := c.lock(t).Subsets
		return fmt.Sprint(subsets), len(subsets) == 1 && len(subsets[0].Addresses) == 1 && subsets[0].Addresses[0].TargetRef.Name == second
	})
}

// patroniObjects are what its documentation asks for, but for a workload: the databases run beside the test.
const patroniObjects = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: patroni}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: patroni}
rules:
- {apiGroups: [""], resources: [endpoints], verbs: [create, get, list, patch, update, watch, delete, deletecollection]}
- {apiGroups: [""], resources: [pods], verbs: [get, list, patch, update, watch]}
- {apiGroups: [""], resources: [services], verbs: [create]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: patroni}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: patroni}
subjects: [{kind: ServiceAccount, name: patroni, namespace: default}]
---
apiVersion: v1
kind: Service
metadata: {name: demo, labels: {application: patroni, cluster-name: demo}}
spec: {ports: [{port: 5432}]}
---
apiVersion: v1
kind: Pod
metadata: {name: demo-1, labels: {application: patroni, cluster-name: demo}}
spec: {containers: [{name: c, image: example.com/postgres}]}
---
apiVersion: v1
kind: Pod
metadata: {name: demo-2, labels: {application: patroni, cluster-name: demo}}
spec: {containers: [{name: c, image: example.com/postgres}]}
---
apiVersion: v1
kind: Pod
metadata: {name: demo-3, labels: {application: patroni, cluster-name: demo}}
spec: {containers: [{name: c, image: example.com/postgres}]}
`

// withoutWarnings does not tell again and again that Endpoints are deprecated.
func (c *cluster) withoutWarnings(t *testing.T) {
	t.Helper()
	c.config.WarningHandlerWithContext = rest.NoWarnings{}
	var err error
	c.client, err = kubernetes.NewForConfig(c.config)
	mustf(t, err, "making a client")
}

// patroniKubeconfig is that of the service account, for everybody to read.
func (c *cluster) patroniKubeconfig(t *testing.T) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(c.kubeconfig)
	mustf(t, err, "reading the kubeconfig")
	token := c.kubectl(t, "", "create", "token", "patroni", "--duration", "1h")
	current := config.Contexts[config.CurrentContext]
	config.AuthInfos = map[string]*clientcmdapi.AuthInfo{"patroni": {Token: strings.TrimSpace(token)}}
	config.Contexts = map[string]*clientcmdapi.Context{"patroni": {Cluster: current.Cluster, AuthInfo: "patroni", Namespace: "default"}}
	config.CurrentContext = "patroni"
	path := filepath.Join(openFolder, "kubeconfig")
	mustf(t, clientcmd.WriteToFile(*config, path), "writing the kubeconfig")
	mustf(t, os.Chmod(path, 0o644), "letting %s read it", databaseUser)
	return path
}

// lock is the object that says who leads.
func (c *cluster) lock(t *testing.T) *corev1.Endpoints { //nolint:staticcheck // what Patroni uses
	t.Helper()
	e, err := c.client.CoreV1().Endpoints("default").Get(t.Context(), "demo", metav1.GetOptions{})
	mustf(t, err, "getting the lock")
	return e
}

// database is one PostgreSQL server with its Patroni.
type database struct {
	name, dir, api string
	patroni        *process
}

const patroniConfig = `
scope: demo
name: %[1]s
restapi: {listen: "127.0.0.1:%[2]d", connect_address: "127.0.0.1:%[2]d"}
kubernetes:
  {context: patroni, namespace: default, labels: {application: patroni}, scope_label: cluster-name, use_endpoints: true, pod_ip: %[3]s,
   ports: [{port: 5432, name: postgresql}]}
bootstrap:
  dcs: {ttl: 20, loop_wait: 2, retry_timeout: 5}
  initdb: [{encoding: UTF8}]
  pg_hba: ["host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"]
postgresql:
  listen: "127.0.0.1:%[4]d"
  connect_address: "127.0.0.1:%[4]d"
  data_dir: %[5]s/data
  bin_dir: %[6]s
  pgpass: %[5]s/pgpass
  parameters: {unix_socket_directories: %[5]s}
  authentication: {superuser: {username: postgres, password: a}, replication: {username: replicator, password: b}}
`

// startDatabase runs the i-th.
func startDatabase(t *testing.T, i int, kubeconfig string) *database {
	t.Helper()
	bins, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil || len(bins) == 0 {
		t.Fatalf("no PostgreSQL: apt-get install patroni postgresql: %v", err)
	}
	d := &database{name: fmt.Sprint("demo-", i), dir: filepath.Join(openFolder, fmt.Sprint("demo-", i)), api: fmt.Sprint("http://127.0.0.1:", 8000+i)}
	account, err := user.Lookup(databaseUser)
	mustf(t, err, "looking up %s", databaseUser)
	uid, err := strconv.Atoi(account.Uid)
	mustf(t, err, "reading its uid")
	mustf(t, os.Mkdir(d.dir, 0o700), "making its folder")
	mustf(t, os.Chown(d.dir, uid, -1), "giving it its folder")
	config := fmt.Sprintf(patroniConfig, d.name, 8000+i, aloneAddress, 5430+i, d.dir, bins[len(bins)-1])
	file := filepath.Join(d.dir, "patroni.yml")
	mustf(t, os.WriteFile(file, []byte(config), 0o644), "writing its configuration")
	d.patroni = mustStart(t, "Lock owner", []string{"KUBECONFIG=" + kubeconfig}, "/usr/bin/env", "--chdir", d.dir,
		"setpriv", "--reuid", databaseUser, "--regid", databaseUser, "--clear-groups", "patroni", file)
	t.Cleanup(func() { d.kill(t) })
	return d
}

// kill kills both at once, if they run.
func (d *database) kill(t *testing.T) {
	t.Helper()
	_ = d.patroni.cmd.Process.Kill() // it may have ended
	text, err := os.ReadFile(filepath.Join(d.dir, "data", "postmaster.pid"))
	mustf(t, err, "reading the process of PostgreSQL")
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	mustf(t, err, "reading the process of PostgreSQL")
	_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
	d.patroni.kill()                       // what it has printed ends with PostgreSQL
}

// awaitLeader returns which database leads, other than the former, once all that live follow it.
func awaitLeader(t *testing.T, all []*database, former string) (leader string) {
	t.Helper()
	look(t, awaitTimeout, "one leads and the others stream", func() (string, bool) {
		var said []string
		var streaming int
		leader = ""
		for _, d := range all {
			s := d.state(t)
			said = append(said, fmt.Sprintf("%s: %+v", d.name, s))
			if (s.Role == "master" || s.Role == "primary") && s.State == "running" {
				leader, streaming = d.name, len(s.Replication)
			}
		}
		alive := len(all)
		if former != "" {
			alive--
		}
		return strings.Join(said, "\n"), leader != "" && leader != former && streaming == alive-1
	})
	return leader
}

// databaseState is what Patroni tells of one.
type databaseState struct {
	Role, State string
	Replication []struct {
		Name string `json:"application_name"`
	}
}

// state is empty while nobody answers.
func (d *database) state(t *testing.T) (s databaseState) {
	t.Helper()
	resp, err := http.Get(d.api + "/patroni")
	if err != nil {
		return s
	}
	defer resp.Body.Close()
	_ = json.NewDecoder(resp.Body).Decode(&s) // what is told in part is asked for again
	return s
}
