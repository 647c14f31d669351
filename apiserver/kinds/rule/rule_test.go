package rule

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestRules(t *testing.T) {
	at := field.NewPath("x")
	sets := []string{"a", "b"}
	for _, test := range []struct {
		name string
		got  field.ErrorList
		want string
	}{
		{"value", Required("a", at), ""},
		{"no value", Required("", at), `x: Required value`},
		{"member", OneOf("a", sets, at), ""},
		{"stranger", OneOf("c", sets, at), `x: Unsupported value: "c": supported values: "a", "b"`},
		{"nobody", RequiredOneOf("", sets, at), `x: Required value`},
		{"protocol", Protocol(corev1.ProtocolUDP, at), ""},
		{"port", Port(65536, at), `x: Invalid value: 65536: must be between 1 and 65535, inclusive`},
		{"port name", PortOrName(intstr.FromString("http"), at), ""},
		{"no port", PortOrName(intstr.FromInt32(0), at), `x: Invalid value: 0: must be between 1 and 65535, inclusive`},
		{"address", IP("192.0.2.1", at), ""},
		{"zero padded address", IP("192.0.2.01", at), `x: Invalid value: "192.0.2.01": must not have leading 0s`},
		{"loopback", NonSpecialIP("::1", at), `x: Invalid value: "::1": may not be in the loopback range (127.0.0.0/8, ::1/128)`},
		{"anywhere", NonSpecialIP("0.0.0.0", at), `x: Invalid value: "0.0.0.0": may not be unspecified (0.0.0.0)`},
		{"link local", NonSpecialIP("169.254.1.1", at), `x: Invalid value: "169.254.1.1": may not be in the link-local range (169.254.0.0/16, fe80::/10)`},
		{"key", DataKey("a.b", at), ""},
		{"unchanged", Immutable("a", "a", at), ""},
		{"changed", Immutable("a", "b", at), `x: Invalid value: null: field is immutable`},
		{"segment", PathSegment("system:a", at), ""},
		{"two segments", PathSegment("a/b", at), `x: Invalid value: "a/b": may not contain '/'`},
		{"qualified", QualifiedName("example.com/a", at), ""},
		{"no option", OptionalOneOf[string](nil, sets, at), ""},
		{"bad option", OptionalOneOf(new("c"), sets, at), `x: Unsupported value: "c": supported values: "a", "b"`},
		{"parent", DataKey("..", at), `x: Invalid value: "..": must not be '..'`},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := ""
			if len(test.got) > 0 {
				got = test.got[0].Error()
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestDefaults(t *testing.T) {
	empty, set := "", "kept"
	Default(&empty, "filled")
	Default(&set, "filled")
	var pointer *int
	DefaultPointer(&pointer, 3)
	DefaultPointer(&pointer, 4)
	if empty != "filled" || set != "kept" || *pointer != 3 {
		t.Errorf("empty = %q, set = %q, pointer = %d", empty, set, *pointer)
	}
	list := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100100u")}
	RoundUp(list)
	if got := list[corev1.ResourceCPU]; got.String() != "101m" {
		t.Errorf("rounded to %s, want 101m", got.String())
	}
}
