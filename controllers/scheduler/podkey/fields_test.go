package podkey

import (
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Why a field is not in the key.
const (
	onTheNode = "the agent acts on it, once the pod has a node"
	byNeeds   = "what its claims need is in the key by Key.With"
	byAPI     = "the API decides by it, before the scheduler sees the pod"
	noDisk    = "no node is chosen or refused for it"
)

// indifferent are fields of a PodSpec that are not in the key, with those below them, and why no plugin needs them there. Init
// containers are like containers.
var indifferent = map[string]string{
	"activeDeadlineSeconds":         "a controller and the agent count from the start of the pod",
	"automountServiceAccountToken":  byAPI,
	"dnsConfig":                     onTheNode,
	"dnsPolicy":                     onTheNode,
	"enableServiceLinks":            onTheNode,
	"ephemeralContainers":           "they are added to pods that have a node, and ask for nothing",
	"evictionResponders":            "they are asked when a pod is to go",
	"hostAliases":                   onTheNode,
	"hostIPC":                       onTheNode,
	"hostPID":                       onTheNode,
	"hostname":                      onTheNode,
	"hostnameOverride":              onTheNode,
	"imagePullSecrets":              onTheNode,
	"os":                            "all nodes are Linux, and others refuse the pod; upstream's scheduler does not look at it either",
	"preemptionPolicy":              "asked of the pod itself, after the verdicts (preempt.go)",
	"priorityClassName":             "its number is in the key",
	"readinessGates":                onTheNode,
	"resourceClaims":                byNeeds,
	"restartPolicy":                 onTheNode,
	"runtimeClassName":              "admission writes what it asks of a node into overhead, nodeSelector and tolerations",
	"schedulerName":                 "each profile has verdicts of its own (judge.go)",
	"schedulingGates":               "a pod with gates is not tried",
	"schedulingGroup":               "the feature behind it is not there: each pod is placed by itself",
	"securityContext":               onTheNode,
	"serviceAccount":                byAPI,
	"serviceAccountName":            byAPI,
	"setHostnameAsFQDN":             onTheNode,
	"shareProcessNamespace":         onTheNode,
	"subdomain":                     onTheNode,
	"terminationGracePeriodSeconds": onTheNode,

	"containers.args":                     onTheNode,
	"containers.command":                  onTheNode,
	"containers.env":                      onTheNode,
	"containers.envFrom":                  onTheNode,
	"containers.imagePullPolicy":          onTheNode,
	"containers.lifecycle":                onTheNode,
	"containers.livenessProbe":            onTheNode,
	"containers.name":                     "what is asked for it is in the key",
	"containers.readinessProbe":           onTheNode,
	"containers.resizePolicy":             onTheNode,
	"containers.resources.claims":         byNeeds,
	"containers.resources.limits":         "nodes are chosen by requests; the API makes requests of limits where there are none",
	"containers.restartPolicyRules":       onTheNode,
	"containers.securityContext":          onTheNode,
	"containers.startupProbe":             onTheNode,
	"containers.stdin":                    onTheNode,
	"containers.stdinOnce":                onTheNode,
	"containers.terminationMessagePath":   onTheNode,
	"containers.terminationMessagePolicy": onTheNode,
	"containers.tty":                      onTheNode,
	"containers.volumeDevices":            onTheNode,
	"containers.volumeMounts":             onTheNode,
	"containers.workingDir":               onTheNode,

	"volumes.azureDisk":             noDisk,
	"volumes.azureFile":             noDisk,
	"volumes.cephfs":                noDisk,
	"volumes.cinder":                noDisk,
	"volumes.configMap":             noDisk,
	"volumes.csi":                   noDisk,
	"volumes.downwardAPI":           noDisk,
	"volumes.emptyDir":              noDisk,
	"volumes.ephemeral":             byNeeds,
	"volumes.fc":                    noDisk,
	"volumes.flexVolume":            noDisk,
	"volumes.flocker":               noDisk,
	"volumes.gitRepo":               noDisk,
	"volumes.glusterfs":             noDisk,
	"volumes.hostPath":              noDisk,
	"volumes.nfs":                   noDisk,
	"volumes.persistentVolumeClaim": byNeeds,
	"volumes.photonPersistentDisk":  noDisk,
	"volumes.portworxVolume":        noDisk,
	"volumes.projected":             noDisk,
	"volumes.quobyte":               noDisk,
	"volumes.scaleIO":               noDisk,
	"volumes.secret":                noDisk,
	"volumes.storageos":             noDisk,
	"volumes.vsphereVolume":         noDisk,
	"volumes.image.pullPolicy":      onTheNode,
}

// TestEveryFieldOfAPodIsJudged changes each field of a pod's spec by itself. The key is another one then, or indifferent says why not:
// a field that a plugin looks at and that is in neither would let the scheduler take different pods for the same.
func TestEveryFieldOfAPodIsJudged(t *testing.T) {
	changed, used := map[string]bool{}, map[string]bool{}
	for _, whole := range []*corev1.Pod{filled(true), filled(false)} {
		before := Of(whole)
		eachField(reflect.ValueOf(&whole.Spec).Elem(), "", func(path string, field reflect.Value) {
			changed[path] = tellsApart(whole, field, before) || changed[path]
		})
		if Of(whole) != before {
			t.Fatal("the pod was not put back")
		}
	}
	for path, changes := range changed {
		reason := reasonFor(strings.Replace(path, "initContainers", "containers", 1), used)
		switch {
		case !changes && reason == "":
			t.Errorf("%s does not change the key: add it to shapeKey or peersKey if a plugin looks at it, or say in indifferent why none does", path)
		case changes && reason != "":
			t.Errorf("%s changes the key, although indifferent says: %s", path, reason)
		}
	}
	for path := range indifferent {
		if !used[path] {
			t.Errorf("indifferent names %s, which is no field: delete the line", path)
		}
	}
}

// filled is a pod with a value in each field of its spec; yes is that of the booleans.
func filled(yes bool) *corev1.Pod {
	p := pod()
	fill(reflect.ValueOf(&p.Spec).Elem())
	if !yes {
		eachField(reflect.ValueOf(&p.Spec).Elem(), "", func(_ string, v reflect.Value) {
			if v.Kind() == reflect.Bool {
				v.SetBool(false)
			}
		})
	}
	return p
}

// tellsApart reports whether the key is another one when the field has another value or none.
func tellsApart(pod *corev1.Pod, field reflect.Value, before Key) bool {
	old := reflect.New(field.Type()).Elem()
	old.Set(field)
	defer field.Set(old)
	change(field)
	if Of(pod) != before {
		return true
	}
	field.SetZero()
	return Of(pod) != before
}

// reasonFor finds the line of indifferent for a field or for what it is in.
func reasonFor(path string, used map[string]bool) string {
	for at := path; at != ""; at = at[:max(0, strings.LastIndexByte(at, '.'))] {
		if reason := indifferent[at]; reason != "" {
			used[at] = true
			return reason
		}
	}
	return ""
}

// eachField visits what has no fields of its own, by its path in JSON.
func eachField(v reflect.Value, path string, visit func(string, reflect.Value)) {
	switch {
	case isLeaf(v.Type()):
		visit(path, v)
	case v.Kind() == reflect.Pointer:
		if !v.IsNil() {
			eachField(v.Elem(), path, visit)
		}
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			eachField(v.Index(i), path, visit)
		}
	default:
		for i := range v.NumField() {
			name, options, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			below := path
			if options != "inline" && name != "" {
				below = strings.TrimPrefix(path+"."+name, ".")
			}
			eachField(v.Field(i), below, visit)
		}
	}
}

// isLeaf: numbers, texts and maps, and structures whose JSON is a text.
func isLeaf(t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[resource.Quantity](), reflect.TypeFor[metav1.Time](), reflect.TypeFor[intstr.IntOrString](),
		reflect.TypeFor[metav1.FieldsV1]():
		return true
	}
	return t.Kind() != reflect.Struct && t.Kind() != reflect.Pointer && t.Kind() != reflect.Slice
}

// fill gives each field a value, and each list one element; of volumes one with each source.
func fill(v reflect.Value) {
	switch {
	case v.Type() == reflect.TypeFor[[]corev1.Volume]():
		v.Set(reflect.ValueOf(volumes()))
	case isLeaf(v.Type()):
		change(v)
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	default:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	}
}

func volumes() (each []corev1.Volume) {
	for i := range reflect.TypeFor[corev1.VolumeSource]().NumField() {
		v := corev1.Volume{Name: "v"}
		fill(reflect.ValueOf(&v.VolumeSource).Elem().Field(i))
		each = append(each, v)
	}
	return each
}

// change gives a leaf a value that it has not had.
func change(v reflect.Value) {
	switch old := v.Interface().(type) {
	case resource.Quantity:
		old.Add(resource.MustParse("1"))
		v.Set(reflect.ValueOf(old))
		return
	case metav1.Time:
		v.Set(reflect.ValueOf(metav1.NewTime(old.Add(time.Hour))))
		return
	case metav1.FieldsV1:
		v.Set(reflect.ValueOf(metav1.FieldsV1{Raw: append([]byte("1"), old.Raw...)})) // is JSON
		return
	case intstr.IntOrString:
		v.Set(reflect.ValueOf(intstr.FromInt32(old.IntVal + 1)))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Uint8:
		v.SetUint(v.Uint() + 1)
	case reflect.Int32, reflect.Int64:
		v.SetInt(v.Int() + 1)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		key.SetString(strings.Repeat("x", v.Len()+1))
		fill(value)
		next := reflect.MakeMap(v.Type())
		for _, k := range v.MapKeys() {
			next.SetMapIndex(k, v.MapIndex(k))
		}
		next.SetMapIndex(key, value)
		v.Set(next)
	default:
		panic("a field of the kind " + v.Kind().String())
	}
}
