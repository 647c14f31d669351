package server

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/server/inprocess"
	"github.com/setpoint-io/setpoint/server/offline"
)

// TestASecretIsInNoFile plants texts in a Secret and in a ConfigMap of three servers. The
// ConfigMap's is in every file that holds objects, the Secret's in none.
func TestASecretIsInNoFile(t *testing.T) {
	cluster, addresses, servers, _ := startThree(t)
	client := clientOf(t, servers[0])
	var open, hidden []string
	for i := range 3 { // a create and two updates
		open, hidden = append(open, fmt.Sprintf("0pen-%d-%d", i, time.Now().UnixNano())), append(hidden, fmt.Sprintf("h1dden-%d-%d", i, time.Now().UnixNano()))
		plant(t, client, i == 0, open[i], hidden[i])
	}
	for _, s := range servers {
		secret, err := clientOf(t, s).CoreV1().Secrets("default").Get(t.Context(), "planted", metav1.GetOptions{})
		if err != nil || string(secret.Data["text"]) != hidden[2] {
			t.Errorf("%s: %v", s.config.Name, err)
		}
		report, err := s.api.storage.InspectEncryption(t.Context())
		if err != nil || report.Objects == 0 || report.Outdated != 0 || report.Unreadable != 0 {
			t.Errorf("%s: %+v, %v", s.config.Name, report, err)
		}
	}
	archive := filepath.Join(t.TempDir(), "archive")
	var text bytes.Buffer
	if _, err := servers[1].log.Backup(t.Context(), &text); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(archive, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, s := range servers {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
		lookFor(t, s.config.DataDir, open, hidden)
	}
	lookFor(t, archive, open[2:], hidden)

	// A restored server begins with a snapshot, and reads it.
	restored := offline.Options{
		Name: "server-1", DataDir: t.TempDir(), InitialServers: "server-1=" + addresses[0].Endpoint,
		TrustDir: filepath.Dir(filepath.Dir(cluster.EncryptionFile())), Logger: slog.New(slog.DiscardHandler),
	}
	file, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := offline.RestoreBackup(t.Context(), file, archive, restored, false); err != nil {
		t.Fatal(err)
	}
	lookFor(t, restored.DataDir, open[2:], hidden)
	s := startLone(t, restored.DataDir, cluster)
	secret, err := clientOf(t, s).CoreV1().Secrets("default").Get(t.Context(), "planted", metav1.GetOptions{})
	if err != nil || string(secret.Data["text"]) != hidden[2] {
		t.Errorf("restored: %v", err)
	}
}

// lookFor fails unless there are all texts in open, and none in hidden, in the files below path.
func lookFor(t *testing.T, path string, open, hidden []string) {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(path, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		for _, text := range append(open[:len(open):len(open)], hidden...) {
			if bytes.Contains(content, []byte(text)) {
				found[text] = path
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range open {
		if found[text] == "" {
			t.Errorf("%s: the open text is not found, so this finds nothing", path)
		}
	}
	for _, text := range hidden {
		if found[text] != "" {
			t.Errorf("a Secret's text is in %s", found[text])
		}
	}
}

func plant(t *testing.T, client kubernetes.Interface, first bool, open, hidden string) {
	t.Helper()
	m := metav1.ObjectMeta{Namespace: "default", Name: "planted"}
	secret := &corev1.Secret{ObjectMeta: m, Data: map[string][]byte{"text": []byte(hidden)}}
	bundle := &corev1.ConfigMap{ObjectMeta: m, Data: map[string]string{"text": open}}
	secrets, bundles := client.CoreV1().Secrets("default"), client.CoreV1().ConfigMaps("default")
	var errs [2]error
	if first {
		_, errs[0] = secrets.Create(t.Context(), secret, metav1.CreateOptions{})
		_, errs[1] = bundles.Create(t.Context(), bundle, metav1.CreateOptions{})
	} else {
		_, errs[0] = secrets.Update(t.Context(), secret, metav1.UpdateOptions{})
		_, errs[1] = bundles.Update(t.Context(), bundle, metav1.UpdateOptions{})
	}
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// clientOf is the administrator's client of a server that is ready.
func clientOf(t *testing.T, s *Server) kubernetes.Interface {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), readyTimeout)
	defer cancel()
	if err := s.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(s.api.door.Config(inprocess.Server, 0))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// startLone runs one server on a data directory, at any free port.
func startLone(t *testing.T, dir string, cluster *trust.Cluster) *Server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, err := Start(context.Background(), Config{
		Name: "server-1", DataDir: dir, Trust: cluster, Listener: listener, Logger: slog.New(slog.DiscardHandler),
		InitialServers: []trust.Server{{Name: "server-1", Endpoint: listener.Addr().String()}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop() })
	return s
}

// TestTurningTheKeyOfARunningCluster: the leader writes everything again, tells how far it
// is, and a server that lacks a key says so until it has it.
func TestTurningTheKeyOfARunningCluster(t *testing.T) {
	cluster, _, servers, _ := startThree(t)
	client := clientOf(t, servers[0])
	plant(t, client, true, "o", "h")
	former, err := os.ReadFile(cluster.EncryptionFile())
	if err != nil {
		t.Fatal(err)
	}
	fresh := "      - name: turned\n        secret: MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\n"
	turn := func(text string) {
		t.Helper()
		if err := os.WriteFile(cluster.EncryptionFile(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	turn(strings.Replace(string(former), "      keys:\n", "      keys:\n"+fresh, 1))
	awaitEncryption(t, servers, func(s *Server) bool {
		return s.api.atRest.Generation() == 1 && s.Status().Encryption.ToRewrite == 0 && strings.Contains(storedSecret(s), ":turned:")
	})
	// Without the key in use: the server says which object it cannot read, and recovers.
	turn(string(former))
	awaitEncryption(t, servers, func(s *Server) bool {
		err := s.api.atRest.Check(t.Context())
		return s.Status().Encryption.Unreadable > 0 && err != nil && strings.Contains(err.Error(), "/core/secrets/default/planted")
	})
	before := storedSecret(servers[0])
	turn(strings.Replace(string(former), "  - identity", fresh+"  - identity", 1))
	awaitEncryption(t, servers, func(s *Server) bool {
		return s.Status().Encryption.Unreadable == 0 && s.api.atRest.Check(t.Context()) == nil && !strings.Contains(storedSecret(s), ":turned:")
	})
	if !strings.Contains(before, ":turned:") {
		t.Error("what could not be read was written over")
	}
}

func storedSecret(s *Server) string {
	r, ok := s.log.Root().Get("/core/secrets/default/planted")
	if !ok {
		return ""
	}
	return string(r.Value)
}

// awaitEncryption waits until all servers are as wanted.
func awaitEncryption(t *testing.T, servers []*Server, wanted func(*Server) bool) {
	t.Helper()
	for _, s := range servers {
		for end := time.Now().Add(time.Minute); s.Status().Encryption == nil || !wanted(s); time.Sleep(50 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: %+v", s.config.Name, s.Status().Encryption)
			}
		}
	}
}
