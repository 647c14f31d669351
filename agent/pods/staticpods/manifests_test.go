package staticpods

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestWhatAManifestMakes(t *testing.T) {
	f := folder{node: "N1", complete: func(*corev1.Pod) error { return nil }}
	const text = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: a, image: b}]}\n"
	pod, err := f.parse("/etc/web.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if pod.Name != "web-n1" || pod.Namespace != "default" || pod.Spec.NodeName != "N1" || len(pod.UID) != 32 {
		t.Errorf("%+v", pod.ObjectMeta)
	}
	if pod.Annotations[annotationHash] != string(pod.UID) || pod.Annotations[annotationSource] != "file" {
		t.Errorf("annotations %v", pod.Annotations)
	}
	if last := pod.Spec.Tolerations[0]; last.Operator != corev1.TolerationOpExists || last.Effect != corev1.TaintEffectNoExecute {
		t.Errorf("tolerations %v", pod.Spec.Tolerations)
	}
	for what, other := range map[string]func() (*corev1.Pod, error){
		"content": func() (*corev1.Pod, error) { return f.parse("/etc/web.yaml", []byte(text+"\n")) },
		"path":    func() (*corev1.Pod, error) { return f.parse("/etc/other.yaml", []byte(text)) },
		"node": func() (*corev1.Pod, error) {
			return folder{node: "n2", complete: f.complete}.parse("/etc/web.yaml", []byte(text))
		},
	} {
		if p, err := other(); err != nil || p.UID == pod.UID {
			t.Errorf("another %s: uid %s, %v", what, p.UID, err)
		}
	}
}

func TestWhichManifestsAreRefused(t *testing.T) {
	f := folder{node: "n1", complete: func(*corev1.Pod) error { return errors.New("spec.x: wrong") }}
	const head = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {"
	for text, want := range map[string]string{
		"}{":                                    "error converting YAML to JSON",
		"apiVersion: v1\nkind: Service":         `want a Pod of apiVersion v1, not "Service" of "v1"`,
		"apiVersion: v1\nkind: Pod":             "invalid pod: name is needed for the pod",
		head + "}":                              "invalid pod: spec.x: wrong",
		head + "containerz: []}":                `unknown field "containerz"`,
		head + "serviceAccountName: a}":         "static pods may not reference serviceaccounts",
		head + "imagePullSecrets: [{name: a}]}": "static pods may not reference secrets",
		head + "volumes: [{name: a, configMap: {name: b}}]}":                                            "static pods may not reference configmaps",
		head + "volumes: [{name: a, persistentVolumeClaim: {claimName: b}}]}":                           "static pods may not reference persistentvolumeclaims",
		head + "volumes: [{name: a, projected: {sources: [{serviceAccountToken: {path: t}}]}}]}":        "static pods may not reference serviceaccounts",
		head + "containers: [{name: a, envFrom: [{secretRef: {name: b}}]}]}":                            "static pods may not reference secrets",
		head + "initContainers: [{name: a, env: [{name: b, valueFrom: {configMapKeyRef: {key: c}}}]}]}": "static pods may not reference configmaps",
	} {
		if _, err := f.parse("/etc/web.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestOnlyFilesAreRead: a pipe would be waited for for ever.
func TestOnlyFilesAreRead(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".hidden.yaml", "web.yaml"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: web}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list, err := folder{path: dir, node: "n1", complete: func(*corev1.Pod) error { return nil }}.read()
	if err != nil || len(list) != 2 || list[0].err == nil || list[1].pod == nil {
		t.Errorf("%+v, %v", list, err)
	}
	if list, err := (folder{path: filepath.Join(dir, "gone")}).read(); err != nil || list != nil {
		t.Errorf("a folder that is not there: %v, %v", list, err)
	}
}
