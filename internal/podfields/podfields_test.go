package podfields

import (
	"flag"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/setpoint-io/setpoint/internal/pagetest"
)

var update = flag.Bool("update", false, "write the table into docs/compatibility.md")

// TestEveryFieldIsAccountedFor walks the types of a pod's spec: who finds a field here that upstream has added decides
// what becomes of it, and says so in the table.
func TestEveryFieldIsAccountedFor(t *testing.T) {
	types := map[reflect.Type]Type{}
	for _, entry := range Table() {
		if _, twice := types[typeOf(entry)]; twice {
			t.Errorf("%s stands twice in the table", typeOf(entry))
		}
		types[typeOf(entry)] = entry
	}
	seen := map[reflect.Type]bool{}
	var check func(reflect.Type)
	check = func(of reflect.Type) {
		if seen[of] {
			return
		}
		seen[of] = true
		entry, ok := types[of]
		if !ok {
			t.Errorf("%s is not in the table; its fields: %v", of, slices.Sorted(maps.Keys(fieldsOf(of))))
			return
		}
		for _, next := range checkType(t, entry, of) {
			check(next)
		}
	}
	check(reflect.TypeFor[corev1.PodSpec]())
	for of := range types {
		if !seen[of] {
			t.Errorf("%s is in the table, but no pod has one whose fields are looked at", of)
		}
	}
}

// checkType compares one entry with the type's fields, and returns the types of those that are looked into.
func checkType(t *testing.T, entry Type, of reflect.Type) []reflect.Type {
	t.Helper()
	verdicts := map[string]int{}
	opaque := map[string]bool{}
	for _, name := range split(entry.Enforced) {
		verdicts[name]++
	}
	for _, rule := range entry.Rules {
		if rule.Why == "" {
			t.Errorf("%s: %s without a reason", of, rule.Fields)
		}
		for _, name := range split(rule.Fields) {
			verdicts[name]++
			opaque[name] = rule.When == nil
		}
	}
	var below []reflect.Type
	for name, next := range fieldsOf(of) {
		if verdicts[name] != 1 {
			t.Errorf("%s.%s has %d verdicts in the table, want one", of, name, verdicts[name])
		}
		delete(verdicts, name)
		if next != nil && !opaque[name] {
			below = append(below, next)
		}
	}
	for name := range verdicts {
		t.Errorf("%s.%s is in the table, but there is no such field", of, name)
	}
	return below
}

// fieldsOf are a type's fields by name, those of inlined types too, and the struct that each is, or nil.
func fieldsOf(of reflect.Type) map[string]reflect.Type {
	out := map[string]reflect.Type{}
	for i := range of.NumField() {
		f := of.Field(i)
		if name := jsonName(f); name != "" {
			out[name] = structOf(f.Type)
			continue
		}
		maps.Copy(out, fieldsOf(f.Type))
	}
	return out
}

func to[T any](v T) *T { return &v }

func TestFind(t *testing.T) {
	limit := resource.MustParse("1Gi")
	for name, c := range map[string]struct {
		spec corev1.PodSpec
		node Node
		want []string
	}{
		"nothing": {corev1.PodSpec{HostUsers: to(true), Containers: []corev1.Container{{Name: "c", Ports: []corev1.ContainerPort{{ContainerPort: 1}}}}}, Embedded, nil},
		"user namespaces, wherever": {corev1.PodSpec{HostUsers: to(false)}, Node{HostPorts6: true, SELinux: true, AppArmor: true, RecursiveReadOnly: true},
			[]string{"spec.hostUsers: Setpoint's agent refuses the pod: it has no user namespaces"}},
		"host port": {corev1.PodSpec{Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{HostPort: 80, HostIP: "127.0.0.1"}}}}}, Embedded, nil},
		"host port, IPv6": {corev1.PodSpec{InitContainers: []corev1.Container{{}, {Ports: []corev1.ContainerPort{{}, {HostPort: 80, HostIP: "::"}}}}}, Embedded,
			[]string{"spec.initContainers[1].ports[1].hostIP: Setpoint's agent refuses the pod: it needs a node whose pods have addresses of IPv6"}},
		"host port, IPv6, of a runtime that has them": {corev1.PodSpec{Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{HostPort: 80, HostIP: "::1"}}}}}, Node{HostPorts6: true}, nil},
		"host port, IPv6, of the host":                {corev1.PodSpec{HostNetwork: true, Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{HostPort: 80, HostIP: "::1"}}}}}, Embedded, nil},
		"options of mounts of an ephemeral container": {corev1.PodSpec{EphemeralContainers: []corev1.EphemeralContainer{{
			EphemeralContainerCommon: corev1.EphemeralContainerCommon{VolumeMounts: []corev1.VolumeMount{{BindMountOptions: []string{"noexec"}}}}}}}, Embedded,
			[]string{"spec.ephemeralContainers[0].volumeMounts[0].bindMountOptions: Setpoint's agent refuses the pod: it has no options of mounts"}},
		"AppArmor": {corev1.PodSpec{
			SecurityContext: &corev1.PodSecurityContext{AppArmorProfile: &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}},
			Containers:      []corev1.Container{{SecurityContext: &corev1.SecurityContext{AppArmorProfile: &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeLocalhost}}}}}, Node{},
			[]string{"spec.containers[0].securityContext.appArmorProfile.type: Setpoint's agent refuses the pod: its kernel has no AppArmor"}},
		"SELinux": {corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{SELinuxOptions: &corev1.SELinuxOptions{Level: "s0"}}}, Node{},
			[]string{"spec.securityContext.seLinuxOptions: Setpoint's agent refuses the pod: its SELinux policy has no labels for containers " +
				"(on a kernel without SELinux it has no effect)"}},
		"SELinux that the kernel has not": {
			corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{SELinuxOptions: &corev1.SELinuxOptions{Level: "s0"}}}, Node{NoSELinux: true},
			[]string{"spec.securityContext.seLinuxOptions: has no effect: this is a kernel without SELinux"}},
		"empty SELinux": {corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{SELinuxOptions: &corev1.SELinuxOptions{}}}, Embedded, nil},
		"recursive read-only": {corev1.PodSpec{Containers: []corev1.Container{{VolumeMounts: []corev1.VolumeMount{{RecursiveReadOnly: to(corev1.RecursiveReadOnlyEnabled)}}}}}, Node{},
			[]string{"spec.containers[0].volumeMounts[0].recursiveReadOnly: Setpoint's agent refuses the pod: its runtime has no recursive read-only mounts"}},
		"volumes": {corev1.PodSpec{Volumes: []corev1.Volume{
			{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &limit}}},
			{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &limit, Medium: corev1.StorageMediumMemory}}},
			{VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{}}},
			{VolumeSource: corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{}}},
		}}, Embedded, []string{
			"spec.volumes[3].nfs: Setpoint's agent refuses the pod: it has no such volumes",
		}},
		"huge pages": {corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
			Limits: corev1.ResourceList{"hugepages-2Mi": limit}}}}}, Embedded, nil},
		"huge pages that nobody counts": {corev1.PodSpec{Containers: []corev1.Container{
			{Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"memory": limit}}},
			{Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"memory": limit, "hugepages-2Mi": limit}}}}}, Node{},
			[]string{"spec.containers[1].resources.limits: has no effect: for huge pages, since its kernel's control groups do not count them"}},
		"own restart policies": {corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever,
			InitContainers: []corev1.Container{{RestartPolicy: to(corev1.ContainerRestartPolicyOnFailure)}},
			Containers: []corev1.Container{{RestartPolicy: to(corev1.ContainerRestartPolicyNever), RestartPolicyRules: []corev1.ContainerRestartRule{
				{Action: corev1.ContainerRestartRuleActionRestart}, {Action: corev1.ContainerRestartRuleActionRestartAllContainers},
			}}}}, Embedded, nil},
	} {
		var got []string
		for _, f := range Find(&c.spec, "spec", c.node) {
			got = append(got, f.String())
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestTheDocumentShowsTheTable: go test ./podfields -update writes it.
func TestTheDocumentShowsTheTable(t *testing.T) {
	pagetest.Compare(t, "../../docs/compatibility.md", "fields", markdown(), *update)
}

func markdown() string {
	var out strings.Builder
	out.WriteString("| field | values | agent | why |\n|---|---|---|---|\n")
	for _, verdict := range []Verdict{Refused, Dropped, Harmless} {
		seen := map[string]bool{}
		for _, entry := range Table() {
			for _, rule := range entry.Rules {
				if rule.Verdict != verdict || typeOf(entry) == reflect.TypeFor[corev1.EphemeralContainer]() { // as Container
					continue
				}
				var names []string
				for _, name := range split(rule.Fields) {
					names = append(names, "`"+typeOf(entry).Name()+"."+name+"`")
				}
				agent := map[Verdict]string{Refused: "refuses the pod", Dropped: "ignores it, with a warning", Harmless: "ignores it"}[verdict]
				if rule.Unless != nil {
					agent += ", unless the runtime can do it"
				}
				if rule.Pointless != nil {
					agent += "; " + rule.On + " ignores it, with a warning"
				}
				row := fmt.Sprintf("| %s | %s | %s | %s |\n", strings.Join(names, ", "), rule.Values, agent, rule.Why)
				if !seen[row] {
					out.WriteString(row)
				}
				seen[row] = true
			}
		}
	}
	return out.String()
}

func BenchmarkFindNothing(b *testing.B) {
	spec := &corev1.PodSpec{
		Volumes:    []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		Containers: []corev1.Container{{Name: "a", Ports: []corev1.ContainerPort{{ContainerPort: 80}}}, {Name: "b"}},
	}
	b.ReportAllocs()
	for b.Loop() {
		Find(spec, "spec", Embedded)
	}
}
