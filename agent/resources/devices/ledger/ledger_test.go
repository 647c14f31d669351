package ledger

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const gpu = "example.com/gpu"

// known is "a b !c": c is ill.
func known(text string) map[string]Device {
	out := map[string]Device{}
	for _, id := range strings.Fields(text) {
		name, ill := strings.CutPrefix(id, "!")
		out[name] = Device{ID: name, Healthy: !ill}
	}
	return out
}

// podOf has containers "i:a s:b c": a is an init container, b a sidecar, c a main container.
func podOf(uid, containers string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)}}
	always := corev1.ContainerRestartPolicyAlways
	for _, text := range strings.Fields(containers) {
		kind, name, ok := strings.Cut(text, ":")
		switch {
		case !ok:
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: text})
		case kind == "s":
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{Name: name, RestartPolicy: &always})
		default:
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{Name: name})
		}
	}
	return pod
}

func TestChoose(t *testing.T) {
	for name, test := range map[string]struct {
		known     string
		had       map[string]string // by containers of the same pod
		others    string            // devices of another pod
		pod, of   string
		count     int
		preferred string
		want      string
	}{
		"by their names":                 {known: "b a c", pod: "m", of: "m", count: 2, want: "a b"},
		"as the plugin prefers":          {known: "a b c", pod: "m", of: "m", count: 2, preferred: "c b", want: "b c"},
		"what is preferred and is not":   {known: "a b c", others: "c", pod: "m", of: "m", count: 1, preferred: "c x", want: "a"},
		"not those of others":            {known: "a b c", others: "a", pod: "m", of: "m", count: 2, want: "b c"},
		"not the ill ones":               {known: "!a b c", pod: "m", of: "m", count: 2, want: "b c"},
		"too few":                        {known: "a b", others: "a", pod: "m", of: "m", count: 2, want: "requested number of devices unavailable for example.com/gpu. Requested: 2, Available: 1"},
		"all ill":                        {known: "!a", pod: "m", of: "m", count: 1, want: "no healthy devices present; cannot allocate unhealthy devices example.com/gpu"},
		"not registered":                 {pod: "m", of: "m", count: 1, want: "cannot allocate unregistered device example.com/gpu"},
		"from an init container":         {known: "a b c", had: map[string]string{"i": "b"}, pod: "i:i m", of: "m", count: 1, want: "b"},
		"and more":                       {known: "a b c", had: map[string]string{"i": "b"}, pod: "i:i m", of: "m", count: 2, want: "a b"},
		"between init containers":        {known: "a", had: map[string]string{"i": "a"}, pod: "i:i i:j m", of: "j", count: 1, want: "a"},
		"not from a sidecar":             {known: "a b", had: map[string]string{"s": "a"}, pod: "s:s m", of: "m", count: 1, want: "b"},
		"not twice among main ones":      {known: "a b", had: map[string]string{"i": "a", "m": "a"}, pod: "i:i m n", of: "n", count: 1, want: "b"},
		"what a sidecar took of an init": {known: "a b", had: map[string]string{"i": "a", "s": "a"}, pod: "i:i s:s m", of: "m", count: 1, want: "b"},
		"handed on but ill":              {known: "!a b", had: map[string]string{"i": "a"}, pod: "i:i m", of: "m", count: 1, want: "b"},
	} {
		t.Run(name, func(t *testing.T) {
			l := New()
			pod := podOf("p", test.pod)
			put := func(uid types.UID, container, ids string) {
				var devices []Device
				for _, id := range strings.Fields(ids) {
					devices = append(devices, Device{ID: id})
				}
				l.Put(Share{Key: Key{uid, container, gpu}, Devices: devices})
			}
			for container, ids := range test.had {
				put("p", container, ids)
			}
			put("q", "m", test.others)
			devices := known(test.known)
			if test.known == "" {
				devices = nil
			}
			choice, err := l.Choose(Want{pod, test.of, gpu, test.count}, devices)
			got := fmt.Sprint(err)
			if err == nil {
				s := Share{Devices: choice.Take(strings.Fields(test.preferred))}
				got = strings.Join(s.IDs(), " ")
			}
			if got != test.want {
				t.Errorf("%s, not %s", got, test.want)
			}
		})
	}
}

// TestNoDeviceIsGivenTwice lets pods come and go, and devices fall ill.
func TestNoDeviceIsGivenTwice(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	l := New()
	for round := range 3000 {
		devices := known("a b c d e f g h")
		for id, d := range devices {
			d.Healthy = random.IntN(4) > 0
			devices[id] = d
		}
		pod := podOf(fmt.Sprint("p", random.IntN(6)), "i:i s:s m n")
		container := []string{"i", "s", "m", "n"}[random.IntN(4)]
		want := Want{pod, container, gpu, 1 + random.IntN(3)}
		if _, ok := l.Share(want.Key()); ok {
			l.Free(pod.UID)
			continue
		}
		choice, err := l.Choose(want, devices)
		if err != nil {
			continue
		}
		s := Share{Key: want.Key(), Devices: choice.Take([]string{"h", "c"})}
		if len(s.Devices) != want.Count {
			t.Fatalf("round %d: %d devices for %d", round, len(s.Devices), want.Count)
		}
		l.Put(s)
		owner := map[string]types.UID{}
		for _, s := range l.All() {
			for _, id := range s.IDs() {
				if other, ok := owner[id]; ok && other != s.Pod {
					t.Fatalf("round %d: %s is of %s and %s", round, id, other, s.Pod)
				}
				owner[id] = s.Pod
			}
		}
	}
}

func TestTheFile(t *testing.T) {
	l := New()
	l.Put(Share{Key: Key{"p", "m", gpu}, Devices: []Device{{ID: "a"}, {ID: "b", NUMA: []int64{0, 1}}}, Response: []byte{1, 2}})
	l.Put(Share{Key: Key{"q", "m", gpu}, Devices: []Device{{ID: "c", NUMA: []int64{1}}}})
	data, err := l.Encode(map[string][]string{gpu: {"a", "b", "c"}, "example.com/none": nil})
	if err != nil {
		t.Fatal(err)
	}
	again, resources, err := Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(l.All(), again.All()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{gpu, "example.com/none"}, resources); diff != "" {
		t.Error(diff)
	}
	for name, bad := range map[string]string{"empty": "", "changed": strings.Replace(string(data), `"PodUID":"p"`, `"PodUID":"x"`, 1)} {
		if _, _, err := Decode([]byte(bad)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
