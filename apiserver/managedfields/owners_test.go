package managedfields

import (
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/setpoint-io/setpoint/apiserver/discovery"
	"github.com/setpoint-io/setpoint/apiserver/kinds"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// eachKind runs a check with fresh Owners of every kind.
func eachKind(t *testing.T, check func(t *testing.T, kind *resource.Any, owners *Owners)) {
	converter, err := discovery.TypeConverter()
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range kinds.All() {
		t.Run(kind.Plural, func(t *testing.T) { check(t, kind, newOwners(t, kind, converter)) })
	}
}

func newOwners(t testing.TB, kind *resource.Any, converter managedfields.TypeConverter) *Owners {
	scheme, gvk := kinds.NewScheme(), kind.GroupVersionKind
	config := Config{Kind: gvk, New: kind.New, Converter: converter}
	var filters map[fieldpath.APIVersion]fieldpath.Filter
	if kind.HasStatus() {
		config.Reset = "status"
		status := fieldpath.NewSet(fieldpath.MakePathOrDie("status"))
		filters = map[fieldpath.APIVersion]fieldpath.Filter{fieldpath.APIVersion(gvk.GroupVersion().String()): fieldpath.NewExcludeSetFilter(status)}
	}
	var err error
	config.Upstream, err = managedfields.NewDefaultFieldManager(converter, runtime.UnsafeObjectConvertor(scheme), scheme, scheme, gvk, gvk.GroupVersion(), "", filters)
	if err != nil {
		t.Fatal(err)
	}
	return New(config)
}

// variants is how often each object of a random world is changed.
const variants = 3

// seeds is how many random worlds one run of the tests makes.
func seeds() int64 {
	if testing.Short() {
		return 2
	}
	return 8
}

// upstreamsAlone are kinds that hold data in any form.
var upstreamsAlone = map[string]bool{"controllerrevisions": true}

func TestCreatedIsUpstreams(t *testing.T) {
	eachKind(t, func(t *testing.T, kind *resource.Any, owners *Owners) {
		known := 0
		for seed := range seeds() {
			random := newRandom(seed)
			obj := random.object(kind)
			for range variants {
				known += checkCreated(t, owners, obj)
				obj = random.variant(obj)
			}
		}
		if known == 0 && !upstreamsAlone[kind.Plural] {
			t.Error("upstream had to answer for every object: nothing was tested")
		}
	})
}

// checkCreated compares both answers, and counts those that were remembered.
func checkCreated(t *testing.T, owners *Owners, obj resource.Object) (known int) {
	t.Helper()
	if isKnown(owners, obj) {
		known = 1
	}
	manager := "m"
	want := owners.config.Upstream.UpdateNoErrors(owners.config.New(), copyOf(obj), manager)
	if diff := cmp.Diff(withoutTimes(want), withoutTimes(owners.Created(copyOf(obj), manager))); diff != "" {
		t.Fatalf("upstream (-) and ours (+), known before: %d\n%s\n%+v", known, diff, obj)
	}
	return known
}

func isKnown(owners *Owners, obj resource.Object) bool {
	s := owners.shape(obj)
	defer s.free()
	_, known := owners.fields[string(s.bytes)]
	return known && !s.unknown
}

func TestUpdatedIsUpstreams(t *testing.T) {
	stamped := 0
	eachKind(t, func(t *testing.T, kind *resource.Any, owners *Owners) {
		kept := 0
		for seed := range seeds() {
			random := newRandom(seed)
			live := owners.config.Upstream.UpdateNoErrors(kind.New(), random.object(kind), "m").(resource.Object)
			live.SetUID("u") // it is stored
			for range variants {
				obj := random.variant(live)
				k, s := checkUpdated(t, owners, live, obj)
				kept, stamped = kept+k, stamped+s
				checkUpdated(t, owners, live, random.object(kind))
				checkUpdated(t, owners, live, copyOf(live))
			}
		}
		if kept == 0 && !upstreamsAlone[kind.Plural] {
			t.Error("upstream had to answer for every update: nothing was tested")
		}
	})
	if stamped == 0 {
		t.Error("no update changed a value: nothing was tested")
	}
}

// past is the time of entries in live objects, which an update may move on.
var past = metav1.Unix(1e9, 0)

// checkUpdated compares both answers. It counts updates that need no upstream, and
// those of them that changed something.
func checkUpdated(t *testing.T, owners *Owners, live, obj resource.Object) (kept, stamped int) {
	t.Helper()
	for _, o := range []resource.Object{live, obj} {
		for i := range o.GetManagedFields() {
			o.GetManagedFields()[i].Time = past.DeepCopy()
		}
	}
	for _, manager := range []string{"m", "other"} {
		own, sole := owners.soleEntry(live, obj, manager)
		fast := sole && owners.sameFields(live, obj, own.FieldsV1)
		want := owners.config.Upstream.UpdateNoErrors(copyOf(live), copyOf(obj), manager)
		got := owners.Updated(copyOf(live), copyOf(obj), manager)
		if diff := cmp.Diff(withoutTimes(want), withoutTimes(got)); diff != "" {
			t.Fatalf("%s, ours alone: %v: upstream (-), ours (+)\n%s", manager, fast, diff)
		}
		if w, g := moved(want), moved(got); w != g {
			t.Fatalf("%s, ours alone: %v: upstream moved the times: %v, we: %v\n%s", manager, fast, w, g, cmp.Diff(live, obj))
		}
		if fast {
			kept++
			if moved(got) == fmt.Sprint([]bool{true}) {
				stamped++
			}
		}
	}
	return kept, stamped
}

// moved tells for each entry whether its time is not the past's.
func moved(o runtime.Object) string {
	var all []bool
	for _, e := range o.(resource.Object).GetManagedFields() {
		all = append(all, !e.Time.Equal(&past))
	}
	return fmt.Sprint(all)
}

func withoutTimes(o runtime.Object) []metav1.ManagedFieldsEntry {
	entries := copyOf(o.(resource.Object)).GetManagedFields()
	for i := range entries {
		entries[i].Time = nil
	}
	return entries
}

func copyOf(o resource.Object) resource.Object { return o.DeepCopyObject().(resource.Object) }

// TestClientsManagedFields: what a client says of managedFields is upstream's to judge.
func TestClientsManagedFields(t *testing.T) {
	eachKind(t, func(t *testing.T, kind *resource.Any, owners *Owners) {
		obj := newRandom(1).object(kind)
		made := owners.Created(copyOf(obj), "m").(resource.Object)
		foreign := metav1.ManagedFieldsEntry{Manager: "x", Operation: "Update", APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:data":{}}`)}
		for _, sent := range [][]metav1.ManagedFieldsEntry{{}, {{}}, {foreign}, append(made.GetManagedFields(), foreign)} {
			obj.SetManagedFields(sent)
			checkCreated(t, owners, obj)
			checkUpdated(t, owners, made, obj)
		}
	})
}

func TestShapesAreBounded(t *testing.T) {
	owners := New(Config{})
	text := make([]byte, shapeBytesMax-8)
	for i := range 2 * ShapesBytesMax / shapeBytesMax {
		owners.remember(fmt.Sprintf("%s%08d", text, i), "")
		if owners.bytes > ShapesBytesMax {
			t.Fatalf("%d bytes are remembered", owners.bytes)
		}
	}
	owners.remember(string(make([]byte, shapeBytesMax+1)), "")
	if len(owners.fields) == 0 || len(owners.fields) > ShapesBytesMax/shapeBytesMax {
		t.Errorf("%d shapes are remembered", len(owners.fields))
	}
}

// FuzzOwnership finds worlds that the tests do not.
func FuzzOwnership(f *testing.F) {
	converter, err := discovery.TypeConverter()
	if err != nil {
		f.Fatal(err)
	}
	all := kinds.All()
	owners := make([]*Owners, len(all))
	for i, kind := range all {
		owners[i] = newOwners(f, kind, converter)
	}
	f.Add(uint8(0), int64(0))
	f.Fuzz(func(t *testing.T, which uint8, seed int64) {
		i := int(which) % len(all)
		random := newRandom(seed)
		obj := random.object(all[i])
		other := random.variant(obj)
		checkCreated(t, owners[i], obj)
		checkCreated(t, owners[i], other)
		live := owners[i].Created(copyOf(obj), "m").(resource.Object)
		live.SetUID("u")
		checkUpdated(t, owners[i], live, other)
	})
}

// TestManifestsAreKnown: the shapes of what people write are remembered.
func TestManifestsAreKnown(t *testing.T) {
	codecs := serializer.NewCodecFactory(kinds.NewScheme())
	eachKind(t, func(t *testing.T, kind *resource.Any, owners *Owners) {
		folder := filepath.Join("../kinds/*/testdata", kind.GroupResource().String())
		manifests, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
		if err != nil || len(manifests) == 0 {
			t.Fatal(folder, err)
		}
		for _, name := range manifests {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			obj, _, err := codecs.UniversalDeserializer().Decode(text, &kind.GroupVersionKind, kind.New())
			if err != nil {
				continue // it is there to be refused
			}
			s := owners.shape(obj.(resource.Object))
			if s.unknown && !upstreamsAlone[kind.Plural] {
				t.Errorf("%s: only upstream knows its fields", name)
			}
			s.free()
			checkCreated(t, owners, obj.(resource.Object))
		}
	})
}

// random makes objects out of few strings, so that keys meet each other.
type random struct {
	*rand.Rand
	sparse int // one of so many optional parts is there
	values int // how many more are filled in
}

func newRandom(seed int64) *random {
	r := rand.New(rand.NewSource(seed))
	return &random{Rand: r, sparse: 1 + r.Intn(4)}
}

func (r *random) object(kind *resource.Any) resource.Object {
	obj := kind.New()
	r.values = valuesMax
	r.fill(reflect.ValueOf(obj).Elem())
	obj.SetManagedFields(nil)
	obj.GetObjectKind().SetGroupVersionKind(kind.GroupVersionKind)
	return obj
}

// variant is the object with other values in some places.
func (r *random) variant(obj resource.Object) resource.Object {
	v := copyOf(obj)
	entries := v.GetManagedFields()
	v.SetManagedFields(nil)
	r.change(reflect.ValueOf(v).Elem(), []int{4, 16, 64, 256, 1024}[r.Intn(5)])
	v.GetObjectKind().SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	v.SetManagedFields(entries)
	return v
}
