package staticpods

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

const (
	// manifestSizeMax bounds one file, in bytes; upstream's.
	manifestSizeMax = 10 << 20
	// manifestsMax bounds the files that are read.
	manifestsMax = 1000
)

// Annotations of static pods, as a kubelet names them.
const (
	annotationHash   = "kubernetes.io/config.hash"
	annotationSource = "kubernetes.io/config.source"
	sourceFile       = "file"
)

var (
	errTooLarge = errors.New("the manifest is longer than 10 MiB")
	errTooMany  = errors.New("more than 1000 files: the others are not read")
	errKind     = errors.New("want a Pod of apiVersion v1")
	errNoName   = errors.New("invalid pod: name is needed for the pod")
)

// manifest is one file, read.
type manifest struct {
	path string
	pod  *corev1.Pod
	err  error
}

// folder reads manifests for one node.
type folder struct {
	path, node string
	// complete sets defaults and says what is wrong.
	complete func(*corev1.Pod) error
}

// read looks at all files; those whose names begin with a dot are nobody's. A folder that is not there is empty.
func (f folder) read() ([]manifest, error) {
	if f.path == "" {
		return nil, nil
	}
	info, err := os.Stat(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []manifest{f.manifest(f.path)}, nil
	}
	entries, err := os.ReadDir(f.path)
	if err != nil {
		return nil, err
	}
	var out []manifest
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") || e.IsDir() {
			continue
		}
		if len(out) == manifestsMax {
			return out, errTooMany
		}
		out = append(out, f.manifest(filepath.Join(f.path, e.Name())))
	}
	return out, nil
}

func (f folder) manifest(path string) manifest {
	text, err := readRegular(path)
	if err != nil {
		return manifest{path: path, err: err}
	}
	pod, err := f.parse(path, text)
	return manifest{path, pod, err}
}

// readRegular opens no pipe and no device, which might never end.
func readRegular(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", path)
	}
	if info.Size() > manifestSizeMax {
		return nil, errTooLarge
	}
	return os.ReadFile(path)
}

// parse makes the pod of a manifest: what its uid and its name end in is the node's, so that they are nobody else's.
func (f folder) parse(path string, text []byte) (*corev1.Pod, error) {
	var pod corev1.Pod
	if err := yaml.UnmarshalStrict(text, &pod); err != nil {
		return nil, errors.New(strings.Join(strings.Fields(err.Error()), " "))
	}
	switch {
	case pod.APIVersion != "v1" || pod.Kind != "Pod":
		return nil, fmt.Errorf("%w, not %q of %q", errKind, pod.Kind, pod.APIVersion)
	case pod.Name == "":
		return nil, errNoName
	}
	if pod.UID == "" {
		pod.UID = uidOf(f.node, path, text)
	}
	pod.Name += "-" + strings.ToLower(f.node)
	if pod.Namespace == "" {
		pod.Namespace = metav1.NamespaceDefault
	}
	pod.Spec.NodeName = f.node
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[annotationHash], pod.Annotations[annotationSource] = string(pod.UID), sourceFile
	always := corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}
	pod.Spec.Tolerations = append(pod.Spec.Tolerations, always)
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending}
	if what := reference(&pod.Spec); what != "" {
		return nil, fmt.Errorf("static pods may not reference %s", what)
	}
	if err := f.complete(&pod); err != nil {
		return nil, fmt.Errorf("invalid pod: %w", err)
	}
	return &pod, nil
}

// uidOf changes with the manifest; a file that is moved is another pod.
func uidOf(node, path string, text []byte) types.UID {
	sum := sha256.Sum256(bytes.Join([][]byte{[]byte(node), []byte(path), text}, []byte{0}))
	return types.UID(hex.EncodeToString(sum[:16]))
}

// reference names a kind of the API's objects that the pod reads, or "": there may be no API to read it from.
func reference(spec *corev1.PodSpec) string {
	switch {
	case spec.ServiceAccountName != "" || spec.DeprecatedServiceAccount != "":
		return "serviceaccounts"
	case len(spec.ImagePullSecrets) > 0:
		return "secrets"
	case len(spec.ResourceClaims) > 0:
		return "resourceclaims"
	}
	for i := range spec.Volumes {
		if what := volumeReference(&spec.Volumes[i]); what != "" {
			return what
		}
	}
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			if what := envReference(&list[i]); what != "" {
				return what
			}
		}
	}
	return ""
}

func volumeReference(v *corev1.Volume) string {
	switch {
	case v.ConfigMap != nil:
		return "configmaps"
	case v.Secret != nil:
		return "secrets"
	case v.PersistentVolumeClaim != nil || v.Ephemeral != nil:
		return "persistentvolumeclaims"
	case v.CSI != nil && v.CSI.NodePublishSecretRef != nil:
		return "secrets"
	case v.Projected == nil:
		return ""
	}
	for _, s := range v.Projected.Sources {
		switch {
		case s.ConfigMap != nil:
			return "configmaps"
		case s.Secret != nil:
			return "secrets"
		case s.ServiceAccountToken != nil:
			return "serviceaccounts"
		case s.ClusterTrustBundle != nil:
			return "clustertrustbundles"
		case s.PodCertificate != nil:
			return "podcertificates"
		}
	}
	return ""
}

func envReference(c *corev1.Container) string {
	for _, e := range c.EnvFrom {
		if e.ConfigMapRef != nil {
			return "configmaps"
		}
		if e.SecretRef != nil {
			return "secrets"
		}
	}
	for _, e := range c.Env {
		if from := e.ValueFrom; from != nil && from.ConfigMapKeyRef != nil {
			return "configmaps"
		} else if from != nil && from.SecretKeyRef != nil {
			return "secrets"
		}
	}
	return ""
}
