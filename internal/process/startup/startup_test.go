package startup

import (
	"runtime"
	"runtime/metrics"
	"testing"
)

// collectsAt returns the percentage that counts now.
func collectsAt() uint64 {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

func TestDone(t *testing.T) {
	given := percent
	defer func() {
		percent = given
		Done(nil)
	}()
	tests := map[string]struct {
		percent int
		args    []string
		want    uint64
	}{
		"a server":         {100, []string{"setpoint", "server", "kubectl"}, 100},
		"no command":       {100, []string{"setpoint"}, 100},
		"a shim":           {100, []string{"shim"}, 100},
		"kubectl":          {100, []string{"setpoint", "kubectl", "get", "pods"}, 1600},
		"kubectl and GOGC": {50, []string{"setpoint", "kubectl", "get", "pods"}, 50},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			percent = tt.percent
			Done(tt.args)
			if got := collectsAt(); got != tt.want {
				t.Errorf("GOGC is %d, want %d", got, tt.want)
			}
		})
	}
}

// TestLongKubectl: whoever watches something with kubectl has an ordinary heap after the first collection.
func TestLongKubectl(t *testing.T) {
	given := percent
	defer func() {
		percent = given
		Done(nil)
	}()
	percent = 100
	Done([]string{"setpoint", "kubectl", "get", "pods", "-w"})
	runtime.GC()
	for collectsAt() != 100 {
		runtime.Gosched()
	}
}
