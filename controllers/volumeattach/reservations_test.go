package volumeattach

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

// TestReservations: node a wants what node b may have.
func TestReservations(t *testing.T) {
	former := attachmentOf("v", "b")
	former.UID = "1"
	unknown := errors.New("no answer")
	for name, c := range map[string]struct {
		before func(r *reservations)
		api    *storagev1.VolumeAttachment
		apiErr error
		cached []string
		want   []string
		err    error
	}{
		"free":                         {before: func(*reservations) {}},
		"the cache shows it":           {before: func(*reservations) {}, cached: []string{"b"}, want: []string{"b"}},
		"a former leader made it":      {before: func(r *reservations) { r.found(former) }, api: former, want: []string{"b"}},
		"it was shown, and is gone":    {before: func(r *reservations) { r.found(former); r.shown(former) }, api: former},
		"another of the name is shown": {before: func(r *reservations) { r.found(former); r.shown(attachmentOf("v", "b")) }, api: former, want: []string{"b"}},
		"the API has it no more":       {before: func(r *reservations) { r.found(former) }},
		"the API does not answer":      {before: func(r *reservations) { r.found(former) }, apiErr: unknown, err: unknown},
		"it is being made":             {before: func(r *reservations) { r.put(nameOn("v", "b"), reservation{node: "b", making: true}) }, want: []string{"b"}},
		"the outcome is not known":     {before: func(r *reservations) { r.ended(nameOn("v", "b"), "b", "") }, api: former, want: []string{"b"}},
		"another volume":               {before: func(r *reservations) { r.found(attachmentOf("w", "b")) }, api: former},
	} {
		t.Run(name, func(t *testing.T) {
			r := &reservations{
				get:     func(context.Context, string) (*storagev1.VolumeAttachment, error) { return c.api, c.apiErr },
				holders: func(*want, string) ([]string, error) { return c.cached, nil },
			}
			c.before(r)
			w := &want{name: nameOn("v", "a"), volume: newVolume("v", once)}
			got, err := r.take(t.Context(), w, "a")
			if diff := cmp.Diff(c.want, got); diff != "" || !errors.Is(err, c.err) {
				t.Errorf("%v, %v", diff, err)
			}
			if mine := r.made[w.name]; mine.making != (c.want == nil && c.err == nil) {
				t.Errorf("reserved: %v", mine)
			}
		})
	}
}

// TestWhatAFormerLeaderMade: the caches of a new term may not show it yet.
func TestWhatAFormerLeaderMade(t *testing.T) {
	inWorld(t, func(w *world) {
		lists := 0
		for _, a := range w.Client.Actions() {
			if a.Matches("list", "volumeattachments") {
				lists++
			}
		}
		if lists != 2 {
			t.Errorf("%d lists of attachments, want that of the cache and that of the term", lists)
		}
		reconciletest.Add(w.World, newNode("a"))
		w.quiet()
	})
}
