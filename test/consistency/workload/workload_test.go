package workload

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-io/setpoint/test/consistency/history"
)

func TestAnswer(t *testing.T) {
	again := &object{}
	again.Details.RetryAfterSeconds = 1
	for name, c := range map[string]struct {
		method string
		code   int
		o      *object
		want   history.Outcome
	}{
		"created":              {http.MethodPost, 201, &object{}, history.OK},
		"not there":            {http.MethodPut, 404, &object{}, history.Absent},
		"no namespace":         {http.MethodPost, 404, &object{}, history.Refused},
		"there":                {http.MethodPost, 409, &object{}, history.Exists},
		"changed":              {http.MethodDelete, 409, &object{}, history.Conflict},
		"too many":             {http.MethodPost, 429, &object{}, history.Refused},
		"try again":            {http.MethodPut, 504, again, history.Refused},
		"disk full":            {http.MethodPost, 507, &object{}, history.Refused},
		"perhaps":              {http.MethodPut, 504, &object{}, history.Unknown},
		"something went wrong": {http.MethodPut, 500, &object{}, history.Unknown},
	} {
		if got := answer(c.method, c.code, c.o); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestManifest(t *testing.T) {
	want := history.Item{Key: "k", UID: "u", Revision: 7, Value: "v", Side: "a", Count: 3}
	o := manifest(want)
	if diff := cmp.Diff(want, o.item()); diff != "" {
		t.Error(diff)
	}
}
