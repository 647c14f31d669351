package loops

import (
	"strings"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/controllers/reconcile/numbers"
)

var passesOf = map[string]numbers.PassReport{
	"makes": {Loop: "deployment-controller", Key: "default/web", Writes: 1, Acts: []numbers.Act{{
		Wanted: "3", Observed: "0", Did: "create replicasets default/web-1", Object: "replicasets default/web-1", Because: "Deployment default/web, version 7",
	}}},
	"binds": {Loop: "default-scheduler", Key: "shop/web-1-x", Writes: 1, Acts: []numbers.Act{{
		Did: "create pods/binding shop/web-1-x to node-1", Object: "pods/binding shop/web-1-x to node-1",
	}}},
	"looks": {Loop: "namespace", Key: "shop"},
	"fails": {Loop: "job-controller", Key: "default/web", Error: "no leader"},
	"many":  {Loop: "garbage", Key: "", Writes: 9, Acts: make([]numbers.Act, numbers.ActsMax)},
}

func TestPassesAreChosenByTheirObjects(t *testing.T) {
	for name, c := range map[string]struct {
		options options
		want    string
	}{
		"all":                  {options{idle: true}, "binds fails looks makes many"},
		"changes":              {options{}, "binds fails makes many"},
		"about":                {options{object: "default/web"}, "fails makes"},
		"in every namespace":   {options{object: "web"}, "fails makes"},
		"written":              {options{object: "default/web-1"}, "makes"},
		"bound":                {options{object: "shop/web-1-x"}, "binds"},
		"part of a name":       {options{object: "default/we"}, ""},
		"without a namespace":  {options{object: "shop", idle: true}, "looks"},
		"of another namespace": {options{object: "shop/web"}, ""},
	} {
		var got []string
		for _, pass := range []string{"binds", "fails", "looks", "makes", "many"} {
			if len(c.options.chosen([]numbers.PassReport{passesOf[pass]})) == 1 {
				got = append(got, pass)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
	}
}

func TestRowsOfAPass(t *testing.T) {
	for name, want := range map[string]string{
		"makes": "deployment-controller default/web 3 0 create replicasets default/web-1",
		"looks": "namespace shop - - found nothing to do",
		"fails": "job-controller default/web - - failed: no leader",
		"many":  "garbage all - - and 5 more writes",
	} {
		pass := passesOf[name]
		pass.At = time.Date(2030, 1, 1, 12, 0, 0, 0, time.Local)
		var text strings.Builder
		printPass(&text, &pass)
		lines := strings.Split(strings.TrimSpace(text.String()), "\n")
		if got := strings.Join(strings.Fields(lines[len(lines)-1]), " "); got != "12:00:00.000 "+want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
