package bandwidth

import (
	"strings"
	"testing"
)

func TestOf(t *testing.T) {
	for name, c := range map[string]struct {
		annotations map[string]string
		want        Limits
		err         string
	}{
		"none":       {},
		"both":       {map[string]string{ingressAnnotation: "10M", egressAnnotation: "1G"}, Limits{10_000_000, 1_000_000_000}, ""},
		"least":      {map[string]string{egressAnnotation: "1k"}, Limits{Egress: 1000}, ""},
		"most":       {map[string]string{ingressAnnotation: "1P"}, Limits{Ingress: 1e15}, ""},
		"too little": {map[string]string{ingressAnnotation: "999"}, Limits{}, "between 1k and 1P"},
		"too much":   {map[string]string{egressAnnotation: "1E"}, Limits{}, "between 1k and 1P"},
		"negative":   {map[string]string{egressAnnotation: "-10M"}, Limits{}, "between 1k and 1P"},
		"no number":  {map[string]string{ingressAnnotation: "fast"}, Limits{}, ingressAnnotation},
		"empty":      {map[string]string{ingressAnnotation: ""}, Limits{}, ingressAnnotation},
	} {
		got, err := Of(c.annotations)
		if c.err == "" && (err != nil || got != c.want) || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
