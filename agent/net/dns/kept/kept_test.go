package kept

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func world() Names {
	ready, host := true, "db-0"
	return Names{
		Services: []*corev1.Service{
			{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}, Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.9", Ports: []corev1.ServicePort{{Name: "http", Port: 80}}}},
			{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "out"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.com"}},
		},
		Slices: []*discoveryv1.EndpointSlice{{
			ObjectMeta:  metav1.ObjectMeta{Namespace: "ns", Name: "db-x", Labels: map[string]string{discoveryv1.LabelServiceName: "db"}},
			AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"10.42.0.7"}, Hostname: &host, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}},
		}},
	}
}

func TestWhatIsSavedIsLoaded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "names")
	if _, err := Load(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before: %v", err)
	}
	for _, names := range []Names{world(), {}} {
		if err := Save(path, names); err != nil {
			t.Fatal(err)
		}
		got, err := Load(path)
		if diff := cmp.Diff(names, got); diff != "" || err != nil {
			t.Errorf("%v %s", err, diff)
		}
	}
}

func TestOnlyWhatNamesAreMadeFromIsKept(t *testing.T) {
	path, names := filepath.Join(t.TempDir(), "names"), world()
	names.Services[0].Annotations = map[string]string{"note": "private"}
	if err := Save(path, names); err != nil {
		t.Fatal(err)
	}
	got, err := Load(path)
	if diff := cmp.Diff(world(), got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
}

// TestADamagedFile is an error wherever it was cut or changed.
func TestADamagedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "names")
	if err := Save(path, world()); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		if _, err := read(bytes.NewReader(whole[:i])); err == nil {
			t.Errorf("cut at %d: no error", i)
		}
	}
	const header = 10 // of gzip: it may say another time and system
	for i := header; i < len(whole); i++ {
		changed := bytes.Clone(whole)
		changed[i] ^= 0x10
		if got, err := read(bytes.NewReader(changed)); err == nil && !cmp.Equal(got, world()) {
			t.Errorf("changed at %d: %v", i, got)
		}
	}
}

func FuzzRead(f *testing.F) {
	path := filepath.Join(f.TempDir(), "names")
	if err := Save(path, world()); err != nil {
		f.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Fuzz(func(_ *testing.T, file []byte) { _, _ = read(bytes.NewReader(file)) })
}
