package storage

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage/value"
	aestransformer "k8s.io/apiserver/pkg/storage/value/encrypt/aes"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
	"k8s.io/apiserver/pkg/storage/value/encrypt/secretbox"

	"github.com/setpoint-io/setpoint/apiserver/kinds"
	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

const marker = "c4n4ry-of-the-mine"

// keyring encrypts Secrets with the first of its keys.
type keyring struct {
	transformer value.Transformer
	generation  uint64
	opened      atomic.Int64
}

func (k *keyring) For(gr schema.GroupResource) value.Transformer {
	if gr.Resource != "secrets" || k.transformer == nil {
		return nil
	}
	return counting{k.transformer, &k.opened}
}

func (k *keyring) Generation() uint64 { return k.generation }

// turn puts other keys into force.
func (k *keyring) turn(keys ...value.PrefixTransformer) {
	k.transformer = value.NewPrefixTransformers(errors.New("no matching prefix found"), keys...)
	k.generation++
}

type counting struct {
	value.Transformer
	opened *atomic.Int64
}

func (c counting) TransformFromStorage(ctx context.Context, data []byte, dataCtx value.Context) ([]byte, bool, error) {
	c.opened.Add(1)
	return c.Transformer.TransformFromStorage(ctx, data, dataCtx)
}

func box(name string) value.PrefixTransformer {
	return value.PrefixTransformer{Prefix: []byte("k8s:enc:secretbox:v1:" + name + ":"), Transformer: secretbox.NewSecretboxTransformer(sha256.Sum256([]byte(name)))}
}

var plainly = value.PrefixTransformer{Transformer: identity.NewEncryptCheckTransformer()}

// newSealedStore is a store whose servers all read encrypted values.
func newSealedStore(t *testing.T, keys ...value.PrefixTransformer) (*Store, *raftstoretest.Local, *keyring) {
	t.Helper()
	log, ring := raftstoretest.NewLocal(state.Options{}), &keyring{}
	raise(t, log)
	ring.turn(keys...)
	return sealedStore(log, ring), log, ring
}

// sealedStore is another server on the same log, with nothing decoded.
func sealedStore(log *raftstoretest.Local, ring *keyring) *Store {
	store := New(log, kinds.NewScheme(), kinds.All())
	store.Encrypt(ring)
	return store
}

func raise(t *testing.T, log *raftstoretest.Local) {
	t.Helper()
	_, err := log.Propose(t.Context(), command.Command{Ops: []command.Op{{Kind: command.SetFeatureLevel, Revision: raftstore.EncryptedValuesLevel}}})
	if err != nil {
		t.Fatal(err)
	}
}

func marked(name string) *corev1.Secret {
	s := secret(name)
	s.UID, s.Data = "u", map[string][]byte{"password": []byte(marker)}
	return s
}

// bytesOf is what is stored of a Secret.
func bytesOf(log *raftstoretest.Local, name string) []byte {
	r, _ := log.Root().Get("/core/secrets/n/" + name)
	return r.Value
}

// forget makes every record of the log as it is after a restart: decoded by nobody.
func forget(t *testing.T, log *raftstoretest.Local) *raftstoretest.Local {
	t.Helper()
	fresh := raftstoretest.NewLocal(state.Options{})
	raise(t, fresh)
	for r := range log.Root().All("/") {
		c := command.Command{Ops: []command.Op{{Kind: command.Put, Key: r.Key, UID: r.UID, Value: r.Value}}}
		if _, err := fresh.Propose(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	return fresh
}

func isMarked(t *testing.T, what string, obj any, err error) {
	t.Helper()
	if s, ok := obj.(*corev1.Secret); err != nil || !ok || string(s.Data["password"]) != marker {
		t.Errorf("%s: %v, %v", what, obj, err)
	}
}

func TestSecretsAreReadEveryWayAndStoredEncrypted(t *testing.T) {
	store, log, ring := newSealedStore(t, box("k"), plainly)
	table := store.Table(secrets)
	put(t, table, marked("a"))
	if stored := bytesOf(log, "a"); bytes.Contains(stored, []byte(marker)) || stored[0] != command.EncodingEncrypted {
		t.Fatalf("stored as %q", stored)
	}
	ring.opened.Store(0)
	cached, err := table.Get(t.Context(), "n", "a", "")
	if err != nil {
		t.Fatal(err)
	}
	isMarked(t, "get", cached.Object(), err)
	page, err := table.List(t.Context(), ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	isMarked(t, "list", page.Items[0].Object(), err)
	snapshot, _ := table.Snapshot(t.Context(), "")
	obj, err := snapshot.Get("n", "a")
	isMarked(t, "snapshot", obj, err)
	w := startWatch(t, t.Context(), table, WatchOptions{ResourceVersion: "0"})
	isMarked(t, "watch", Uncache((<-w.ResultChan()).Object), nil)
	remove(t, table, "n", "a")
	gone := <-w.ResultChan()
	isMarked(t, "last state", Uncache(gone.Object), nil)
	if n := ring.opened.Load(); n != 1 || gone.Type != watch.Deleted {
		t.Errorf("decrypted %d times, last %s", n, gone.Type)
	}
}

func TestMetadataOfASecretIsReadOffItsEncryption(t *testing.T) {
	store, log, ring := newSealedStore(t, box("k"))
	put(t, store.Table(secrets), marked("a"))
	page, err := sealedStore(forget(t, log), ring).Table(secrets).Metadata().List(t.Context(), ListOptions{})
	if err != nil || len(page.Items) != 1 || page.Items[0].Object().GetName() != "a" {
		t.Errorf("%v, %v", page, err)
	}
}

func TestOtherKindsAreStoredAsTheyAre(t *testing.T) {
	store, log, ring := newSealedStore(t, box("k"))
	put(t, store.Table(configMaps), configMap("a", nil))
	if r, _ := log.Root().Get("/core/configmaps/n/a"); r.Value[0] != command.EncodingProtobuf || ring.opened.Load() != 0 {
		t.Errorf("stored as %q", r.Value)
	}
}

// Servers of a release before this one would read nothing encrypted.
func TestNothingIsEncryptedBeforeAllCanReadIt(t *testing.T) {
	log, ring := raftstoretest.NewLocal(state.Options{}), &keyring{}
	ring.turn(box("k"), plainly)
	store := sealedStore(log, ring)
	table := store.Table(secrets)
	put(t, table, marked("a"))
	if bytesOf(log, "a")[0] != command.EncodingProtobuf {
		t.Error("encrypted too early")
	}
	if left, err := store.Reencrypt(t.Context()); left != 0 || err != nil || bytesOf(log, "a")[0] != command.EncodingProtobuf {
		t.Errorf("rewritten too early: %d, %v", left, err)
	}
	raise(t, log)
	put(t, table, marked("b"))
	if bytesOf(log, "b")[0] != command.EncodingEncrypted {
		t.Error("not encrypted")
	}
	cached, err := table.Get(t.Context(), "n", "a", "")
	if err != nil {
		t.Fatal(err)
	}
	isMarked(t, "not encrypted yet", cached.Object(), err)
}

// A value that is not where it was written is found out, whatever encrypted it.
func TestSwappedCiphertexts(t *testing.T) {
	block, err := aes.NewCipher(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	gcm, err := aestransformer.NewGCMTransformer(block)
	if err != nil {
		t.Fatal(err)
	}
	for name, transformer := range map[string]value.PrefixTransformer{
		"secretbox": box("k"),
		"aescbc":    {Prefix: []byte("k8s:enc:aescbc:v1:k:"), Transformer: aestransformer.NewCBCTransformer(block)},
		"aesgcm":    {Prefix: []byte("k8s:enc:aesgcm:v1:k:"), Transformer: gcm},
	} {
		t.Run(name, func(t *testing.T) {
			store, log, _ := newSealedStore(t, transformer)
			table := store.Table(secrets)
			put(t, table, marked("a"))
			put(t, table, marked("b"))
			swap := command.Command{Ops: []command.Op{{Kind: command.Put, Key: "/core/secrets/n/b", UID: "u", Value: bytesOf(log, "a")}}}
			if _, err := log.Propose(t.Context(), swap); err != nil {
				t.Fatal(err)
			}
			if obj, err := table.Get(t.Context(), "n", "b", ""); !apierrors.IsInternalError(err) {
				t.Errorf("read as %v, %v", obj, err)
			}
			if _, err := table.Get(t.Context(), "n", "a", ""); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestAServerWithoutTheKey: it says so, and lets nobody write over what it cannot read.
func TestAServerWithoutTheKey(t *testing.T) {
	store, log, ring := newSealedStore(t, box("k"))
	for i := range 3 {
		put(t, store.Table(secrets), marked(fmt.Sprint("a", i)))
	}
	log = forget(t, log)
	ring.turn(box("other"), plainly)
	store = sealedStore(log, ring)
	table := store.Table(secrets)
	revision := log.Root().Revision

	_, err := table.Get(t.Context(), "n", "a0", "")
	if want := `Internal error occurred: unable to transform key "/core/secrets/n/a0": no matching prefix found`; !apierrors.IsInternalError(err) || err.Error() != want {
		t.Errorf("get: %v", err)
	}
	_, err = table.List(t.Context(), ListOptions{})
	if status := apierrors.APIStatus(nil); !errors.As(err, &status) || status.Status().Reason != metav1.StatusReasonStoreReadError || len(status.Status().Details.Causes) != 3 {
		t.Errorf("list: %v", err)
	}
	for what, change := range map[string]*Change{"create or update": {Object: marked("a0")}, "delete": {Delete: true}} {
		_, err := table.Write(t.Context(), "n", "a0", func(*View) (*Change, error) { return change, nil })
		if !apierrors.IsInternalError(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if left, err := store.Reencrypt(t.Context()); left != 0 || err != nil {
		t.Errorf("rewritten: %d, %v", left, err)
	}
	if log.Root().Revision != revision {
		t.Error("something was written")
	}
	report, err := store.InspectEncryption(t.Context())
	if err != nil || report.Objects != 3 || report.Unreadable != 3 || !strings.HasPrefix(report.Problem, "/core/secrets/n/a0: no matching prefix") {
		t.Errorf("%+v, %v", report, err)
	}
	ring.turn(box("other"), box("k"))
	if _, err := table.Get(t.Context(), "n", "a0", ""); err != nil {
		t.Errorf("with the key: %v", err)
	}
}

func TestDeletingWhatCannotBeRead(t *testing.T) {
	store, log, ring := newSealedStore(t, box("k"))
	put(t, store.Table(secrets), marked("a"))
	put(t, store.Table(secrets), marked("b"))
	log = forget(t, log)
	ring.turn(box("other"))
	store = sealedStore(log, ring)
	table := store.Table(secrets)
	put(t, table, marked("c"))
	if err := table.DeleteUnreadable(t.Context(), "n", "c", false); !apierrors.IsConflict(err) {
		t.Errorf("what can be read: %v", err)
	}
	if err := table.DeleteUnreadable(t.Context(), "n", "d", false); !apierrors.IsNotFound(err) {
		t.Errorf("nothing: %v", err)
	}
	if err := table.DeleteUnreadable(t.Context(), "n", "a", true); err != nil || table.Count() != 3 {
		t.Errorf("on trial: %v", err)
	}
	if err := table.DeleteUnreadable(t.Context(), "n", "a", false); err != nil || table.Count() != 2 {
		t.Errorf("what cannot be read: %v", err)
	}
}

func TestANewKeyIsUsedForWhatIsThere(t *testing.T) {
	store, log, ring := newSealedStore(t, plainly)
	table := store.Table(secrets)
	put(t, table, marked("a"))
	for _, keys := range [][]value.PrefixTransformer{
		{box("one"), plainly},    // encryption begins
		{box("two"), box("one")}, // another key
		{plainly, box("two")},    // encryption ends
	} {
		ring.turn(keys...)
		before := bytesOf(log, "a")
		outdated := func() (old bool) {
			_, _ = table.Write(t.Context(), "n", "a", func(v *View) (*Change, error) { old = v.Outdated(); return nil, nil })
			return old
		}
		report, err := store.InspectEncryption(t.Context())
		if err != nil || report.Objects != 1 || report.Outdated != 1 || !outdated() {
			t.Fatalf("before: %+v, %v", report, err)
		}
		for range 2 { // the second finds nothing to do
			if left, err := store.Reencrypt(t.Context()); left != 0 || err != nil {
				t.Fatal(left, err)
			}
		}
		after := bytesOf(log, "a")
		if !bytes.HasPrefix(after[1:], keys[0].Prefix) || bytes.Equal(after, before) || outdated() {
			t.Errorf("stored as %q", after)
		}
		if sealed := len(keys[0].Prefix) > 0; bytes.Contains(after, []byte(marker)) == sealed {
			t.Errorf("stored as %q", after)
		}
		cached, err := sealedStore(forget(t, log), ring).Table(secrets).Get(t.Context(), "n", "a", "")
		if err != nil {
			t.Fatal(err)
		}
		isMarked(t, "after", cached.Object(), err)
	}
	if report, _ := store.InspectEncryption(t.Context()); log.Root().Revision != 4 || report.Outdated != 0 {
		t.Errorf("revision %d, want 4: each turn writes once: %+v", log.Root().Revision, report)
	}
}

// TestWhatMakesAReportOld: only what is or should be encrypted, or more changes than are looked at.
func TestWhatMakesAReportOld(t *testing.T) {
	store, _, _ := newSealedStore(t, box("one"))
	put(t, store.Table(secrets), marked("a"))
	plain := func(n int) func() {
		return func() {
			for i := range n {
				put(t, store.Table(configMaps), configMap(fmt.Sprint("c", i), nil))
			}
		}
	}
	for _, c := range []struct {
		name   string
		change func()
		old    bool
	}{
		{"nothing", func() {}, false},
		{"what is not encrypted", plain(3), false},
		{"a secret", func() { put(t, store.Table(secrets), marked("b")) }, true},
		{"a secret that goes", func() {
			_, err := store.Table(secrets).Write(t.Context(), "n", "b", func(*View) (*Change, error) { return &Change{Delete: true}, nil })
			if err != nil {
				t.Fatal(err)
			}
		}, true},
		{"more than are looked at", plain(changesLimit + 1), true},
	} {
		report, err := store.InspectEncryption(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if c.change(); store.EncryptedChanged(report) != c.old {
			t.Errorf("%s: old %v, want %v", c.name, !c.old, c.old)
		}
	}
}

// Rewriting is the leader's: whose term has ended writes nothing.
func TestRewritingIsFenced(t *testing.T) {
	store, log, ring := newSealedStore(t, box("one"))
	put(t, store.Table(secrets), marked("a"))
	ring.turn(box("two"), box("one"))
	ctx := WithOrigin(t.Context(), Origin{User: "system:test", Fence: 1})
	log.NextTerm()
	before := bytesOf(log, "a")
	if _, err := store.Reencrypt(ctx); !apierrors.IsConflict(err) || !bytes.Equal(before, bytesOf(log, "a")) {
		t.Errorf("rewritten: %v", err)
	}
}

// racingLog changes an object whenever somebody is about to write another.
type racingLog struct {
	*raftstoretest.Local
	race func()
}

func (l *racingLog) Propose(ctx context.Context, c command.Command) (command.Result, error) {
	if race := l.race; race != nil {
		l.race = nil
		race()
	}
	return l.Local.Propose(ctx, c)
}

// Whoever changes an object while it is rewritten wins.
func TestRewritingLosesNoWrite(t *testing.T) {
	store, log, ring := newSealedStore(t, box("one"))
	put(t, store.Table(secrets), marked("a"))
	ring.turn(box("two"), box("one"))
	racing := &racingLog{Local: log}
	racing.race = func() {
		s := marked("a")
		s.Labels = map[string]string{"by": "user"}
		put(t, store.Table(secrets), s)
	}
	rewriter := New(racing, kinds.NewScheme(), kinds.All())
	rewriter.Encrypt(ring)
	if left, err := rewriter.Reencrypt(t.Context()); left != 1 || err != nil {
		t.Errorf("left %d, %v", left, err)
	}
	cached, err := store.Table(secrets).Get(t.Context(), "n", "a", "")
	if err != nil || cached.Object().GetLabels()["by"] != "user" {
		t.Errorf("%v, %v", cached, err)
	}
}

func TestResourceOfAKey(t *testing.T) {
	for key, want := range map[string]string{
		"/core/secrets/n/a": "secrets", "/apps/deployments/n/a": "deployments.apps", "/core/nodes/a": "nodes", "/claims/ips/10.0.0.1": "", "/odd": "",
	} {
		gr, object := resourceOf(key)
		if got := gr.String(); object != (want != "") || object && got != want {
			t.Errorf("%s: %s, %v", key, got, object)
		}
	}
}
