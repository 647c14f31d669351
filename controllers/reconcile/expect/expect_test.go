package expect

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

const (
	burst = 500
	// commit is how long a creation takes in these tests; those that are sent together take no longer.
	commit = 10 * time.Millisecond
)

var now = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func child(dying bool) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "child", OwnerReferences: []metav1.OwnerReference{{UID: "rs", Controller: new(true)}}}}
	if dying {
		p.DeletionTimestamp = &metav1.Time{Time: now}
	}
	return p
}

func called(uid types.UID) *corev1.Pod {
	p := child(false)
	p.UID = uid
	return p
}

// made creates children of these uids.
func made(t *testing.T, e *Expectations, uids ...types.UID) {
	t.Helper()
	if err := e.Create("rs", len(uids), now, func(i int) (types.UID, error) { return uids[i], nil }); err != nil {
		t.Fatal(err)
	}
}

func TestExpectationsExpire(t *testing.T) {
	e := New(burst)
	made(t, e, "child", "other")
	e.Seen(nil, child(false))
	e.Seen(nil, called("another's, or one of before"))
	if settled, expired := e.Check("rs", now.Add(29*time.Second)); settled || expired {
		t.Errorf("settled %v, expired %v while one creation is not seen", settled, expired)
	}
	if _, expired := e.Check("rs", now.Add(30*time.Second)); !expired {
		t.Error("waits forever for a lost event")
	}
	e.Seen(called("other"), called("other")) // a cache that was made anew tells of a change only
	if settled, _ := e.Check("rs", now); !settled {
		t.Error("not settled although all was seen")
	}
}

// The cache may show a child before its creation is answered; that is no sign of the others.
func TestEventsBeforeAnswers(t *testing.T) {
	e := New(burst)
	err := e.Create("rs", 3, now, func(i int) (types.UID, error) {
		uid := types.UID([]string{"a", "b", "c"}[i])
		if i < 2 {
			e.Seen(nil, called(uid))
		}
		e.Seen(nil, called("late event of an older one"))
		return uid, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if settled, _ := e.Check("rs", now); settled {
		t.Error("settled, although the cache has not shown c")
	}
	e.Seen(nil, called("c"))
	if settled, _ := e.Check("rs", now); !settled {
		t.Error("not settled, although the cache has shown all")
	}
}

func TestDeletions(t *testing.T) {
	for name, seen := range map[string]func(e *Expectations){
		"asked to stop": func(e *Expectations) { e.Seen(child(false), child(true)) },
		"gone":          func(e *Expectations) { e.Seen(child(false), nil) },
		"failed":        func(e *Expectations) { e.Deleted("rs", "child") },
		"forgotten":     func(e *Expectations) { e.Forget("rs") },
	} {
		e := New(burst)
		e.Deletion("rs", "child")
		e.Seen(child(false), child(false))
		if !e.Deleting("rs")["child"] {
			t.Errorf("%s: the deletion is not expected before", name)
		}
		if seen(e); len(e.Deleting("rs")) > 0 {
			t.Errorf("%s: the deletion is still expected", name)
		}
	}
}

// pass creates n children, lets the cache show them, and tells in how many batches they were created.
func pass(t *testing.T, e *Expectations, n int) int {
	t.Helper()
	start := time.Now()
	var mu sync.Mutex
	var made []int
	err := e.Create("rs", n, start, func(i int) (types.UID, error) {
		time.Sleep(commit)
		mu.Lock()
		defer mu.Unlock()
		made = append(made, i)
		return "", nil
	})
	if err != nil {
		t.Error(err)
	}
	slices.Sort(made)
	if made = slices.Compact(made); len(made) != n || n > 0 && made[n-1] != n-1 {
		t.Errorf("%d different children, want %d", len(made), n)
	}
	if n == 0 {
		e.Complete("rs")
	}
	return int(time.Since(start) / commit)
}

// Thousands of children take several passes; each goes on with the batches that the last one reached, until nothing was
// left to create.
func TestPassesGoOnWithTheirBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(burst)
		got := []int{pass(t, e, burst), pass(t, e, burst), pass(t, e, burst), pass(t, e, 0), pass(t, e, 7)}
		if diff := cmp.Diff([]int{9, 1, 1, 0, 3}, got); diff != "" {
			t.Errorf("batches: %s", diff)
		}
	})
}

// An API that begins to refuse is asked for the children of one batch; the next pass tries a single one. Nothing that
// was refused is expected.
func TestRefusalsStartSlowlyAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(burst)
		pass(t, e, 30)
		for _, want := range []int32{32, 1} {
			var tries atomic.Int32
			err := e.Create("rs", 100, time.Now(), func(int) (types.UID, error) {
				tries.Add(1)
				return "", apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("quota"))
			})
			if err == nil {
				t.Error("no error")
			}
			if n := tries.Load(); n != want {
				t.Errorf("%d creations were refused, want %d", n, want)
			}
			if settled, _ := e.Check("rs", time.Now()); !settled {
				t.Error("refused creations are expected")
			}
		}
	})
}

// A creation without an answer may have been carried out: the API has to be asked before anything else is created.
func TestCreationsWithoutAnAnswer(t *testing.T) {
	for name, err := range map[string]error{"timeout": apierrors.NewTimeoutError("slow", 0), "connection lost": errors.New("EOF")} {
		e := New(burst)
		_ = e.Create("rs", 1, now, func(int) (types.UID, error) { return "", err })
		if settled, expired := e.Check("rs", now); settled || !expired {
			t.Errorf("%s: settled %v, ask the API %v", name, settled, expired)
		}
		e.Forget("rs")
		if settled, _ := e.Check("rs", now); !settled {
			t.Errorf("%s: not settled after the API was asked", name)
		}
	}
}

// pods is an API that has these.
type pods []corev1.Pod

func (p pods) List(context.Context, metav1.ListOptions) (*corev1.PodList, error) {
	return &corev1.PodList{Items: p}, nil
}

// What the API has shown is expected of the cache, until it shows it or patience ends.
func TestLive(t *testing.T) {
	e := New(burst)
	made(t, e, "gone")
	api := pods{*called("a"), *called("b"), {ObjectMeta: metav1.ObjectMeta{UID: "another's"}}}
	cached := func() ([]*corev1.Pod, error) { return []*corev1.Pod{called("a")}, nil }
	found, err := e.Live(t.Context(), api, &metav1.ObjectMeta{UID: "rs"}, labels.Everything(), cached, now)
	if err != nil || len(found) != 2 {
		t.Fatalf("%d pods, %v", len(found), err)
	}
	if settled, _ := e.Check("rs", now); settled {
		t.Error("settled, although the cache lacks a pod")
	}
	if _, expired := e.Check("rs", now.Add(Patience)); !expired {
		t.Error("waits for ever for a pod that is gone")
	}
	made(t, e, "c") // the same pass creates what is missing
	e.Seen(nil, called("b"))
	if settled, _ := e.Check("rs", now); settled {
		t.Error("a pod that was listed counts as the one that was created")
	}
	e.Seen(nil, called("c"))
	if settled, _ := e.Check("rs", now); !settled {
		t.Error("not settled, although the cache has all")
	}
}

// TestAnOwnerOfTheSameNameWaitsForNothing: a creation for the owner before has no answer yet. It is another owner, by its uid.
func TestAnOwnerOfTheSameNameWaitsForNothing(t *testing.T) {
	e := New(burst)
	e.send("before", 1, now)
	e.Forget("before")
	e.send("before", 1, now) // a pass that began earlier goes on
	if settled, expired := e.Check("after", now); !settled || expired {
		t.Errorf("settled %v, expired %v", settled, expired)
	}
	e.answered("before", 1, "late")
	if settled, _ := e.Check("after", now); !settled {
		t.Error("the answer for the one before counts for this one")
	}
}
