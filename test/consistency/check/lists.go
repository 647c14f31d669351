package check

import (
	"slices"
	"sort"
	"strings"

	"github.com/setpoint-io/setpoint/test/consistency/history"
)

// Lists replays the log up to each list's revision: the list must be exactly what was there,
// whatever server gave which page of it, and however long ago it was.
func Lists(e *history.Epoch, log *Log) Result {
	r := Result{Checker: "lists: one cut, all pages"}
	var lists []*history.Op
	for i := range e.Ops {
		if op := &e.Ops[i]; op.Kind == history.List && op.Outcome == history.OK {
			lists = append(lists, op)
		}
	}
	slices.SortFunc(lists, func(a, b *history.Op) int { return int(int64(a.Revision) - int64(b.Revision)) })
	now, next := map[string]history.Item{}, 0
	for _, list := range lists {
		for ; next < len(log.Versions) && log.Versions[next].Revision <= list.Revision; next++ {
			apply(now, log.Versions[next])
		}
		r.Checked++
		if list.Error != "" {
			r.violate("list at %d at server-%d: %s", list.Revision, list.Replica+1, list.Error)
			continue
		}
		if want := listed(now, list.Selector); !slices.Equal(want, list.Items) {
			r.violate("list at %d by client %d at server-%d (selector %q, %d pages) is %s", list.Revision, list.Client,
				list.Replica+1, list.Selector, list.Pages, difference(list.Items, want))
		}
	}
	return r
}

func apply(now map[string]history.Item, v *Version) {
	if v.Type == history.Deleted {
		delete(now, v.Key)
		return
	}
	now[v.Key] = v.Item
}

// listed is what a list of these objects is: in the order of names.
func listed(now map[string]history.Item, selector string) []history.Item {
	var items []history.Item
	for _, item := range now {
		if selector == "" || item.Side == selector {
			items = append(items, item)
		}
	}
	sort.Slice(items, func(i, j int) bool { return items[i].Key < items[j].Key })
	return items
}

func difference(got, want []history.Item) string {
	var text strings.Builder
	for _, item := range got {
		if !slices.Contains(want, item) {
			text.WriteString(" has " + item.Key + "=" + item.Value)
		}
	}
	for _, item := range want {
		if !slices.Contains(got, item) {
			text.WriteString(" lacks " + item.Key + "=" + item.Value)
		}
	}
	if text.Len() == 0 {
		return "in another order"
	}
	return text.String()
}
