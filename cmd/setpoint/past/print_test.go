package past

import (
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-io/setpoint/apiserver/explain"
	"github.com/setpoint-io/setpoint/raftstore/history"
	"github.com/setpoint-io/setpoint/server/past"
)

// marked shows what a terminal would do with a text of others.
type marked struct{ to io.Writer }

func (m marked) Write(text []byte) (int, error) {
	_, err := io.WriteString(m.to, strings.ReplaceAll(string(text), "\x1b", "^["))
	return len(text), err
}

// TestPrint: what others wrote is escaped, colours are only where they are wanted, and a value takes one line.
func TestPrint(t *testing.T) {
	web := explain.Object{Kind: "Deployment", Resource: "deployments", Group: "apps", Namespace: "n", Name: "web"}
	answer := past.Answer{
		Object: web, Missing: []history.Hole{{After: 3, Until: 5}},
		Changes: []past.Change{
			{ResourceVersion: 2, Did: "deleted", UID: "a", By: "eve\x1b[2J", Cause: &past.Cause{Object: web, ResourceVersion: 1, Did: "changed", By: "bob"}},
			{ResourceVersion: 7, Did: "changed", UID: "b", By: "bob", Manager: "kubectl", FieldsMore: 2, Fields: []past.Field{{Path: "a", Before: "x\ny", After: 1}}},
			{ResourceVersion: 8, Did: "changed", UID: "b", By: "bob", FieldsMore: 1},
		},
	}
	want := `this server's history is missing the changes after 3 up to 5
at an unknown time  Deployment/web deleted by eve^[[2J, revision 2, because itself was changed by bob (revision 1)

another object of this name:
at an unknown time  Deployment/web changed by bob with kubectl, revision 7
  - a: "x\ny"
  + a: 1
  and 2 more fields
at an unknown time  Deployment/web changed by bob, revision 8
  and 1 more field
`
	for _, colors := range []bool{false, true} {
		var out strings.Builder
		p := printer{lines: lines{escaped: func(w io.Writer) io.Writer { return marked{w} }, colors: colors}, namespace: "n"}
		err := p.print(&out, answer)
		got := out.String()
		if colors {
			if !strings.Contains(got, red+"  - a: ") || !strings.Contains(got, green+"  + a: 1"+plain) {
				t.Errorf("no colours: %q", got)
			}
			got = strings.NewReplacer(red, "", green, "", bold, "", plain, "").Replace(got)
		}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
	}
}
