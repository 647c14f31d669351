package explain

import "fmt"

// Visible is the part of an answer that a caller may see: mayGet tells of which objects. What is said of others is left out, but
// that there is something: of a write what it did, not to what and by whom. The verdicts of nodes that the caller may not get are left out.
func (a Answer) Visible(mayGet func(Object) bool) Answer {
	a.Causes = visibleCauses(a.Causes, mayGet)
	var innocent []Suspect
	for _, s := range a.Innocent {
		if mayGet(s.Object) {
			innocent = append(innocent, s)
		}
	}
	a.Innocent = innocent
	var nodes []Node
	for _, n := range a.Nodes {
		if mayGet(Nodes.Named("", n.Name)) {
			nodes = append(nodes, n)
		}
	}
	a.Nodes = nodes
	a.History = visibleSteps(a.History, mayGet)
	return a
}

func visibleCauses(causes []Cause, mayGet func(Object) bool) []Cause {
	var visible []Cause
	for _, c := range causes {
		if mayGet(c.Object) {
			c.Causes = visibleCauses(c.Causes, mayGet)
		} else {
			hidden := Object{Kind: c.Object.Kind, Group: c.Object.Group, Resource: c.Object.Resource}
			c = Cause{Object: hidden, What: fmt.Sprintf("an object of the kind %s, which you may not get", c.Object.Kind)}
		}
		visible = append(visible, c)
	}
	return visible
}
