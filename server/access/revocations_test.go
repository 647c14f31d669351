package access

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/apiserver/kinds"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/internal/revocation"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

// listStore is a store with the list, or without.
type listStore struct {
	*testing.T
	*storage.Store
}

func newListStore(t *testing.T) listStore {
	return listStore{t, storage.New(raftstoretest.NewLocal(state.Options{}), kinds.NewScheme(), kinds.All())}
}

// write makes the list revoke these users; nil deletes it.
func (s listStore) write(users []string) {
	s.Helper()
	table := s.Table(corev1.SchemeGroupVersion.WithResource("configmaps"))
	_, err := table.Write(s.Context(), metav1.NamespaceSystem, revocation.ConfigMapName, func(*storage.View) (*storage.Change, error) {
		if users == nil {
			return &storage.Change{Delete: true}, nil
		}
		list := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: revocation.ConfigMapName}}
		list.Data = map[string]string{}
		for _, user := range users {
			e := revocation.Entry{Target: revocation.Target{Kind: revocation.User, Name: user}, At: time.Now()}
			list.Data[e.DataKey()] = e.Text()
		}
		return &storage.Change{Object: list}, nil
	})
	if err != nil {
		s.Fatal(err)
	}
}

// expect says whether u is revoked, once everything rests.
func (s listStore) expect(what string, judge *revocation.Judge, revoked bool) {
	s.Helper()
	synctest.Wait()
	if err := judge.Revoked(revocation.Identity{User: "u"}); (err != nil) != revoked {
		s.Errorf("%s: %v", what, err)
	}
}

// TestTheListIsFollowed: what a server has counts before it has heard of anybody, and what was deleted before it follows counts no more.
func TestTheListIsFollowed(t *testing.T) {
	for name, play := range map[string]func(s listStore, judge *revocation.Judge, begin func()){
		"it comes later": func(s listStore, judge *revocation.Judge, begin func()) {
			begin()
			s.expect("none", judge, false)
			s.write([]string{"u"})
			s.expect("one", judge, true)
			s.write([]string{"v"})
			s.expect("another", judge, false)
		},
		"it is there": func(s listStore, judge *revocation.Judge, begin func()) {
			s.write([]string{"u"})
			begin()
			s.expect("it goes on", judge, true)
			s.write(nil)
			s.expect("deleted", judge, false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, judge := newListStore(t), &revocation.Judge{}
				play(s, judge, func() { go followRevocations(s.Store, judge, slog.New(slog.DiscardHandler)).run(t.Context()) })
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		s, judge := newListStore(t), &revocation.Judge{}
		s.write([]string{"u"})
		r := followRevocations(s.Store, judge, slog.New(slog.DiscardHandler))
		s.expect("before it follows", judge, true)
		s.write(nil)
		go r.run(t.Context())
		s.expect("deleted before it followed", judge, false)
	})
}
