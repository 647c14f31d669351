package reserved

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestEdges(t *testing.T) {
	node := func(labels map[string]string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: labels}}
	}
	ports := map[string]string{IngressLabel: "80-443"}
	edge := map[string]string{IngressLabel: "80-443", EdgeLabel: Edge}
	kept := map[string]string{IngressLabel: "80-443", EdgeLabel: "false"}
	tests := map[string]struct {
		others      []*corev1.Node
		node        map[string]string
		may, serves bool
	}{
		"nobody is chosen":                  {nil, ports, true, true},
		"it has no ports":                   {nil, nil, true, false},
		"it is chosen":                      {nil, edge, true, true},
		"it is chosen and has no ports":     {nil, map[string]string{EdgeLabel: Edge}, true, false},
		"another is chosen":                 {[]*corev1.Node{node(edge)}, ports, false, false},
		"another is kept from it":           {[]*corev1.Node{node(kept)}, ports, false, false},
		"it is kept from it":                {nil, kept, false, false},
		"both are chosen":                   {[]*corev1.Node{node(edge)}, edge, true, true},
		"a value that says nothing is none": {nil, map[string]string{EdgeLabel: ""}, false, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			n := node(test.node)
			e := EdgesOf(append(test.others, n))
			if e.May(n) != test.may || e.Serves(n) != test.serves {
				t.Errorf("may %v, serves %v", e.May(n), e.Serves(n))
			}
		})
	}
	if EdgesOf([]*corev1.Node{node(edge)}).May(nil) || !EdgesOf(nil).May(nil) {
		t.Error("a node without a Node may serve exactly as long as nobody is chosen")
	}
}

func TestEdgesChanged(t *testing.T) {
	node := func(value string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{EdgeLabel: value}}}
	}
	for name, test := range map[string]struct {
		before, after *corev1.Node
		want          bool
	}{
		"made without": {nil, &corev1.Node{}, false}, "made with an empty one": {nil, node(""), true}, "gone": {node(Edge), nil, true},
		"the same": {node(Edge), node(Edge), false}, "another value": {node(Edge), node("false"), true},
	} {
		if got := EdgesChanged(test.before, test.after); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
