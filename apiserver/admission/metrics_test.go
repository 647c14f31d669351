package admission

import (
	"errors"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/apiserver/pkg/admission"

	"github.com/setpoint-io/setpoint/apiserver/admission/timing"
)

var errRefused = errors.New("refused")

// TestAdmissionIsMeasured: each plugin, and each half as a whole, by outcome; a plugin after one that refused is not asked and not counted.
func TestAdmissionIsMeasured(t *testing.T) {
	m, ran := timing.New(), []string{}
	c := newChain([]known{{"First", note{name: "a", into: &ran}}, {"Second", note{name: "b", into: &ran, err: errRefused}}, {"Third", note{name: "c", into: &ran}}}, m)
	a := admission.NewAttributesRecord(nil, nil, podsResource.WithVersion("v1").GroupVersion().WithKind("Pod"), "ns", "p",
		podsResource.WithVersion("v1"), "", admission.Create, nil, false, nil)
	if err := c.Admit(t.Context(), a, nil); !errors.Is(err, errRefused) {
		t.Fatal(err)
	}
	for series, want := range map[string]uint64{
		"First/admit/CREATE/false": 1, "Second/admit/CREATE/true": 1, "Second/admit/CREATE/false": 0, "Third/admit/CREATE/false": 0,
		"/admit/CREATE/true": 1, "/admit/CREATE/false": 0, "/validate/CREATE/false": 0,
	} {
		if got := counted(t, m)[series]; got != want {
			t.Errorf("%s: %d, want %d", series, got, want)
		}
	}
}

// counted are the numbers of observations by name/type/operation/rejected.
func counted(t *testing.T, c prometheus.Collector) map[string]uint64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]uint64{}
	for _, f := range families {
		for _, series := range f.Metric {
			of := labelsOf(series)
			counts[of["name"]+"/"+of["type"]+"/"+of["operation"]+"/"+of["rejected"]] = series.GetHistogram().GetSampleCount()
		}
	}
	return counts
}

func labelsOf(m *dto.Metric) map[string]string {
	labels := map[string]string{}
	for _, pair := range m.Label {
		labels[pair.GetName()] = pair.GetValue()
	}
	return labels
}

func BenchmarkTimer(b *testing.B) {
	timer := timing.New().Plugin("First", timing.Validate, admission.Create)
	for b.Loop() {
		if err := timer.Time(func() error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}
