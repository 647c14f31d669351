package capabilities

import (
	"slices"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestOf(t *testing.T) {
	const netAdmin, chown = 1 << 12, 1 << 0
	for _, test := range []struct {
		name       string
		add, drop  []string
		privileged bool
		want       uint64
		refused    bool
	}{
		{name: "default", want: byDefault},
		{name: "one more, in lower case", add: []string{"net_admin"}, want: byDefault | netAdmin},
		{name: "with its prefix", add: []string{"CAP_NET_ADMIN"}, want: byDefault | netAdmin},
		{name: "one less", drop: []string{"CHOWN"}, want: byDefault &^ chown},
		{name: "none but one", drop: []string{"ALL"}, add: []string{"CHOWN"}, want: chown},
		{name: "all but one", add: []string{"all"}, drop: []string{"CHOWN"}, want: all &^ chown},
		{name: "privileged", privileged: true, drop: []string{"ALL"}, want: all},
		{name: "unknown", add: []string{"NET_ADMINISTRATOR"}, refused: true},
		{name: "unknown to drop", drop: []string{""}, refused: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := Of(&runtimeapi.LinuxContainerSecurityContext{
				Privileged: test.privileged, Capabilities: &runtimeapi.Capability{AddCapabilities: test.add, DropCapabilities: test.drop},
			})
			if (err != nil) != test.refused || got != test.want {
				t.Errorf("%#x, %v", got, err)
			}
		})
	}
}

func TestNames(t *testing.T) {
	if got := Names(1<<40 | 1<<12 | 1<<0); !slices.Equal(got, []string{"CAP_CHOWN", "CAP_NET_ADMIN", "CAP_CHECKPOINT_RESTORE"}) {
		t.Error(got)
	}
	if got := len(Names(all)); got != 41 {
		t.Error(got)
	}
}
