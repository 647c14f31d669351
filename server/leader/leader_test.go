package leader

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func TestRunNeverOverlapsTerms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		changes := make(chan Leadership)
		var log []string
		acting := false
		act := func(ctx context.Context, term uint64) error {
			if acting {
				t.Error("two terms act at once")
			}
			acting = true
			log = append(log, fmt.Sprint("begin ", term))
			<-ctx.Done()
			time.Sleep(time.Second) // winding down takes a while
			log = append(log, fmt.Sprint("end ", term))
			acting = false
			return nil
		}
		done := make(chan error)
		go func() { done <- Run(ctx, changes, act) }()
		for _, c := range []Leadership{{true, 1}, {true, 1}, {true, 3}, {false, 3}, {false, 4}, {true, 5}} {
			changes <- c
			synctest.Wait()
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		want := []string{"begin 1", "end 1", "begin 3", "end 3", "begin 5", "end 5"}
		if diff := cmp.Diff(want, log); diff != "" {
			t.Error(diff)
		}
	})
}

func TestRunStartsActAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3500*time.Millisecond)
		defer cancel()
		changes := make(chan Leadership, 1)
		changes <- Leadership{true, 1}
		n := 0
		err := Run(ctx, changes, func(context.Context, uint64) error { n++; return errors.New("broken") })
		if err != nil || n != 4 {
			t.Errorf("acted %d times, %v; want 4", n, err)
		}
	})
}

func TestRunEndsWithItsStream(t *testing.T) {
	changes := make(chan Leadership)
	close(changes)
	if err := Run(t.Context(), changes, nil); !errors.Is(err, ErrStreamClosed) {
		t.Errorf("got %v", err)
	}
}

func TestPublishTakesOverAndRenews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewSimpleClientset()
		publish := func(server string, term uint64, d time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			defer cancel()
			if err := Publish(ctx, PublishConfig{Client: client, Server: server, Term: term}); err != nil {
				t.Error(err)
			}
		}
		look := func(name string) string {
			l, err := client.CoordinationV1().Leases(Namespace).Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			age := l.Spec.RenewTime.Sub(l.Spec.AcquireTime.Time)
			return fmt.Sprint(*l.Spec.HolderIdentity, " ", *l.Spec.LeaseTransitions, " ", age)
		}
		publish("server-1", 3, 25*time.Second)
		publish("server-2", 4, time.Second)
		for _, name := range LeaseNames() {
			if got := look(name); got != "server-2_4 1 0s" {
				t.Errorf("%s: %s", name, got)
			}
		}
		publish("server-2", 4, 25*time.Second)
		if got := look("kube-scheduler"); got != "server-2_4 1 21s" {
			t.Errorf("renewed: %s", got)
		}
	})
}

// TestARenewalReadsOnlyAfterAConflict: a quiet cluster is not asked for what this server wrote itself.
func TestARenewalReadsOnlyAfterAConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewSimpleClientset()
		renewals := 0
		client.PrependReactor("update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			if renewals++; renewals == 3 {
				return true, nil, apierrors.NewConflict(coordinationv1.Resource("leases"), "a", errors.New("written by another"))
			}
			return false, nil, nil
		})
		l := &lease{cfg: PublishConfig{Client: client, Server: "server-1", Term: 1}, name: "a"}
		for range 6 {
			if err := l.write(t.Context(), time.Now()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(RenewInterval)
		}
		var verbs []string
		for _, action := range client.Actions() {
			verbs = append(verbs, action.GetVerb())
		}
		want := []string{"get", "create", "update", "update", "update", "get", "update", "update", "update"}
		if diff := cmp.Diff(want, verbs); diff != "" {
			t.Error(diff)
		}
	})
}
