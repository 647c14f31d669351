package broken

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/setpointtest"
)

// noObject has the beginning of one.
const noObject = "\x01k8s\x00\xff\xff\xff"

// planted are ways that no client could make: the value is put into the log of a server that is stopped.
var planted = []struct {
	way
	// name is the object's, of the poor namespace.
	resource, name, value string
	// holds is that the loops wait until the object is deleted: they may not act on what they know of its kind without it.
	holds bool
}{
	{way{name: "value that is no object", kind: configMaps, named: unread("configmaps")}, "configmaps", "broken", noObject, false},
	{way{name: "value of no encoding", kind: configMaps, named: unread("configmaps")}, "configmaps", "broken", "\xffnothing", false},
	{way{name: "Secret that is no object", kind: secrets, named: unread("secrets")}, "secrets", "broken", noObject, false},
	{way{name: "Pod that is no object", named: unread("pods"), logged: "decode /core/pods/poor/broken at revision"}, "pods", "broken", noObject, true},
	{way{name: "name that nobody can address", kind: configMaps, named: endsWithNamespace}, "configmaps", "..", configMapNamed(".."), false},
}

// TestPlantedObjects plays them on a disk, in real time.
func TestPlantedObjects(t *testing.T) {
	for _, w := range planted {
		t.Run(strings.ReplaceAll(w.way.name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			log := &record{}
			config := w.config(log)
			config.DataDir = t.TempDir()
			t.Run("before", func(t *testing.T) { begin(setpointtest.Start(t, config)) })
			plant(t, config.DataDir, "/core/"+w.resource+"/"+poor+"/"+w.name, w.value)
			c := setpointtest.Start(t, config)
			if w.holds {
				w.named(t, c)
				logged := func(*unstructured.Unstructured) bool { return log.says(w.logged) }
				c.Eventually("namespace/"+poor, setpointtest.That("there beside a line of the log that says "+w.logged, logged))
				remove(t, c, w.name)
				w.named = nil // it is gone
			}
			w.play(t, c, log, 0)
		})
	}
}

// unread: a list of the kind in the object's namespace names it.
func unread(resource string) func(t *testing.T, c *setpointtest.Cluster) {
	return func(t *testing.T, c *setpointtest.Cluster) {
		_, err := dynamicOf(t, c).Resource(corev1.SchemeGroupVersion.WithResource(resource)).Namespace(poor).List(t.Context(), metav1.ListOptions{})
		assertNames(t, err, "/core/"+resource+"/poor/broken")
	}
}

// endsWithNamespace: nobody can delete it by its name, but with all others.
func endsWithNamespace(_ *testing.T, c *setpointtest.Cluster) {
	c.Delete("namespace/" + poor)
	c.Eventually("namespace/"+poor, setpointtest.Gone)
}

// configMapNamed is the stored value of one.
func configMapNamed(name string) string {
	object := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: poor, Name: name, UID: "broken"},
	}
	var value bytes.Buffer
	value.WriteByte(command.EncodingProtobuf)
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(object, &value); err != nil {
		panic(err)
	}
	return value.String()
}

// remove deletes an object that cannot be read.
func remove(t *testing.T, c *setpointtest.Cluster, name string) {
	t.Helper()
	err := c.Kubernetes().CoreV1().RESTClient().Delete().Namespace(poor).Resource("pods").Name(name).
		Body(&metav1.DeleteOptions{IgnoreStoreReadErrorWithClusterBreakingPotential: new(true)}).Do(t.Context()).Error()
	if err != nil {
		t.Fatal(err)
	}
}

// plant puts a value into the log of a stopped server.
func plant(t *testing.T, dir, key, value string) {
	t.Helper()
	cluster, err := trust.InitCluster(dir, nil, metav1.Now().Time)
	if err != nil {
		t.Fatal(err)
	}
	store, err := raftstore.Open(t.Context(), raftstore.Config{
		Name: "server-1", ClusterID: cluster.CA.Pin(), DataDir: dir, AdvertiseAddress: "127.0.0.1:1", Logger: slog.New(slog.DiscardHandler),
		InitialServers: []raftstore.Server{{ID: "server-1", Address: "127.0.0.1:1"}}, Fatal: func(err error) { t.Error(err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	put := command.Op{Kind: command.Put, Key: key, UID: "broken", Value: []byte(value), Precondition: command.Absent}
	if _, err := store.ReadIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
	if result, err := store.Propose(t.Context(), command.Command{Ops: []command.Op{put}}); err != nil || result.Code != command.OK {
		t.Fatal(result, err)
	}
	if err := store.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
}
