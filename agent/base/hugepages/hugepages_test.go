package hugepages

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func list(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

func TestReadAMachine(t *testing.T) {
	sys := fstest.MapFS{
		Machine + "/hugepages-1048576kB/nr_hugepages": {Data: []byte("0\n")},
		Machine + "/hugepages-2048kB/nr_hugepages":    {Data: []byte("3\n")},
		Machine + "/hugepages-64kB/nr_hugepages":      {Data: []byte("16\n")},
	}
	pools, err := Read(sys, Machine)
	got := ""
	for _, p := range pools {
		got += fmt.Sprint(p.Name(), "=", p.Bytes(), " ")
	}
	if want := "hugepages-64Ki=1048576 hugepages-2Mi=6291456 hugepages-1Gi=0 "; got != want || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if pools, err := Read(fstest.MapFS{}, Machine); pools != nil || err != nil {
		t.Error(pools, err)
	}
	for path, content := range map[string]string{"hugepages-bigkB/nr_hugepages": "1", "hugepages-2048kB/nr_hugepages": "many", "hugepages-4kB/x": ""} {
		if _, err := Read(fstest.MapFS{Machine + "/" + path: {Data: []byte(content)}}, Machine); err == nil {
			t.Errorf("%s with %q was read", path, content)
		}
	}
}

func TestReserve(t *testing.T) {
	for name, tc := range map[string]struct{ capacity, want corev1.ResourceList }{
		"none":     {list("memory", "10Mi", "hugepages-2Mi", "0"), list("memory", "8Mi")},
		"some":     {list("memory", "10Mi", "hugepages-2Mi", "4Mi", "hugepages-1Mi", "1Mi"), list("memory", "3Mi")},
		"too many": {list("memory", "10Mi", "hugepages-2Mi", "10Mi"), list("memory", "0")},
	} {
		got := list("memory", "8Mi")
		Reserve(got, tc.capacity)
		if want, have := tc.want["memory"], got["memory"]; want.Cmp(have) != 0 {
			t.Errorf("%s: %s, not %s", name, have.String(), want.String())
		}
	}
}

func TestLimits(t *testing.T) {
	node := list("cpu", "4", "hugepages-2Mi", "0", "hugepages-1Gi", "2Gi", "hugepages-64Ki", "0")
	for name, tc := range map[string]struct {
		lists []corev1.ResourceList
		want  string
	}{
		"nothing asked for":        {nil, "1GB=0 2MB=0 64KB=0"},
		"one size":                 {[]corev1.ResourceList{list("hugepages-2Mi", "4Mi", "memory", "1Gi")}, "1GB=0 2MB=4194304 64KB=0"},
		"another spelling":         {[]corev1.ResourceList{list("hugepages-1024Mi", "1Gi")}, "1GB=1073741824 2MB=0 64KB=0"},
		"the container's, not pod": {[]corev1.ResourceList{list("hugepages-2Mi", "8Mi"), list("hugepages-2Mi", "2Mi")}, "1GB=0 2MB=2097152 64KB=0"},
		"the pod's":                {[]corev1.ResourceList{list("hugepages-2Mi", "8Mi"), list("cpu", "1")}, "1GB=0 2MB=8388608 64KB=0"},
		"not on this node":         {[]corev1.ResourceList{list("hugepages-4Mi", "8Mi", "hugepages-x", "1")}, "1GB=0 2MB=0 64KB=0"},
	} {
		var got []string
		for _, l := range Limits(node, tc.lists...) {
			got = append(got, fmt.Sprintf("%s=%d", l.PageSize, l.Limit))
		}
		if diff := cmp.Diff(tc.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestOfMedium(t *testing.T) {
	pod := func(whole corev1.ResourceList, containers ...corev1.ResourceList) *corev1.Pod {
		p := &corev1.Pod{}
		if whole != nil {
			p.Spec.Resources = &corev1.ResourceRequirements{Requests: whole}
		}
		for _, l := range containers {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Resources: corev1.ResourceRequirements{Requests: l}})
		}
		return p
	}
	first := pod(nil)
	first.Spec.InitContainers = pod(nil, list("hugepages-2Mi", "2Mi")).Spec.Containers
	two := pod(nil, list("hugepages-2Mi", "2Mi"), list("hugepages-1Gi", "1Gi"))
	for name, tc := range map[string]struct {
		medium corev1.StorageMedium
		pod    *corev1.Pod
		size   int64
		err    string
	}{
		"the only size":           {"HugePages", pod(nil, list("cpu", "1"), list("hugepages-2Mi", "2Mi")), 2 << 20, ""},
		"an init container's":     {"HugePages", first, 2 << 20, ""},
		"the whole pod's":         {"HugePages", pod(list("hugepages-2Mi", "2Mi"), list("cpu", "1")), 2 << 20, ""},
		"one of two":              {"HugePages-1Gi", two, 1 << 30, ""},
		"which of two":            {"HugePages", two, 0, "medium: HugePages can't be used if container requests multiple huge page sizes"},
		"none":                    {"HugePages", pod(nil, list("cpu", "1")), 0, "medium HugePages: hugePages storage requested, but there is no resource request for huge pages"},
		"none of that size":       {"HugePages-64Ki", two, 0, "medium HugePages-64Ki: hugePages storage requested, but there is no resource request for huge pages"},
		"a size that is none":     {"HugePages-big", two, 0, resource.ErrFormatWrong.Error()},
		"a size of nothing":       {"HugePages-0", two, 0, resource.ErrNumeric.Error()},
		"a resource that is none": {"HugePages", pod(nil, list("hugepages-x", "1")), 0, "resource name: hugepages-x is an invalid hugepage name"},
	} {
		size, err := OfMedium(tc.medium, tc.pod)
		if size != tc.size || (err == nil) != (tc.err == "") || err != nil && err.Error() != tc.err {
			t.Errorf("%s: %d, %v", name, size, err)
		}
		if !IsMedium(tc.medium) || IsMedium("Memory") || IsMedium("") {
			t.Error(tc.medium)
		}
	}
}
